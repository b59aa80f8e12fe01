/* vknerf/run.h: whole jobs on run directories: train, evaluate, render, report.
 *
 * A run directory holds config.json (the effective configuration), metrics.jsonl,
 * checkpoint.safetensors, summary.json, views/ and report.html; docs/runs.md describes each. A
 * `run` that is read may also be a checkpoint file alone. All texts of params stay the caller's;
 * zero is the default everywhere. Progress goes to standard error, messages where vkn_log_to says.
 * What results and evaluations point to is the library's, until they are freed; freeing nulls the
 * pointer, and takes NULL. */
#ifndef VKNERF_RUN_H
#define VKNERF_RUN_H

#include <vknerf/renderer.h>

VKN_BEGIN_DECLARATIONS

/* What every job takes; NULL stands for all defaults. */
struct vkn_job {
    size_t size;                       /* see <vknerf/api.h> */
    const char *device, *shader_dir;   /* as in vkn_context_params */
    bool quiet;                        /* no progress */
    const volatile sig_atomic_t *stop; /* set by a signal handler, or atomically by a thread: the
                                          job ends soon, with VKN_INTERRUPTED; may be NULL */
};

/* ---- quality ------------------------------------------------------------------------------- */

/* Quality of one view. */
struct vkn_evaluated_view {
    char name[32];     /* "test_003" */
    char *image;       /* its file */
    double psnr, ssim; /* against the view composited on the background in sRGB space, 8 bits */
    double time;       /* 0..1; NaN where the scene has no times */
    double background_psnr; /* of the background alone instead of the view, see below */
    double floaters;        /* see below */
};

/* Quality of a field; the library's, until vkn_evaluation_free. */
struct vkn_evaluation {
    double psnr, ssim; /* means over the views that have pixels that count and, for ssim, a window
                          of such; NaN when none has */
    /* Mean of what a picture of nothing comes to, which of an object on a wide background is a lot.
     * NaN but for scenes with times whose images have transparent pixels: of others it is not
     * known. */
    double background_psnr;
    /* Mean share of the light that is taken nearer than half of the way to the nearest point that
     * the sparse model has in the view (one of a hundred may be nearer), where nothing should be.
     * NaN without such a model. */
    double floaters;
    struct vkn_evaluated_view **views; /* one after the other */
    size_t view_count;                 /* of these */
    enum vkn_split split;              /* that they are of; never DEFAULT */
    enum vkn_background background; /* white or black; colours are composited on it in sRGB space */
    enum vkn_precision precision;   /* of the field's arithmetic; never AUTO */
    uint64_t step;                  /* of the training */
};
/* Nulls *evaluation, and takes NULL. */
VKN_API void vkn_evaluation_free(struct vkn_evaluation **evaluation);
/* As the JSON object of `vknerf eval --json` in fresh memory that the caller frees; NULL on no
 * memory. */
VKN_API char *vkn_evaluation_json(const struct vkn_evaluation *evaluation);

/* ---- train --------------------------------------------------------------------------------- */

/* Somebody who looks at a run while it trains (since 0.2). All is called by the training's thread,
 * of several ranks by that of rank 0 alone, with nothing of the training under way. What is trained
 * is the same whether somebody looks or not, and the time of visits is not the training's. */
struct vkn_train_callbacks {
    size_t size;
    void *context; /* of all */
    /* Training begins, or goes on, of a scene and into a run directory. May be NULL. */
    void (*opened)(void *context, vkn_trainer *trainer, const char *folder, const char *scene);
    /* As vkn_train_run.due and visit. *save: the checkpoint is to be written, and another visit
     * follows at once. */
    double (*due)(void *context);
    vkn_status (*between_steps)(void *context, vkn_trainer *trainer, bool *save);
    /* Training has ended, with that status; what was made of the trainer is to be destroyed.
     * Evaluation and report follow. Once for each call of opened. May be NULL. */
    void (*closed)(void *context, vkn_trainer *trainer, vkn_status status);
};

/* Of vkn_run_train. */
struct vkn_train_params {
    size_t size;
    const struct vkn_job *job; /* NULL: all defaults */
    const char *scene;  /* folder, or a file that a format is known by; may be NULL when resuming */
    const char *out;    /* run directory; NULL: that of `resume`, or runs/SCENE-DATE-TIME */
    bool overwrite;     /* `out` may hold a run, which is lost */
    bool profile;       /* times every pass and writes trace.json */
    const char *resume; /* run or checkpoint to go on from; `config` begins with vkn_run_config of
                           it */
    const char *init;   /* run or checkpoint to take weights from */
    const vkn_config *config; /* NULL: all open */
    /* When resuming: the settings that are asked for even if they are the run's, all others open.
     * The device must be able to do these and what differs from the run; what is only the run's
     * falls back with a warning. Another precision or kind of loss scaling than the run's keeps
     * no other setting of loss_scale than these and what differs. */
    const vkn_config *given;
    /* "0,1": trains on several devices together, a rank each, see docs/scaling.md; each is as
     * vkn_context_params.device, which stays NULL then. NULL: on one. Where mpirun or the like has
     * begun this process, it is a rank by itself, which takes one of these, or of the best kind, by
     * its number on its machine. */
    const char *devices;
    const char *const *command;                  /* command line, for config.json; may be NULL */
    size_t command_count;                        /* of its words */
    const struct vkn_train_callbacks *callbacks; /* since 0.2; NULL: nobody looks */
};

/* What vkn_run_train came to; the library's, until vkn_train_result_free. */
struct vkn_train_result {
    uint32_t rank; /* of this process, where mpirun has begun several; those above 0 have no more:
                    */
    bool reported_elsewhere; /* the failure is another process's, which tells it as well; since 0.2
                              * also of rank 0
                              */
    char *folder;            /* the run directory; NULL: it did not come to one */
    struct vkn_evaluation *evaluation; /* NULL: interrupted before it */
    uint64_t step;                     /* steps finished */
    double seconds;                    /* training time over all resumes */
    uint64_t gpu_memory_bytes; /* most device memory held while training, see vkn_train_stats */
    struct vkn_buffer_memory *buffers; /* what it is for */
    size_t buffer_count;               /* of these */
    struct vkn_images *images;         /* as of the last report */
    struct vkn_pass_time *passes;      /* mean milliseconds per step */
    size_t pass_count;                 /* of these */
    struct vkn_profile *profile;       /* NULL unless it was asked for */
    uint64_t skipped_steps; /* of these steps, loss or gradient not finite, since the run began;
                               since 0.2 */
};

/* Trains, evaluates and writes the report. VKN_INTERRUPTED: the checkpoint, summary and report are
 * written. VKN_ERROR, with a message that says at which step: the training has diverged, or no step
 * was taken; the last good checkpoint stays. The caller frees *result, which is there after a
 * failure too unless it is NULL (bad `params`, no memory). */
VKN_API vkn_status vkn_run_train(const struct vkn_train_params *params,
                                 struct vkn_train_result **result);
VKN_API void vkn_train_result_free(struct vkn_train_result **result);
/* As the JSON object of `vknerf train --json`, what the run's summary.json holds with the paths of
 * the run, its checkpoint, report and pictures, in fresh memory that the caller frees. After VKN_OK
 * or VKN_INTERRUPTED with a step; NULL on no memory, or where the summary cannot be read. */
VKN_API char *vkn_train_result_json(const struct vkn_train_result *result);

/* ---- the largest batch --------------------------------------------------------------------- */

/* Of vkn_find_batch. */
struct vkn_batch_params {
    size_t size;
    /* The training to come, of which scene, configuration, checkpoint and job count; nothing is
     * written. Its batch says only how many rays there are for so many samples. */
    const struct vkn_train_params *train;
    uint64_t memory_budget; /* bytes, at most what the device has left; 0: nine tenths of that */
    double seconds;         /* for all trials; 0: 120 */
};

/* What became of a trial. */
enum vkn_batch_verdict {
    VKN_BATCH_STABLE,      /* trains */
    VKN_BATCH_UNSTABLE,    /* skipped steps beyond the loss scale's warm-up, or a loss not finite */
    VKN_BATCH_OVER_BUDGET, /* of memory; not allocated */
    VKN_BATCH_REFUSED,     /* allocation failed, or a buffer is larger than the device's take */
    VKN_BATCH_LOST,        /* the device was lost; ends the search */
    VKN_BATCH_TOO_SLOW,    /* not tried: longer than what is left of the time; ends the search */
};

/* A batch that was tried. */
struct vkn_batch_trial {
    uint32_t samples, max_rays;     /* settings of the batch */
    enum vkn_batch_verdict verdict; /* what became of it */
    char reason[256];               /* one line; empty when stable */
    uint64_t memory_bytes; /* held while training, as in vkn_train_stats; what would be needed when
                              over budget, 0 when unknown */
    double steps_per_second, samples_per_second; /* live samples; 0 unless it ran */
};

/* The library's, until vkn_batch_search_free. */
struct vkn_batch_search {
    struct vkn_batch_trial **trials; /* in the order tried */
    size_t trial_count;              /* of these */
    size_t largest, fastest; /* stable trials: most samples, most samples per second; trial_count
                                when none is stable */
    uint64_t memory_budget;  /* bytes; holds memory_bytes and view_bytes */
    uint64_t view_bytes;     /* what evaluating takes on top of training, the same for all */
    enum vkn_precision precision; /* that was tried */
};

/* Tries ever larger batches for a few real steps each, twice as many samples until one does not
 * fit, then quarters between. Stops by itself after about `seconds`. VKN_INTERRUPTED: *search holds
 * the trials so far, as after any failure that came behind one. When not even the smallest batch
 * runs, the error is its. The caller frees *search. */
VKN_API vkn_status vkn_find_batch(const struct vkn_batch_params *params,
                                  struct vkn_batch_search **search);
VKN_API void vkn_batch_search_free(struct vkn_batch_search **search);
/* As the JSON object of `vknerf train --find-batch --json` in fresh memory that the caller frees;
 * NULL on no memory. */
VKN_API char *vkn_batch_search_json(const struct vkn_batch_search *search);

/* The configuration that a run was trained with takes the place of what `config` holds. */
VKN_API vkn_status vkn_run_config(const char *run, vkn_config *config);

/* The GLSL that the checkpoint of `run`, a run directory or a checkpoint, holds of its field, in
 * fresh memory that the caller frees; NULL: none. `sha256`, unless NULL, becomes its SHA-256 in 64
 * hexadecimal digits, "" without GLSL. Nothing is compiled and nothing need be trusted
 * (vkn_field_trust). VKN_BAD_INPUT names the file that cannot be read. Any thread may call. */
VKN_API vkn_status vkn_run_field(const char *run, char **glsl, char sha256[65]);

/* What `vknerf info RUN` says as a JSON object in fresh memory that the caller frees: "checkpoint",
 * "scene", "step", "skipped_steps", "model", "precision", of a run directory "status" and "failure"
 * as in summary.json and, of a field in GLSL, "field" with "bytes", "sha256" and "trusted", see
 * vkn_field_is_trusted. Of a run directory that has no checkpoint, as of a training that failed
 * before one was due, "checkpoint" is left out. Errors and threads as vkn_run_field has them. */
VKN_API vkn_status vkn_run_info_json(const char *run, char **json);

/* ---- report -------------------------------------------------------------------------------- */

/* Of vkn_run_report. */
struct vkn_report_params {
    size_t size;
    const char *const *runs; /* run directories, at least one */
    size_t run_count;        /* of these */
    const char *out;         /* HTML file; NULL: report.html of the one run, or comparison.html */
};

/* A page about one run, or one that compares several, without any other file. *file is its path in
 * fresh memory that the caller frees. VKN_BAD_INPUT names the file and field that cannot be read.
 */
VKN_API vkn_status vkn_run_report(const struct vkn_report_params *params, char **file);

/* What a folder holds, without reading its checkpoint. */
struct vkn_run_state {
    size_t size;
    bool exists;                /* there is a checkpoint */
    bool finished;              /* summary.json says that training ended and was evaluated */
    uint64_t step;              /* steps finished */
    double psnr, ssim, seconds; /* of summary.json; NaN when not known */
};
/* VKN_BAD_INPUT names what of summary.json cannot be read. */
VKN_API vkn_status vkn_run_inspect(const char *folder, struct vkn_run_state *state);

/* ---- evaluate ------------------------------------------------------------------------------ */

/* Of vkn_run_eval. */
struct vkn_eval_params {
    size_t size;
    const struct vkn_job *job;      /* NULL: all defaults */
    const char *run;                /* run directory or checkpoint */
    const char *scene;              /* NULL: where the run found it */
    enum vkn_scene_format format;   /* of the scene; AUTO: as the run found it */
    enum vkn_split split;           /* default: test, else val, else train */
    enum vkn_background background; /* default: white, black for runs trained on black */
    enum vkn_precision precision;   /* see vkn_renderer_open */
    uint32_t stride;                /* every stride-th view; 0: all */
};

/* Mean of the views' PSNR and SSIM. The caller frees *evaluation. */
VKN_API vkn_status vkn_run_eval(const struct vkn_eval_params *params,
                                struct vkn_evaluation **evaluation);

/* ---- render -------------------------------------------------------------------------------- */

/* Of vkn_run_render. */
struct vkn_render_params {
    size_t size;
    const struct vkn_job *job;    /* NULL: all defaults */
    const char *run;              /* run directory or checkpoint */
    const char *scene;            /* NULL: where the run found it */
    enum vkn_scene_format format; /* of the scene; AUTO: as the run found it */
    /* At most one of: */
    enum vkn_split split;    /* the views of a split; default as for vkn_eval_params */
    uint32_t orbit;          /* this many views on a circle */
    uint32_t interpolate;    /* this many views on a smooth way through the training cameras */
    const char *camera_path; /* keyframes, nerfstudio's, instant-ngp's, or frames as in
                                transforms.json */
    const char *dataparser;  /* dataparser_transforms.json of nerfstudio's; NULL: beside the path */

    bool has_time; /* all views show the moment `time`, 0..1, instead of their cameras' */
    double time;   /* see frozen */

    bool color, depth, opacity, normal; /* maps to write; none: color */
    bool depth_values; /* depths as numbers: NumPy files, f32, dataset units, 0 nothing */
    /* .mp4 or .gif made by ffmpeg, each of a map that is written; may be NULL: */
    const char *video;                                      /* of the colours */
    const char *depth_video, *opacity_video, *normal_video; /* of the other maps */
    double fps;                     /* of the videos; 0: the path's own, else 24 */
    const char *out;                /* folder */
    enum vkn_background background; /* default: white, black for runs trained on black */
    enum vkn_precision precision;   /* see vkn_renderer_open */
    uint32_t supersample;           /* 1, 2 or 4 rays along a pixel's edge; 0: 1 */
    uint32_t width, height;         /* 0: the view's, or in proportion to the other */
    double crop[6];                 /* since 0.2: the box that is shown, see vkn_picture_params */
    bool depth16; /* since 0.2: depths as 16-bit grey PNG files as well, in equal steps from 0,
                     which is nothing; see depth_unit */
    enum vkn_lens lens; /* since 0.2: equirectangular: panoramas all around from where the views
                           are, level on a circle and between cameras, width by default twice the
                           height; else the views' own */
    bool transparent; /* since 0.2: the colours' files are RGBA, straight, without a background; not
                         with a video of them */
};

/* What vkn_run_render has made. */
struct vkn_render_result {
    size_t size;
    size_t frames;                        /* written */
    double depth_nearest, depth_farthest; /* range of the depth maps, dataset units; 255 and 1 */
    double depth_unit; /* since 0.2: a step of the 16-bit depths, dataset units */
};

/* PNG files frame_0000.png, frame_0000_depth.png, ...; with depth maps of 8 or 16 bits
 * depth_scale.json, which holds the range and the step of result in numbers. A video that ffmpeg
 * does not make is an error only at the end, with all frames written. VKN_INTERRUPTED: files, and
 * videos, of the frames so far. */
VKN_API vkn_status vkn_run_render(const struct vkn_render_params *params,
                                  struct vkn_render_result *result);

VKN_END_DECLARATIONS

#endif
