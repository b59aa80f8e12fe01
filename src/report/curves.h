/* Preparing a series of measurements for drawing. */
#ifndef REPORT_CURVES_H
#define REPORT_CURVES_H

#include <stddef.h>

/* Mean over a centred window of about 1/40 of the series, at most 501 values (narrower towards the
 * ends, so that nothing is dragged in from one side). Values that are not finite are left out of
 * the mean and stay NaN. */
void curve_smooth(const double *values, size_t count, double *smooth);

/* Points that draw the same picture as the `count` given: per column of [low, high] / `columns` the
 * smallest and the largest value, in order; a column without finite values gives one NaN (a gap).
 * `x` must not decrease. Writes at most 2 * columns points and returns their number. */
size_t curve_thin(const double *x, const double *y, size_t count, double low, double high,
                  size_t columns, double *thin_x, double *thin_y);

/* Widens [*low, *high] by the finite values (only the positive ones for a logarithmic axis). */
void curve_range(const double *values, size_t count, int only_positive, double *low, double *high);

#endif
