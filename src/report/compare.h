/* Several runs on one page. */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "report/page.h"
#include "report/plot.h"

/* As many as there are looks of curves. */
#define COMPARE_MOST PLOT_CURVES

struct compared {
    struct run run;
    char *name;       /* of the folder, or its path where two folders have the same name */
    char *scene;      /* last part of its path; "" when not known */
    const char *look; /* of its curves and cells: "r1" ... */
};

struct comparison {
    struct compared runs[COMPARE_MOST];
    size_t count;
};

/* Sections of the page, in order. */
void compare_head(struct base_text *page, const struct comparison *comparison);
void compare_results(struct base_text *page, const struct comparison *comparison);
void compare_curves(struct base_text *page, const struct comparison *comparison);
void compare_pictures(struct base_text *page, const struct comparison *comparison);
void compare_settings(struct base_text *page, const struct comparison *comparison);

#endif
