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

/* A test view of a dynamic scene. NaN when missing. */
struct run_view {
    double time, psnr, background_psnr; /* background_psnr: of the background alone */
};

struct run_pass {
    const char *name;
    double share;        /* of the step's time, 0..1 */
    double milliseconds; /* per step */
    /* Per step, of profiled runs only. */
    double flops, bytes, atomics;
    double floor_milliseconds; /* least time possible at the device's peak rates */
    const char *bound;         /* the peak that limits the pass */
};

struct run_buffer {
    const char *name;
    double bytes;
};

/* "profile" of summary.json: numbers of the whole step. NaN when missing. */
struct run_profile {
    double steps, intervals;
    double idle_milliseconds, interval_idle_milliseconds; /* per step */
    double rays, marched_samples, live_samples;           /* per step */
    double peak_flops, peak_bytes, peak_atomics;          /* per second */
};

/* "sampling" of summary.json: means since training (re)started. NaN or NULL when missing. */
struct run_sampling {
    const char *kind;
    double rays_per_second;
    double evaluated_per_ray, live_per_ray; /* samples */
    double empty_share;    /* share of a ray's steps that the occupancy grid skips */
    double not_live_share; /* share of evaluated samples that are not live */
};

/* "parallel" of summary.json. NaN when missing. */
struct run_parallel {
    double ranks, exchange_share, exchange_bytes;
};

/* summary.json. Numbers are NaN and texts NULL when missing. */
struct run_summary {
    bool is_read; /* there is a summary.json */
    double psnr, ssim, psnr_aligned, psnr_quadratic, background_psnr, floaters, depth_error, views,
        step, seconds, skipped_steps;
    const char *background, *color_space, *precision, *path, *gradient_sums, *policy;
    const char *device, *driver, *scene, *status;
    const char *gradient_warning, *failure;
    struct run_evaluation *evaluations;
    struct run_picture *pictures;
    struct run_view *by_time; /* sorted by time; views without a time last */
    struct run_pass *passes;
    struct run_buffer *buffers;
    struct run_profile profile;
    struct run_sampling sampling;
    struct run_parallel parallel;
    size_t evaluation_count, picture_count, by_time_count, pass_count, buffer_count;
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

/* PSNR or SSIM of the test views by evaluation; evaluations without a step or a value are left out.
 * The caller frees `steps`, the one allocation of all three arrays. */
struct run_series {
    size_t count;
    double *steps, *seconds, *values; /* seconds: NaN where unknown */
};
enum run_quality { RUN_TEST_PSNR, RUN_TEST_SSIM };
vkn_status run_test_quality(const struct run *run, enum run_quality quality,
                            struct run_series *series);

/* Returns the last finite value of a column; NaN when there is none. */
double run_last(const struct run_metrics *metrics, enum run_column column);
/* Returns whether any finite value of a column differs from `usual`. */
bool run_differs(const struct run_metrics *metrics, enum run_column column, double usual);

#endif
