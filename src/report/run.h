/* The files of a run directory as report.html shows them, read and checked. */
#ifndef REPORT_RUN_H
#define REPORT_RUN_H

#include "report/metrics.h"

struct run_metrics {
    size_t count; /* lines that count: the last written of those that rise */
    /* [column][line]; steps rise; what a line does not have is NaN */
    double *values[RUN_COLUMNS];
};

/* Paths are relative to the run directory; NULL when absent. */
struct run_picture {
    const char *name, *render, *target, *error, *depth, *opacity;
    double psnr, ssim;
};

struct run_evaluation {
    double step, seconds, psnr, ssim;
    struct run_picture *pictures; /* of a few views: render and target */
    size_t picture_count;
};

/* A test view of a scene with times. NaN when absent. */
struct run_view {
    double time, psnr, background_psnr; /* the last of a picture of the background alone */
};

struct run_pass {
    const char *name;
    double share;        /* of the step, 0..1 */
    double milliseconds; /* per step */
    /* Of profiled runs, per step. */
    double flops, bytes, atomics;
    double floor_milliseconds; /* least by the device's peaks */
    const char *bound;         /* by what */
};

struct run_buffer {
    const char *name;
    double bytes;
};

/* "profile" of summary.json: what holds for all passes. NaN when absent. */
struct run_profile {
    double steps, periods;
    double idle_milliseconds, interval_idle_milliseconds; /* per step */
    double rays, marched_samples, live_samples;           /* per step */
    double peak_flops, peak_bytes, peak_atomics;          /* per second */
};

/* "sampling" of summary.json, means since training began or went on. NaN and NULL when absent. */
struct run_sampling {
    const char *kind;
    double rays_per_second;
    double evaluated, live; /* samples of a ray */
    double empty_share;     /* of a ray's steps that the occupancy grid leaves out */
    double behind_share;    /* of evaluated samples that do not count */
};

/* summary.json. Numbers are NaN and texts NULL when absent. */
/* Numbers that are not there are NaN. */
struct run_parallel {
    double ranks, exchange_share, exchange_bytes;
};

struct run_summary {
    bool present;
    double psnr, ssim, background_psnr, floaters, views, step, seconds, skipped_steps;
    const char *background, *color_space, *precision, *path, *gradient_sums, *policy;
    const char *device, *driver, *scene, *status;
    const char *gradient_warning, *failure;
    struct run_evaluation *evaluations;
    struct run_picture *pictures;
    struct run_view *by_time; /* in order of time; those without come last */
    struct run_pass *passes;
    struct run_buffer *buffers;
    struct run_profile profile;
    struct run_sampling sampling;
    struct run_parallel parallel;
    size_t evaluation_count, picture_count, by_time_count, pass_count, buffer_count;
};

struct run {
    const char *folder;
    struct cJSON *config, *summary_json; /* strings of `summary` point into the latter */
    struct run_metrics metrics;
    struct run_summary summary;
};

/* Fails with VKN_BAD_INPUT and a message that names file and field. `folder` must outlive `run`. A
 * torn last line of metrics.jsonl is left out; summary.json may be absent. On failure there is
 * nothing to free. */
vkn_status run_read(const char *folder, struct run *run);
void run_free(struct run *run);

/* Parts of run_read. */
vkn_status run_read_metrics(const char *path, struct run_metrics *metrics);
vkn_status run_read_summary(const char *path, const struct cJSON *json,
                            struct run_summary *summary);
void run_free_summary(struct run_summary *summary); /* also after a failure */

/* PSNR or SSIM of the test views by evaluation, those with both a step and a value. One allocation
 * at `steps`, which the caller frees. */
struct run_series {
    size_t count;
    double *steps, *seconds, *values; /* seconds: NaN where not known */
};
enum run_quality { RUN_TEST_PSNR, RUN_TEST_SSIM };
vkn_status run_test_quality(const struct run *run, enum run_quality quality,
                            struct run_series *series);

/* The last finite value of a column; NaN when there is none. */
double run_last(const struct run_metrics *metrics, enum run_column column);
/* Whether any line has another value than the one that means nothing happened. */
bool run_differs(const struct run_metrics *metrics, enum run_column column, double usual);

#endif
