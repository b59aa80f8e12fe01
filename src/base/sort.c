/* Sorts numbers. */
#include <stdlib.h>

#include "base/base.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void base_sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, by_value);
}

double base_median(double *values, size_t count)
{
    base_sort(values, count);
    return count > 0 ? 0.5 * (values[(count - 1) / 2] + values[count / 2]) : 0;
}
