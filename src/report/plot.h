/* Curves against the training step, as SVG. */
#ifndef REPORT_PLOT_H
#define REPORT_PLOT_H

#include "base/base.h"

#define PLOT_CURVES 3

struct plot_curve {
    const char *name;     /* for the legend; ours, not escaped */
    const double *values; /* one per step; NaN leaves a gap */
};

struct plot {
    const char *id, *title; /* of the figure; ours, not escaped */
    const char *unit;       /* behind the last value in the caption: "dB", "/s" or "" */
    int decimals;           /* of that value; 0: three digits and a prefix (k, M); -1: all digits */
    bool logarithmic;       /* values that are not positive are left out */
    bool from_zero;         /* the linear axis starts at 0 */
    bool smooth;            /* a strong smooth curve over a faint raw one */
    bool stairs;            /* values hold until the next point */
    size_t count;           /* of steps */
    const double *steps, *seconds;
    size_t curve_count;
    struct plot_curve curves[PLOT_CURVES];
    /* Marked single points, such as evaluations. */
    const char *mark_name;
    size_t mark_count;
    const double *mark_steps, *mark_values;
};

/* A <figure> with caption, legend and chart; a note inside when there is nothing to draw. */
void plot_figure(struct base_text *page, const struct plot *plot);

#endif
