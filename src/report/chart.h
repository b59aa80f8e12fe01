/* Draws charts as SVG: curves against step or time, and the results of vknerf bench. */
#ifndef REPORT_CHART_H
#define REPORT_CHART_H

#include <stddef.h>

#include "base/base.h"

/* ---- series (curves.c) ----------------------------------------------------------------------- */

/* Mean over a centred window of about 1/40 of the series, at most 501 values (narrower towards the
 * ends, so that nothing is dragged in from one side). Values that are not finite are left out of
 * the mean and stay NaN. */
void curve_smooth(const double *values, size_t count, double *smooth);

/* Points that draw the same picture as the `count` given: per column of [low, high] / `columns` the
 * smallest and the largest value, in order; a column without finite values gives one NaN (a gap).
 * `x` must not decrease. Writes at most 2 * columns points and returns their number. */
size_t curve_decimate(const double *x, const double *y, size_t count, double low, double high,
                      size_t columns, double *decimated_x, double *decimated_y);

/* Widens [*low, *high] by the finite values (only the positive ones for a logarithmic axis). */
void curve_range(const double *values, size_t count, int only_positive, double *low, double *high);

/* ---- axes (ticks.c) -------------------------------------------------------------------------- */

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

/* ---- curves (plot.c) ------------------------------------------------------------------------- */

#define PLOT_CURVES 12

struct plot_curve {
    const char *name;      /* for the legend */
    const char *css_class; /* class of its colour, page_style: "c1", "mark", "r1"; ours, not escaped
                            */
    size_t count;
    const double *x, *values; /* x does not decrease; NaN leaves a gap */
    bool dots;                /* few points with a dot each, such as evaluations; not smoothed */
};

struct plot {
    const char *id, *title; /* of the figure; ours, not escaped */
    const char *unit;       /* behind the last value in the caption: "dB", "/s" or "" */
    int decimals;           /* of that value; 0: three digits and a prefix (k, M); -1: all digits */
    bool logarithmic;       /* values that are not positive are left out */
    bool from_zero;         /* the linear axis starts at 0 */
    bool smooth;            /* a strong smooth curve over a faint raw one */
    bool hide_raw;          /* smooth curves without the raw ones, and without dots */
    bool stepwise;          /* values hold until the next point */
    bool hide_last;         /* the last value is as any other: not in the caption */
    size_t curve_count;
    struct plot_curve curves[PLOT_CURVES];
    const char *x_name;    /* "step", "min", "time"; ours */
    const double *seconds; /* of the first curve's points, as a second row of labels; NULL: none */
};

/* A <figure> with caption, legend and chart; a note inside when there is nothing to draw. */
void plot_figure(struct base_text *page, const struct plot *plot);

/* ---- bench.svg (bench_chart.c, bench_sampling.c) --------------------------------------------- */

struct cJSON;

/* User units, about one pixel each. */
#define CHART_WIDTH 1000.0
#define CHART_LEFT  70.0

#define CHART_COLORS 10u
extern const char *const chart_colors[CHART_COLORS];

/* A text of a class of the style: "middle", "end", "start", "title", "faint". */
void chart_text(struct base_text *svg, double x, double y, const char *kind, const char *text);
/* Return the text or the number of a member; "" or NaN where there is none. */
const char *chart_text_of(const struct cJSON *object, const char *name);
double chart_number_of(const struct cJSON *object, const char *name);

/* PSNR over seconds of training, of "sampling" of the results; NULL: nothing. Returns where what
 * comes next begins. */
double chart_sampling(struct base_text *svg, const struct cJSON *sampling, double y);

#endif
