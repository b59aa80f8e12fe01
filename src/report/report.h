/* report: what people read of a run, a scene or a device: progress line, metrics.jsonl,
 * report.html, trace.json, drawings. Works on files and numbers only; knows neither Vulkan nor the
 * trainer. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/base.h"

struct inspection; /* scene.h */

/* One line of metrics.jsonl; docs/runs.md has the units. */
struct report_metrics {
    uint64_t step;  /* steps finished */
    double seconds; /* training time, excluding evaluation and saving, over all resumes */
    double loss;    /* mean over the rays since the previous line */
    double psnr;    /* dB of the training rays since the previous line */
    double learning_rate;
    double loss_scale;
    uint64_t skipped_steps; /* since the start of the run */
    double underflowed; /* share of the activations' gradients that 16 bits turned into zero since
                       the previous line */
    double rays_per_second;
    double samples_per_second; /* live samples, those that carry a gradient */
    double marched_per_second; /* samples that the field was evaluated at */
    double grad_norm;          /* of the unscaled gradient, last step; negative when not measured */
    uint64_t gpu_memory_bytes; /* device memory held by this process */
    double idle_share;         /* of the device's time since the previous line; NaN: not known */
    uint64_t image_downscale;  /* of the training images that come to the device now */
    uint64_t images_exchanged; /* pieces of training images that came there since this process began
                                */
    double exchange_share; /* of the time since the previous line, in which gradients were exchanged
                              with other ranks; NaN: there are none */
};

/* Appends metrics lines to `run`/metrics.jsonl. `resume_step`: lines of steps after it are dropped
 * (they are trained again); 0 starts a fresh file. */
struct report_log;
vkn_status report_log_open(const char *run, uint64_t resume_step, struct report_log **log);
vkn_status report_log_add(struct report_log *log, const struct report_metrics *metrics);
void report_log_close(struct report_log **log);

/* Event files for TensorBoard, `run`/events.out.tfevents.TIME.HOST: every opening makes a new one,
 * which supersedes what older ones of the folder say of steps after `resume_step` (0: of all). Each
 * call appends one whole record at once. Tags are "train/loss", "eval/psnr" and so on; numbers are
 * kept as 32-bit floats; what is NaN is left out of a log line. */
struct report_events;
vkn_status report_events_open(const char *run, uint64_t resume_step, struct report_events **events);
/* The scalars of a log line. */
vkn_status report_events_add(struct report_events *events, const struct report_metrics *metrics);
vkn_status report_events_add_scalar(struct report_events *events, uint64_t step, const char *tag,
                                    double value);
/* A picture file, made smaller when a side is longer than 640 pixels. */
vkn_status report_events_add_picture(struct report_events *events, uint64_t step, const char *tag,
                                     const char *path);
void report_events_close(struct report_events **events);

/* Progress on standard error: one line rewritten in place on a terminal, a plain line every few
 * seconds otherwise; nothing when quiet. `total_steps` or `total_seconds` (0: unlimited) give the
 * ETA. */
struct report_progress;
vkn_status report_progress_begin(bool quiet, uint64_t total_steps, double total_seconds,
                                 struct report_progress **progress);
void report_progress_train(struct report_progress *progress, const struct report_metrics *metrics,
                           double steps_per_second);
/* For other long work: "evaluating 3/25", "decoding images 40/100", with rate and ETA. */
void report_progress_count(struct report_progress *progress, const char *what, size_t done,
                           size_t total);
/* Shows the latest update and ends the line, if one is open, so that other output (a warning, a
 * result) starts at the margin; the next update opens a new line. */
void report_progress_pause(struct report_progress *progress);
/* The same, and frees. Nothing happens when *progress is NULL. */
void report_progress_end(struct report_progress **progress);

/* Writes a page about a run from config.json, metrics.jsonl, summary.json and views/ of the run
 * directory: self-contained (inline CSS, SVG curves, embedded pictures). summary.json may be absent
 * (interrupted run). `out`: NULL for `run`/report.html. */
vkn_status report_write_html(const char *run, const char *out);
/* The same for 2 to 12 runs side by side. */
vkn_status report_write_comparison(const char *const *runs, size_t count, const char *out);

/* ---- trace.json: timelines for Perfetto or chrome://tracing --------------------------------- */

enum trace_track { TRACE_HOST, TRACE_DEVICE_INTERVALS, TRACE_DEVICE_PASSES, TRACE_TRACKS };

struct trace_event {
    const char *name; /* literal */
    enum trace_track track;
    double begin, end; /* seconds, all on one clock */
    uint64_t step;     /* that it belongs to or reaches */
    double idle;       /* of devices: seconds without work before a pass, or within a period */
};

struct trace {
    const char *device, *driver;
    const char *clocks; /* how the tracks were aligned, for people */
    double deviation;   /* seconds that the alignment may be off; negative: not known */
    double origin;      /* time 0 of the file */
    const struct trace_event *events;
    size_t count, lost; /* lost: events that were not kept */
};

vkn_status report_write_trace(const char *path, const struct trace *trace);

/* ---- drawings -------------------------------------------------------------------------------- */

/* Self-contained SVGs in fresh memory that the caller frees; NULL with an error recorded.
 *
 * The cameras of a scene from above and from two sides with what they see of their surroundings,
 * training and other views apart, the cubes of training space, its axes, what the cameras look at,
 * and the sparse points. */
char *report_camera_drawing(const struct inspection *inspection);

/* The results of vknerf bench: rooflines with the products and MLPs under them, then bars: the
 * rates of all paths on one case of each operation, of those that most paths have the fastest;
 * of a comparison of samplings PSNR over seconds. `json` is what docs/bench.md describes. */
char *report_bench_chart(const char *json);

/* ---- numbers -------------------------------------------------------------------------------- */

/* dB of a mean squared error on [0, 1] colours, capped at 100 dB; NaN stays NaN. */
double report_psnr(double mean_squared_error);

#endif
