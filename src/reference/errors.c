/* Reference densities of pixels in even drawing and in drawing by error. */
#include "reference/reference.h"

#include <math.h>

/* Returns the cosine of the angle from the zenith of a panorama's upper edge of row y. */
static double height_of(const struct reference_drawn *view, double y)
{
    double angle = (y - view->center_y) / view->focal_y; /* from the horizon, downwards */
    return -sin(fmin(fmax(angle, -M_PI / 2), M_PI / 2));
}

static double even(const struct reference_drawn *view, uint32_t x, uint32_t y)
{
    double row = 1.0 / view->height;
    if (view->is_panorama)
        row = (height_of(view, y) - height_of(view, y + 1)) /
              (height_of(view, 0) - height_of(view, view->height));
    return view->used[y * view->width + x] ? view->strip_share * row / view->width : 0;
}

uint32_t reference_error_cell(const struct reference_drawn *view, uint32_t x, uint32_t y)
{
    uint32_t row = (view->first_row + y * view->shrink) / view->cell_edge;
    return view->first_cell + row * view->columns + x * view->shrink / view->cell_edge;
}

double reference_draw(const struct reference_drawn *views, uint32_t count, const float *errors,
                      double share, double *drawn, double *weights)
{
    double all = 0, by_error = 0;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t v = 0, i = 0; v < count; v++)
            for (uint32_t p = 0; p < views[v].width * views[v].height; p++, i++) {
                uint32_t x = p % views[v].width, y = p / views[v].width;
                double u = even(&views[v], x, y);
                double e = (double)errors[reference_error_cell(&views[v], x, y)];
                if (pass == 0) {
                    all += u;
                    by_error += u * e;
                } else {
                    drawn[i] = (1 - share) * u / all + share * u * e / by_error;
                    weights[i] = drawn[i] > 0 ? u / all / drawn[i] : 0;
                }
            }
    return by_error / all;
}

float reference_error(float before, double losses, uint32_t rays)
{
    double mean = losses / rays, weight = rays / (rays + 32.0);
    return (float)(before > 0 ? before + weight * (mean - before) : mean);
}
