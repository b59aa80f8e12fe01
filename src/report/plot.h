/* Curves against the training step or time, as SVG. */
#ifndef REPORT_PLOT_H
#define REPORT_PLOT_H

#include "base/base.h"

#define PLOT_CURVES 12

struct plot_curve {
    const char *name; /* for the legend */
    const char *look; /* class of its colour, page_style: "c1", "mark", "r1"; ours, not escaped */
    size_t count;
    const double *x, *values; /* x does not decrease; NaN leaves a gap */
    bool marked;              /* few points with a dot each, such as evaluations; not smoothed */
};

struct plot {
    const char *id, *title; /* of the figure; ours, not escaped */
    const char *unit;       /* behind the last value in the caption: "dB", "/s" or "" */
    int decimals;           /* of that value; 0: three digits and a prefix (k, M); -1: all digits */
    bool logarithmic;       /* values that are not positive are left out */
    bool from_zero;         /* the linear axis starts at 0 */
    bool smooth;            /* a strong smooth curve over a faint raw one */
    bool crowded;           /* smooth curves without the raw ones, and without dots */
    bool stairs;            /* values hold until the next point */
    bool unordered;         /* the last value is as any other: not in the caption */
    size_t curve_count;
    struct plot_curve curves[PLOT_CURVES];
    const char *x_name;    /* "step", "min", "time"; ours */
    const double *seconds; /* of the first curve's points, as a second row of labels; NULL: none */
};

/* A <figure> with caption, legend and chart; a note inside when there is nothing to draw. */
void plot_figure(struct base_text *page, const struct plot *plot);

#endif
