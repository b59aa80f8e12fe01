/* Round numbers along an axis, and their labels. */
#ifndef REPORT_TICKS_H
#define REPORT_TICKS_H

#include <stddef.h>

#define TICKS_MAX 24

struct ticks {
    size_t count;
    double value[TICKS_MAX];
    char label[TICKS_MAX][16];
};

/* Multiples of 1, 2 or 5 times a power of ten within [low, high], about `wanted` and never more
 * than that plus one. Needs low < high, both finite. */
void ticks_linear(double low, double high, size_t wanted, struct ticks *ticks);
/* Powers of ten (every k-th when there are many; also their 2- and 5-fold when there are few)
 * within the range whose decimal logarithms are `low` < `high`, both finite. */
void ticks_logarithmic(double low, double high, size_t wanted, struct ticks *ticks);
/* Widens [low, high] to multiples of a round step, so that the outer ticks sit on the edges. */
void ticks_round_out(double *low, double *high, size_t wanted);

#endif
