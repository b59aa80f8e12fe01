/* Reads and checks the files of a run directory for reports. */
#ifndef REPORT_RUN_H
#define REPORT_RUN_H

#include "report/metrics.h"

struct run_metrics {
    size_t count; /* lines, without lines of steps that were trained again later */
    /* [column][line]; steps increase strictly; NaN where a line has no value */
    double *values[RUN_COLUMNS];
};

/* Pictures of a view: paths relative to the run directory, NULL when missing. */
struct run_picture {
    const char *name, *render, *target, *error, *depth, *opacity;
    double psnr, ssim;
};

struct run_evaluation {
    double step, seconds, psnr, ssim; /* psnr, ssim: of the views that all evaluations measured */
    struct run_picture *pictures;     /* renders and targets of a few views */
    size_t picture_count;
};

/* Quality of a test view. NaN and NULL when missing. */
struct run_view {
    const char *name;
    double psnr, ssim;
};

/* summary.json: what C code reads of it. Numbers are NaN and texts NULL when missing. */
struct run_summary {
    bool is_read; /* there is a summary.json */
    double psnr, ssim, step, seconds;
    const char *precision, *device, *scene, *status, *gradient_warning, *failure;
    struct run_evaluation *evaluations;
    struct run_picture *pictures;
    struct run_view *per_view;
    size_t evaluation_count, picture_count, per_view_count;
};

struct run {
    const char *folder;
    struct cJSON *config, *summary_json; /* strings of `summary` point into summary_json */
    struct cJSON *appearance;            /* appearance.json; NULL: there is none */
    struct run_metrics metrics;
    struct run_summary summary;
};

/* Reads a run directory. VKN_BAD_INPUT names file and field. `folder` must outlive `run`. Ignores
 * an incomplete last line of metrics.jsonl; summary.json and appearance.json may be missing. Frees
 * *run after a failure. */
vkn_status run_read(const char *folder, struct run *run);
void run_free(struct run *run);

/* Read one file each for run_read. */
vkn_status run_read_metrics(const char *path, struct run_metrics *metrics);
vkn_status run_read_summary(const char *path, const struct cJSON *json,
                            struct run_summary *summary);
void run_free_summary(struct run_summary *summary); /* also after a failure */

/* Returns the last finite value of a column; NaN when there is none. */
double run_last(const struct run_metrics *metrics, enum run_column column);
/* Adds the log as a JSON object with an array per column, null where a line has no value. Columns
 * without values are left out. Of more than RUN_JSON_LINES lines the arrays have the means of
 * groups of lines, of columns of counts the last values; "low" and "high" then have the extremes.
 */
#define RUN_JSON_LINES 1000
void run_metrics_json(const struct run_metrics *metrics, struct base_text *json);

#endif
