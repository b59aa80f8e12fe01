/* Draws charts as SVG: curves against step or time, and the results of `vknerf bench`. */
#ifndef REPORT_CHART_H
#define REPORT_CHART_H

#include <stddef.h>

#include "base/base.h"

/* ---- series (curves.c) ----------------------------------------------------------------------- */

/* Smooths a series by the mean over a centred window of about 1/40 of the series, at most 501
 * values. The window is narrower near the ends, so that it stays symmetric. Values that are not
 * finite are ignored and stay NaN. `smooth`: [count]. */
void curve_smooth(const double *values, size_t count, double *smooth);

/* Reduces a curve to points that draw the same picture: in each of `columns` columns of [low, high]
 * the smallest and the largest value, in order. A column without finite values gives one NaN (a
 * gap). `x` must not decrease. Writes at most 2 * columns points and returns their number. */
size_t curve_decimate(const double *x, const double *y, size_t count, double low, double high,
                      size_t columns, double *decimated_x, double *decimated_y);

/* Extends [*low, *high] by all finite values, or by the positive ones for a logarithmic axis. */
void curve_range(const double *values, size_t count, int only_positive, double *low, double *high);

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

/* ---- curves (plot.c) ------------------------------------------------------------------------- */

#define PLOT_CURVES 12

/* One curve of a chart. */
struct plot_curve {
    const char *name;      /* for the legend */
    const char *css_class; /* CSS class of its colour in page_style: "c1", "r1"; not escaped */
    size_t count;
    const double *x, *values; /* x does not decrease; NaN leaves a gap */
    bool dots;                /* draws a dot at each point and does not smooth (evaluations) */
};

struct plot {
    const char *id, *title; /* of the figure; not escaped */
    const char *unit;       /* of the last value in the caption: "dB", "/s" or "" */
    int decimals;     /* of the last value; 0: 3 digits and a unit prefix (k, M); -1: 7 digits */
    bool logarithmic; /* logarithmic y axis; leaves out values that are not positive */
    bool from_zero;   /* the linear axis starts at 0 */
    bool smooth;      /* draws a strong smooth curve over the faint raw one */
    bool hide_raw;    /* draws smooth curves only: no raw curves, no dots */
    bool stepwise;    /* step function: a value holds until the next point */
    bool hide_last;   /* leaves the last value out of the caption */
    size_t curve_count;
    struct plot_curve curves[PLOT_CURVES];
    const char *x_name;    /* "step", "min", "time"; not escaped */
    const double *seconds; /* of the first curve's points, for a row of time labels; or NULL */
};

/* Adds a <figure> with caption, legend and chart, or with a note when there is nothing to draw. */
void plot_figure(struct base_text *page, const struct plot *plot);

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
