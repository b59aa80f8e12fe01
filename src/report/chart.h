/* Draws charts as SVG: ticks of axes, and the results of `vknerf bench`. */
#ifndef REPORT_CHART_H
#define REPORT_CHART_H

#include <stddef.h>

#include "base/base.h"

/* ---- axes (ticks.c) -------------------------------------------------------------------------- */

#define TICKS_MAX 24

struct ticks {
    size_t count;
    double value[TICKS_MAX];
    char label[TICKS_MAX][16];
};

/* Sets ticks at multiples of 1, 2 or 5 times a power of ten within [low, high]: about `wanted`, at
 * most one more. Needs low < high, both finite. */
void ticks_linear(double low, double high, size_t wanted, struct ticks *ticks);
/* Sets ticks at powers of ten within [10^low, 10^high]: every k-th power where there are many, also
 * 2 and 5 times the power where there are few. Needs low < high, both finite. */
void ticks_logarithmic(double low, double high, size_t wanted, struct ticks *ticks);
/* Returns the largest number 1, 2 or 5 times a power of ten that is at most `most`, above 0. */
double ticks_round_down(double most);
/* Extends [low, high] to multiples of a round step, so that the outer ticks are at its ends. */
void ticks_round_out(double *low, double *high, size_t wanted);

/* ---- bench.svg (bench_chart.c, bench_sampling.c) --------------------------------------------- */

struct cJSON;

/* User units, about one pixel each. */
#define CHART_WIDTH 1000.0
#define CHART_LEFT  70.0

#define CHART_COLORS 10u
extern const char *const chart_colors[CHART_COLORS];

/* Adds a text with a CSS class: "middle", "end", "start", "title" or "faint". */
void chart_text(struct base_text *svg, double x, double y, const char *kind, const char *text);
/* Formats "12.3 GFLOP/s". */
void chart_rate(double rate, const char *unit, char *text, size_t size);
/* Returns the number of an object's member; NaN where it is missing. */
double chart_number_of(const struct cJSON *object, const char *name);

/* Draws PSNR over training seconds from the results' object "sampling" into the SVG, from height
 * `y` on. Draws nothing if `sampling` is NULL. Returns the y where the next drawing starts. */
double chart_sampling(struct base_text *svg, const struct cJSON *sampling, double y);

#endif
