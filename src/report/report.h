/* report: writes progress lines, metrics.jsonl, event files, report.html, trace.json and drawings
 * of scenes and devices. Depends on neither Vulkan nor the trainer. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/base.h"

struct inspection;   /* scene.h */
struct scene_camera; /* scene.h */

/* One line of metrics.jsonl; docs/runs.md describes the fields. */
struct report_metrics {
    uint64_t step;  /* steps finished */
    double seconds; /* training time, excluding evaluation and saving, over all resumes */
    double loss;    /* of the rays' colours, mean over the rays since the previous line */
    /* The other parts of the loss, weights included; NaN: no part of the loss. */
    double distortion_loss, interlevel_loss, coarse_loss;
    double psnr; /* dB of the training rays since the previous line */
    double learning_rate;
    double loss_scale;
    uint64_t skipped_steps; /* since the start of the run */
    double underflowed;     /* share of the activations' gradients that underflowed in f16 since the
                           previous line */
    double rays_per_second;
    double samples_per_second; /* live samples, which have a gradient */
    double marched_per_second; /* samples that the field was evaluated at */
    double grad_norm;          /* of the unscaled gradient, last step; negative when not measured */
    uint64_t gpu_memory_bytes; /* device memory held by this process */
    double idle_share;         /* of the device's time since the previous line; NaN: unknown */
    uint64_t image_downscale;  /* factor by which images uploaded now are scaled down */
    uint64_t images_exchanged; /* image strips uploaded since this process started */
    double exchange_share; /* share of the time since the previous line spent in all-reduces; NaN:
                              a single rank */
    double kept_share;     /* share of the last step's live samples that got gradients */
    double keep_weight;    /* mean factor of these samples' gradients; NaN, both: all have 1 */
};

/* The log `run`/metrics.jsonl. Opening drops lines of steps after `resume_step`, because these
 * steps are trained again; 0 starts a new file. report_log_add appends a line. */
struct report_log;
vkn_status report_log_open(const char *run, uint64_t resume_step, struct report_log **log);
vkn_status report_log_add(struct report_log *log, const struct report_metrics *metrics);
void report_log_close(struct report_log **log);

/* A TensorBoard event file, `run`/events.out.tfevents.TIME.HOST. Opening creates a new file, which
 * supersedes older files of the folder for steps after `resume_step` (0: for all steps). Each call
 * appends one complete record. Tags are "train/loss", "eval/psnr" and so on. Numbers are 32-bit
 * floats; report_events_add leaves out NaN. */
struct report_events;
vkn_status report_events_open(const char *run, uint64_t resume_step, struct report_events **events);
/* Adds the scalars of a log line. */
vkn_status report_events_add(struct report_events *events, const struct report_metrics *metrics);
vkn_status report_events_add_scalar(struct report_events *events, uint64_t step, const char *tag,
                                    double value);
/* Adds a picture file, scaled down when a side is longer than 640 pixels. */
vkn_status report_events_add_picture(struct report_events *events, uint64_t step, const char *tag,
                                     const char *path);
void report_events_close(struct report_events **events);

/* Begins progress on standard error: a line rewritten in place on a terminal, else a plain line
 * every few seconds; nothing if the job is quiet. Every update is also reported to the job's
 * callback. `job` NULL: neither. The ETA is computed from `total_steps` and `total_seconds` (0:
 * unlimited). */
struct report_progress;
struct vkn_job;
vkn_status report_progress_begin(const struct vkn_job *job, uint64_t total_steps,
                                 double total_seconds, struct report_progress **progress);
void report_progress_train(struct report_progress *progress, const struct report_metrics *metrics,
                           double steps_per_second);
/* Updates the line of a count, "evaluating 3/25" or "decoding images 40/100", with rate and ETA. */
void report_progress_count(struct report_progress *progress, const char *what, size_t done,
                           size_t total);
/* Shows the latest update and ends an open line, so that other output starts on a new line. The
 * next update opens a line again. */
void report_progress_pause(struct report_progress *progress);
/* Shows the latest update, ends the line, frees and nulls *progress, which may be NULL. */
void report_progress_end(struct report_progress **progress);

/* Writes a self-contained page about a run (inline CSS, SVG curves, embedded pictures) from
 * config.json, metrics.jsonl, summary.json and views/ of the run directory. summary.json may be
 * missing (interrupted run). `out`: NULL for `run`/report.html. */
vkn_status report_write_html(const char *run, const char *out);
/* Writes a page that compares 2 to 12 runs. */
vkn_status report_write_comparison(const char *const *runs, size_t count, const char *out);

/* The estimated exposures in a run directory (scene.appearance), which report.html draws. */
#define REPORT_APPEARANCE "appearance.json"
/* The picture of the error map in a run directory (batch.by_error), which report.html shows. */
#define REPORT_ERROR_MAP  "error_map.png"

/* ---- trace.json: timelines for Perfetto or chrome://tracing --------------------------------- */

enum trace_track { TRACE_HOST, TRACE_DEVICE_INTERVALS, TRACE_DEVICE_PASSES, TRACE_TRACKS };

struct trace_event {
    const char *name; /* literal */
    enum trace_track track;
    double begin, end; /* seconds, all on one clock */
    uint64_t step;     /* step of a pass; last step of an update interval */
    double idle;       /* seconds without device work before a pass, or within an update interval */
};

struct trace {
    const char *device, *driver;
    const char *clocks; /* text: how the clocks of host and device were aligned */
    double deviation;   /* largest error of the alignment, seconds; negative: unknown */
    double origin;      /* time that is 0 in the file, seconds */
    const struct trace_event *events;
    size_t count, lost; /* lost: number of events that were dropped */
};

vkn_status report_write_trace(const char *path, const struct trace *trace);

/* ---- drawings -------------------------------------------------------------------------------- */

/* Both functions return a self-contained SVG that the caller frees; NULL with an error recorded.
 *
 * Draws a scene from above, from the front and from the right: the cameras' frusta coloured by
 * split, the cubes of training space, the axes, the focus point and the sparse points. */
char *report_camera_drawing(const struct inspection *inspection);

/* Draws the results of `vknerf bench` (`json`, see docs/bench.md): rooflines with matrix products
 * and MLPs, each operation's rates on the case that most backends have (the fastest of such cases),
 * and PSNR over seconds of a comparison of samplings. */
char *report_bench_chart(const char *json);

/* Writes the page of a device's certificate (`json`, see docs/gpus.md). */
struct cJSON;
vkn_status report_write_certificate(const struct cJSON *json, const char *path);

/* ---- refinement of cameras (vknerf refine) --------------------------------------------------- */

/* A view before and after. */
struct report_refined_view {
    const struct scene_camera *before, *after; /* in one training space */
    const char *split;                         /* "train", "val" or "test" */
    double pixels, degrees; /* movement: of points in the view's frustum, of the camera */
    double distance;        /* movement of the camera, in the dataset's units */
    bool at_limit;          /* the view would move further than refine.limit */
    bool rolled_back;       /* the view keeps its pose; the movement is that before */
    double fit;             /* PSNR of the field that refined the view, dB; NaN: unknown */
    bool misfits;           /* `fit` is far below that of other views */
    const char *test_view;  /* name of its pictures, "test_003"; NULL: not a test view */
    double psnr[2];         /* of a test view before and after, dB, mean over the seeds; else NaN */
};
/* Quality of two trainings with the same seed, with the cameras before and after. */
struct report_refined_seed {
    uint64_t seed;
    double psnr[2], ssim[2]; /* means over the test views; PSNR in dB */
    char *runs[2];           /* run directories */
};
/* Everything on the page of a refinement. Without test views there are no seeds. */
struct report_refinement {
    const char *scene, *refined; /* paths of the two scenes */
    const char *device, *driver;
    const char *verdict;      /* a sentence, which says what to do */
    double difference, noise; /* of PSNR: after - before, and its standard error; dB */
    uint64_t steps;           /* of each training */
    double seconds;           /* of the call that wrote the page */
    double limit;             /* refine.limit */
    double scale;             /* training units per unit of the dataset */
    const struct report_refined_view *views;
    size_t view_count;
    const struct report_refined_seed *seeds;
    size_t seed_count;
};
/* Writes the page: the verdict, quality by seed, the cameras before and after from three sides, the
 * movement of each view, pictures of test views side by side. Numbers that are not finite are shown
 * as missing; texts may be NULL. */
vkn_status report_write_refinement(const struct report_refinement *refinement, const char *out);

/* ---- numbers -------------------------------------------------------------------------------- */

/* Returns the PSNR in dB, at most 100, of a mean squared error of colours in 0..1; NaN for NaN. */
double report_psnr(double mean_squared_error);

#endif
