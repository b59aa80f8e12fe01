/* Writes the page that compares several runs. */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "report/page.h"
#include "report/chart.h"

/* Most runs on a page: one CSS class of curves for each. */
#define COMPARE_MOST PLOT_CURVES

struct compared { /* a run on the page */
    struct run run;
    char *name;            /* the folder's; its path where two folders have the same name */
    char *scene;           /* last part of the scene's path; "" when unknown */
    const char *css_class; /* CSS class of the run's curves and cells: "r1" ... */
};

struct comparison {
    struct compared runs[COMPARE_MOST];
    size_t count;
};

/* ---- tables of measures ---------------------------------------------------------------------- */

enum better { BETTER_NONE, BETTER_HIGH, BETTER_LOW };
enum format { FORMAT_NUMBER, FORMAT_COUNT, FORMAT_DURATION, FORMAT_QUANTITY };

/* A table's column with one number per run; the best number is bold. */
struct measure {
    const char *title;
    /* `seconds`: training time that all runs have reached, see compare_seconds. */
    double (*value)(const struct run *run, double seconds);
    enum better better;
    enum format format;
    int digits;
};

/* Adds a table with a row per run. Column 2: title `second`, texts of `text_of` (NULL: "–"). */
void compare_table(struct base_text *page, const struct comparison *comparison, const char *name,
                   const char *second, const char *(*text_of)(const struct run *run),
                   const struct measure *measures, size_t count);
/* Returns the training time of the shortest run in seconds; NaN when any run's is unknown. */
double compare_seconds(const struct comparison *comparison);
/* Returns the mean of a column over the lines that have a value; NaN when none has. */
double compare_mean(const struct run *run, enum run_column column);

/* Add the page's header and its sections, in this order. */
void compare_head(struct base_text *page, const struct comparison *comparison);
void compare_results(struct base_text *page, const struct comparison *comparison);
void compare_samples(struct base_text *page, const struct comparison *comparison);
void compare_gradients(struct base_text *page, const struct comparison *comparison);
void compare_curves(struct base_text *page, const struct comparison *comparison);
void compare_pictures(struct base_text *page, const struct comparison *comparison);
void compare_settings(struct base_text *page, const struct comparison *comparison);

#endif
