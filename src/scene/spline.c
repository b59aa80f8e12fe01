/* Evaluates smooth curves that pass through points at given times. */
#include <math.h>
#include <string.h>

#include "scene/camera_path.h"

static double channel(const struct spline *spline, size_t point, size_t c)
{
    return spline->values[point % spline->count * spline->channels + c];
}

/* Returns the slope between a point's neighbours; at an open end, to the only neighbour. */
static double tangent(const struct spline *spline, size_t point, size_t c)
{
    size_t last = spline->count - 1;
    double duration = spline->loop ? spline->times[spline->count] - spline->times[0] : 0;
    size_t previous = point > 0 ? point - 1 : spline->loop ? last : 0;
    size_t following = point < last || spline->loop ? point + 1 : last;
    double begin = spline->times[previous] - (point == 0 && spline->loop ? duration : 0);
    return (channel(spline, following, c) - channel(spline, previous, c)) /
           (spline->times[following] - begin);
}

void spline_at(const struct spline *spline, double time, double *values)
{
    size_t segments = spline->loop ? spline->count : spline->count - 1, segment = 0;
    if (spline->count < 2) {
        memcpy(values, spline->values, spline->channels * sizeof(*values));
        return;
    }
    while (segment + 1 < segments && time >= spline->times[segment + 1])
        segment++;
    size_t next = segment + 1 < spline->count ? segment + 1 : 0; /* 0 only in a loop */
    double length = spline->times[segment + 1] - spline->times[segment];
    double t = (time - spline->times[segment]) / length, t2 = t * t, t3 = t2 * t;
    for (size_t c = 0; c < spline->channels; c++)
        values[c] = (2 * t3 - 3 * t2 + 1) * channel(spline, segment, c) +
                    (t3 - 2 * t2 + t) * length * tangent(spline, segment, c) +
                    (3 * t2 - 2 * t3) * channel(spline, next, c) +
                    (t3 - t2) * length * tangent(spline, next, c);
}
