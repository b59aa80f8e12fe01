/* Several runs on one page. */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "report/page.h"
#include "report/chart.h"

/* As many as there are looks of curves. */
#define COMPARE_MOST PLOT_CURVES

struct compared {
    struct run run;
    char *name;            /* of the folder, or its path where two folders have the same name */
    char *scene;           /* last part of its path; "" when not known */
    const char *css_class; /* of its curves and cells: "r1" ... */
};

struct comparison {
    struct compared runs[COMPARE_MOST];
    size_t count;
};

/* ---- tables of measures ---------------------------------------------------------------------- */

enum better { BETTER_NONE, BETTER_HIGH, BETTER_LOW };
enum format { FORMAT_NUMBER, FORMAT_COUNT, FORMAT_DURATION, FORMAT_QUANTITY };

/* A column with a number of each run, in which the best is bold. */
struct measure {
    const char *title;
    double (*value)(const struct run *run, double seconds); /* those that all runs trained for */
    enum better better;
    enum format format;
    int digits;
};

/* A table, a row for each run. `text_of`: of the column `second`; NULL: not known. */
void compare_table(struct base_text *page, const struct comparison *comparison, const char *name,
                   const char *second, const char *(*text_of)(const struct run *run),
                   const struct measure *measures, size_t count);
/* How long each run was trained at the least. */
double compare_seconds(const struct comparison *comparison);
/* Mean of a column over the lines that have it; NaN where none does. */
double compare_mean(const struct run *run, enum run_column column);

/* Sections of the page, in order. */
void compare_head(struct base_text *page, const struct comparison *comparison);
void compare_results(struct base_text *page, const struct comparison *comparison);
void compare_samples(struct base_text *page, const struct comparison *comparison);
void compare_gradients(struct base_text *page, const struct comparison *comparison);
void compare_curves(struct base_text *page, const struct comparison *comparison);
void compare_pictures(struct base_text *page, const struct comparison *comparison);
void compare_settings(struct base_text *page, const struct comparison *comparison);

#endif
