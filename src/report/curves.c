/* Smooths curves and reduces them to as many points as a chart can show. */
#include <math.h>

#include "report/chart.h"

void curve_range(const double *values, size_t count, int only_positive, double *low, double *high)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]) || (only_positive && values[i] <= 0.0))
            continue;
        *low = fmin(*low, values[i]);
        *high = fmax(*high, values[i]);
    }
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A running sum would carry the rounding error of one huge loss along the whole curve. */
void curve_smooth(const double *values, size_t count, double *smooth)
{
    size_t widest = smaller(count / 80 + 2, 250);
    for (size_t i = 0; i < count; i++) {
        size_t half = smaller(widest, smaller(i, count - 1 - i)), used = 0;
        double sum = 0.0;
        for (size_t j = i - half; j <= i + half; j++) {
            if (!isfinite(values[j]))
                continue;
            sum += values[j];
            used++;
        }
        smooth[i] = isfinite(values[i]) ? sum / (double)used : (double)NAN;
    }
}

/* Writes the one or two points of a column in the order of x. */
static size_t put_extremes(const double *x, const double *y, size_t least, size_t most,
                           double *decimated_x, double *decimated_y)
{
    size_t first = smaller(least, most), second = least + most - first;
    decimated_x[0] = x[first];
    decimated_y[0] = y[first];
    if (second == first)
        return 1;
    decimated_x[1] = x[second];
    decimated_y[1] = y[second];
    return 2;
}

size_t curve_decimate(const double *x, const double *y, size_t count, double low, double high,
                      size_t columns, double *decimated_x, double *decimated_y)
{
    size_t written = 0, begin = 0;
    for (size_t column = 0; column < columns && begin < count; column++) {
        double edge = low + (high - low) * (double)(column + 1) / (double)columns;
        size_t least = count, most = count, end = begin;
        for (; end < count && (x[end] < edge || column + 1 == columns); end++) {
            if (!isfinite(y[end]))
                continue;
            if (least == count || y[end] < y[least])
                least = end;
            if (most == count || y[end] > y[most])
                most = end;
        }
        if (end > begin && least == count) {
            decimated_x[written] = x[begin];
            decimated_y[written++] = (double)NAN;
        } else if (end > begin) {
            written +=
                put_extremes(x, y, least, most, decimated_x + written, decimated_y + written);
        }
        begin = end;
    }
    return written;
}
