/* Evaluates smooth curves through points in time. */
#include <math.h>
#include <string.h>

#include "scene/camera_path.h"

static double channel(const struct spline *spline, size_t point, size_t c)
{
    return spline->values[point % spline->count * spline->channels + c];
}

/* Returns the slope between the neighbours of a point; at an end of an open curve, the slope to its
 * only neighbour. */
static double tangent(const struct spline *spline, size_t point, size_t c)
{
    size_t last = spline->count - 1;
    double period = spline->loop ? spline->times[spline->count] - spline->times[0] : 0;
    size_t before = point > 0 ? point - 1 : spline->loop ? last : 0;
    size_t after = point < last || spline->loop ? point + 1 : last;
    double begin = spline->times[before] - (point == 0 && spline->loop ? period : 0);
    return (channel(spline, after, c) - channel(spline, before, c)) /
           (spline->times[after] - begin);
}

void spline_at(const struct spline *spline, double time, double *values)
{
    size_t pieces = spline->loop ? spline->count : spline->count - 1, piece = 0;
    if (spline->count < 2) {
        memcpy(values, spline->values, spline->channels * sizeof(*values));
        return;
    }
    while (piece + 1 < pieces && time >= spline->times[piece + 1])
        piece++;
    size_t next = piece + 1 < spline->count ? piece + 1 : 0; /* 0 only in a loop */
    double length = spline->times[piece + 1] - spline->times[piece];
    double t = (time - spline->times[piece]) / length, t2 = t * t, t3 = t2 * t;
    for (size_t c = 0; c < spline->channels; c++)
        values[c] = (2 * t3 - 3 * t2 + 1) * channel(spline, piece, c) +
                    (t3 - 2 * t2 + t) * length * tangent(spline, piece, c) +
                    (3 * t2 - 2 * t3) * channel(spline, next, c) +
                    (t3 - t2) * length * tangent(spline, next, c);
}
