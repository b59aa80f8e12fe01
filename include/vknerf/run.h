/* vknerf/run.h: trains, evaluates, renders and reports whole run directories.
 *
 * A run directory holds config.json (the effective configuration), metrics.jsonl,
 * checkpoint.safetensors, summary.json, views/ and report.html; docs/runs.md describes each. A
 * `run` to read may also be a checkpoint file. Texts of params stay owned by the caller; zero is
 * the default of every member. Progress goes to standard error, messages to the callback of
 * vkn_log_to. Memory that results and evaluations point to is owned by the library until they are
 * freed. Each vkn_..._free sets the pointer to NULL and accepts NULL. */
#ifndef VKNERF_RUN_H
#define VKNERF_RUN_H

#include <vknerf/renderer.h>

VKN_BEGIN_DECLARATIONS

/* Parameters of every job; NULL stands for all defaults. */
struct vkn_job {
    size_t size;                       /* see <vknerf/api.h> */
    const char *device, *shader_dir;   /* as in vkn_context_params */
    bool quiet;                        /* no progress */
    const volatile sig_atomic_t *stop; /* set by a signal handler, or atomically by a thread: the
                                          job ends soon with VKN_INTERRUPTED; may be NULL */
    bool low_priority;                 /* as in vkn_context_params. Needs `size` */
    /* Receives all progress of the job, also with `quiet`: the compilation of pipelines, and every
     * count that the progress line shows; for a training also "training", with the finished and
     * all steps. NULL: none. Both need `size`. */
    vkn_progress_callback *progress;
    void *progress_context; /* first argument of `progress` */
};

/* ---- quality ------------------------------------------------------------------------------- */

/* Quality of a view. */
struct vkn_evaluated_view {
    char name[32];     /* "test_003" */
    char *image;       /* path of the image file */
    double psnr, ssim; /* against the image, composited on the background in sRGB space, 8 bits */
    double time;       /* 0..1; NaN if the scene has no times */
    double background_psnr; /* of the background alone; see vkn_evaluation */
    double floaters;        /* see vkn_evaluation */
    double psnr_aligned;    /* at an aligned pose; NaN: not aligned. See vkn_evaluation */
    double psnr_affine, psnr_quadratic; /* after a correction of colours, see vkn_evaluation */
    double depth_error, depth_inliers;  /* see vkn_evaluation */
    size_t depths;                      /* known depths of the view */
};

/* Quality of a field. Owned by the library, valid until vkn_evaluation_free. */
struct vkn_evaluation {
    double psnr, ssim; /* means over the views with pixels that count, for ssim with windows that
                          count; NaN if there are none */
    /* Mean PSNR of the background alone, which is high for a small object on a wide background.
     * Only known for dynamic scenes whose images have transparent pixels; NaN for others. */
    double background_psnr;
    /* Mean share of a ray's weight nearer than half the distance to the view's nearest point in the
     * sparse model (the 1 % nearest points are ignored): space that should be empty. NaN without a
     * sparse model. */
    double floaters;
    struct vkn_evaluated_view **views; /* [view_count] */
    size_t view_count;                 /* evaluated views */
    enum vkn_split split;              /* of the views; never DEFAULT */
    enum vkn_background background; /* colours are composited on it in sRGB space: white, black, or
                                       default for the sky of a run with scene.sky */
    enum vkn_precision precision;   /* of the rendering; never AUTO */
    uint64_t step;                  /* steps that the field has been trained for */
    /* `psnr` plus the mean gain of the aligned views: the pose of a view is aligned with the field
     * on one half of the image, and its PSNR is measured on the other half, and the other way
     * round. NaN if no view was aligned. */
    double psnr_aligned;
    /* Mean PSNR after the colours of each picture were fitted to the image by least squares: affine
     * or quadratic in the channels. NaN without scene.appearance. */
    double psnr_affine, psnr_quadratic;
    /* Errors of the rendered depths against the views' known depths: sparse points that are held
     * out from training, depth pictures. Means over the views of the median relative error and of
     * the share of relative errors up to 5 %; number of known depths. NaN, NaN and 0 without any.
     */
    double depth_error, depth_inliers;
    size_t depths;
};
/* Frees an evaluation. */
VKN_API void vkn_evaluation_free(struct vkn_evaluation **evaluation);
/* Returns the JSON object of `vknerf eval --json`, in memory that the caller frees; NULL if memory
 * runs out. */
VKN_API char *vkn_evaluation_json(const struct vkn_evaluation *evaluation);

/* ---- train --------------------------------------------------------------------------------- */

/* Callbacks of vkn_run_train. They may use the trainer passed to them, which is idle. The
 * training's thread calls them; of several ranks only rank 0 has callbacks. Callbacks change no
 * result, and except for `report` their time does not count as training time. */
struct vkn_train_callbacks {
    size_t size;
    void *context; /* first argument of all callbacks */
    /* Training on `scene` into the run directory `folder` begins or is resumed. May be NULL. */
    void (*opened)(void *context, vkn_trainer *trainer, const char *folder, const char *scene);
    /* Both as in vkn_train_run, or both NULL. If between_steps sets *save, a checkpoint is written,
     * and between_steps is called again. */
    double (*due)(void *context);
    vkn_status (*between_steps)(void *context, vkn_trainer *trainer, bool *save);
    /* Training has ended with `status`; evaluation and report follow. The callback has to destroy
     * the objects that it created from the trainer. Called once for each call of opened. May be
     * NULL. */
    void (*closed)(void *context, vkn_trainer *trainer, vkn_status status);
    /* As in vkn_train_run. May be NULL. Needs `size`. */
    void (*report)(void *context, const struct vkn_train_stats *stats);
};

/* Parameters of vkn_run_train. */
struct vkn_train_params {
    size_t size;
    const struct vkn_job *job; /* NULL: all defaults */
    const char *scene;  /* folder, or a file that identifies a format; may be NULL when resuming */
    const char *out;    /* run directory; NULL: that of `resume`, or runs/SCENE-DATE-TIME */
    bool overwrite;     /* replaces a run in `out` */
    bool profile;       /* times every pass and writes trace.json */
    const char *resume; /* run or checkpoint to continue; `config` is then vkn_run_config's result,
                           with changes */
    const char *init;   /* run or checkpoint with the initial weights */
    const vkn_config *config; /* NULL: all defaults */
    /* When resuming: the settings that the caller requests, even those equal to the run's; all
     * others unset. If the device does not support a requested or changed setting, the call fails;
     * any other setting of the run falls back with a warning. If precision or kind of loss scaling
     * change, only the requested and changed settings of loss_scale are kept. */
    const vkn_config *given;
    /* "0,1": devices of a training on several ranks, one rank each (docs/scaling.md), each named as
     * vkn_context_params.device; the job's device stays NULL then. NULL: one device. A process that
     * mpirun or a similar launcher started is one rank: its local rank chooses one of these devices
     * or, without them, one of the best type. */
    const char *devices;
    const char *const *command;                  /* command line, for config.json; may be NULL */
    size_t command_count;                        /* number of its words */
    const struct vkn_train_callbacks *callbacks; /* NULL: no callbacks. Needs `size` */
};

/* Result of vkn_run_train. Owned by the library, valid until vkn_train_result_free. */
struct vkn_train_result {
    uint32_t rank;           /* of this process, if mpirun started several. On ranks above 0 the
                                members after `reported_elsewhere` are zero */
    bool reported_elsewhere; /* the failure happened in another process, which reports it */
    char *folder;            /* run directory; NULL: none was created */
    struct vkn_evaluation *evaluation; /* NULL: interrupted before the evaluation */
    uint64_t step;                     /* finished steps */
    double seconds;                    /* training time over all resumes */
    uint64_t gpu_memory_bytes;         /* peak of device memory, see vkn_train_stats */
    struct vkn_buffer_memory *buffers; /* [buffer_count], device memory by buffer at the peak */
    size_t buffer_count;               /* number of `buffers` */
    struct vkn_images *images;         /* statistics at the last report */
    struct vkn_pass_time *passes;      /* mean milliseconds per step */
    size_t pass_count;                 /* number of `passes` */
    struct vkn_profile *profile;       /* NULL unless `profile` was set */
    uint64_t skipped_steps; /* since the run began: steps whose loss or gradient was not finite */
};

/* Trains, evaluates and writes the report. VKN_INTERRUPTED: checkpoint, summary and report are
 * written. VKN_ERROR, with a message that names the step: the training has diverged, or all steps
 * are skipped; the last good checkpoint stays. The caller frees *result, which is set after
 * failures too, except for wrong `params` or if memory runs out. */
VKN_API vkn_status vkn_run_train(const struct vkn_train_params *params,
                                 struct vkn_train_result **result);
/* Frees a result. */
VKN_API void vkn_train_result_free(struct vkn_train_result **result);
/* Returns the JSON object of `vknerf train --json`, the content of summary.json with the paths of
 * the run, its checkpoint, report and images, in memory that the caller frees. To be called after
 * VKN_OK, or VKN_INTERRUPTED with at least one step; NULL if memory runs out or the summary cannot
 * be read. */
VKN_API char *vkn_train_result_json(const struct vkn_train_result *result);

/* ---- largest batch ------------------------------------------------------------------------- */

/* Parameters of vkn_find_batch. */
struct vkn_batch_params {
    size_t size;
    /* The training: scene, configuration, checkpoint and job are used, nothing is written. Of the
     * settings batch.* only the ratio of max_rays to samples is used. */
    const struct vkn_train_params *train;
    uint64_t memory_budget; /* bytes, at most the device's free memory; 0: 90 % of it */
    double seconds;         /* time for all trials; 0: 120 */
};

/* Outcome of a trial. */
enum vkn_batch_verdict {
    VKN_BATCH_STABLE,      /* training works */
    VKN_BATCH_UNSTABLE,    /* steps skipped after the loss scale settled, or a loss not finite */
    VKN_BATCH_OVER_BUDGET, /* needs more memory than the budget; not allocated */
    VKN_BATCH_REFUSED,     /* allocation failed, or a buffer exceeds the device's limit */
    VKN_BATCH_LOST,        /* the device was lost; the search ends */
    VKN_BATCH_TOO_SLOW,    /* not tried, as too little time is left; the search ends */
};

/* A trial of a batch. */
struct vkn_batch_trial {
    uint32_t samples, max_rays;     /* batch.samples, batch.max_rays */
    enum vkn_batch_verdict verdict; /* outcome */
    char reason[256];               /* one line; empty if stable */
    uint64_t memory_bytes; /* device memory that the training needs, see vkn_train_stats; known for
                              OVER_BUDGET too; 0: unknown */
    double steps_per_second, samples_per_second; /* live samples; 0 unless the trial ran */
};

/* Result of vkn_find_batch. Owned by the library, valid until vkn_batch_search_free. */
struct vkn_batch_search {
    struct vkn_batch_trial **trials; /* in the order of the trials */
    size_t trial_count;              /* number of trials */
    size_t largest, fastest;         /* stable trials with most samples and most samples per second;
                                        trial_count if none is stable */
    uint64_t memory_budget;          /* bytes, for memory_bytes and view_bytes together */
    uint64_t view_bytes; /* memory that evaluation needs besides training, equal in all trials */
    enum vkn_precision precision; /* of the trials */
};

/* Trains a few steps with batches of growing size: doubles batch.samples until a batch does not
 * fit, then bisects the last interval twice. Ends after about `seconds`. After VKN_INTERRUPTED, and
 * after any failure that follows a trial, *search holds the trials so far. If even the smallest
 * batch fails, its error is returned. The caller frees *search. */
VKN_API vkn_status vkn_find_batch(const struct vkn_batch_params *params,
                                  struct vkn_batch_search **search);
/* Frees a search. */
VKN_API void vkn_batch_search_free(struct vkn_batch_search **search);
/* Returns the JSON object of `vknerf train --find-batch --json`, in memory that the caller frees;
 * NULL if memory runs out. */
VKN_API char *vkn_batch_search_json(const struct vkn_batch_search *search);

/* Replaces the content of `config` by the configuration that a run was trained with. */
VKN_API vkn_status vkn_run_config(const char *run, vkn_config *config);

/* Returns the GLSL of a run's field, from its checkpoint, in memory that the caller frees; NULL for
 * other models. `sha256`, unless NULL, becomes its SHA-256 in 64 hexadecimal digits, "" without
 * GLSL. The GLSL is not compiled and need not be trusted (vkn_field_trust). VKN_BAD_INPUT names the
 * file that cannot be read. Any thread may call. */
VKN_API vkn_status vkn_run_field(const char *run, char **glsl, char sha256[65]);

/* Returns the JSON object of `vknerf info RUN --json`, in memory that the caller frees:
 * "checkpoint", "scene", "step", "skipped_steps", "model", "precision", of a run directory also
 * "status" and "failure" as in summary.json, and for a field in GLSL "field" with "bytes", "sha256"
 * and "trusted" (vkn_field_is_trusted). "checkpoint" is missing if the training failed before its
 * first checkpoint. VKN_BAD_INPUT names the file that cannot be read. Any thread may call. */
VKN_API vkn_status vkn_run_info_json(const char *run, char **json);

/* ---- report -------------------------------------------------------------------------------- */

/* Parameters of vkn_run_report. */
struct vkn_report_params {
    size_t size;
    const char *const *runs; /* run directories, at least one */
    size_t run_count;        /* number of `runs` */
    const char *out;         /* HTML file; NULL: report.html of the only run, or comparison.html */
};

/* Writes a page about one run, or one that compares several: a single HTML file. *file becomes its
 * path, in memory that the caller frees. VKN_BAD_INPUT names the file and field that cannot be
 * read. */
VKN_API vkn_status vkn_run_report(const struct vkn_report_params *params, char **file);

/* State of a run directory. */
struct vkn_run_state {
    size_t size;
    bool exists;                /* a checkpoint exists */
    bool finished;              /* summary.json says that training has ended and was evaluated */
    uint64_t step;              /* finished steps */
    double psnr, ssim, seconds; /* of summary.json; NaN if unknown */
};
/* Inspects a run directory without reading its checkpoint. VKN_BAD_INPUT names the field of
 * summary.json that cannot be read. */
VKN_API vkn_status vkn_run_inspect(const char *folder, struct vkn_run_state *state);

/* ---- evaluate ------------------------------------------------------------------------------ */

/* Parameters of vkn_run_eval. */
struct vkn_eval_params {
    size_t size;
    const struct vkn_job *job;      /* NULL: all defaults */
    const char *run;                /* run directory or checkpoint */
    const char *scene;              /* NULL: the path that the run recorded */
    enum vkn_scene_format format;   /* of the scene; AUTO: the format that the run recorded */
    enum vkn_split split;           /* default: the first of test, val, train that is not empty */
    enum vkn_background background; /* default: sky; or black if trained on black, else white */
    enum vkn_precision precision;   /* see vkn_renderer_open */
    uint32_t stride;                /* evaluates every stride-th view; 0: all */
    bool aligned; /* also measures psnr_aligned of all evaluated views. Default: of at most 16 views
                     if scene.refine of the run is not off. Needs `size` */
};

/* Renders the views of a split and compares them with the images. The caller frees *evaluation. */
VKN_API vkn_status vkn_run_eval(const struct vkn_eval_params *params,
                                struct vkn_evaluation **evaluation);

/* ---- render -------------------------------------------------------------------------------- */

/* Parameters of vkn_run_render. */
struct vkn_render_params {
    size_t size;
    const struct vkn_job *job;    /* NULL: all defaults */
    const char *run;              /* run directory or checkpoint */
    const char *scene;            /* NULL: the path that the run recorded */
    enum vkn_scene_format format; /* of the scene; AUTO: the format that the run recorded */
    /* Views: at most one of split, orbit, interpolate and camera_path. */
    enum vkn_split split;    /* views of a split; default as in vkn_eval_params */
    uint32_t orbit;          /* number of views on a circle */
    uint32_t interpolate;    /* number of views on a smooth path through the training cameras */
    const char *camera_path; /* JSON: keyframes, a path of nerfstudio's viewer or of instant-ngp, or
                                frames as in transforms.json */
    const char *dataparser; /* nerfstudio's dataparser_transforms.json; NULL: next to camera_path */

    bool has_time; /* all views show `time` instead of the times of their cameras */
    double time;   /* 0..1 */

    bool color, depth, opacity, normal; /* maps to write; none: color */
    bool depth_values; /* writes depths as NumPy files too: f32, dataset units, 0: nothing hit */
    /* Videos, .mp4 or .gif, made by ffmpeg from maps that are written; NULL: none. */
    const char *video;                                      /* of the colours */
    const char *depth_video, *opacity_video, *normal_video; /* of the other maps */
    double fps;                     /* of the videos; 0: the camera path's, else 24 */
    const char *out;                /* folder */
    enum vkn_background background; /* default: sky; or black if trained on black, else white */
    enum vkn_precision precision;   /* see vkn_renderer_open */
    uint32_t supersample;           /* rays along a pixel's edge: 1, 2 or 4; 0: 1 */
    uint32_t width, height;         /* pixels; 0: the view's, or in proportion to the other one */
    /* All further members need `size`. */
    double crop[6]; /* box to render, see vkn_picture_params */
    bool depth16;   /* writes depths as 16-bit grey PNG files too, in units of
                       vkn_render_result.depth_unit, 0 where nothing was hit */
    /* Equirectangular: panoramas at the views' positions, of width 2 * height unless both are set;
     * level with `orbit` and `interpolate`. Other values: the lens of each view. */
    enum vkn_lens lens;
    bool transparent; /* writes colours as straight RGBA without background; excludes `video` */
    double exposure;  /* in stops, see vkn_picture_params */
    double crop_rotation[3]; /* see vkn_picture_params */
};

/* Result of vkn_run_render. */
struct vkn_render_result {
    size_t size;
    size_t frames;                        /* written frames */
    double depth_nearest, depth_farthest; /* depths of the values 255 and 1, dataset units */
    double depth_unit; /* dataset units per step of 16-bit depths; needs `size` */
};

/* Renders views into PNG files frame_0000.png, frame_0000_depth.png, ...; with depth maps also
 * depth_scale.json, which holds the result's range and unit. If ffmpeg fails, the error is returned
 * after all frames are written. VKN_INTERRUPTED: files and videos have the frames so far. */
VKN_API vkn_status vkn_run_render(const struct vkn_render_params *params,
                                  struct vkn_render_result *result);

VKN_END_DECLARATIONS

#endif
