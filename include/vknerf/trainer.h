/* vknerf/trainer.h: trains a field on a scene, with statistics, checkpoints and a profile. */
#ifndef VKNERF_TRAINER_H
#define VKNERF_TRAINER_H

#include <signal.h>

#include <vknerf/config.h>
#include <vknerf/context.h>
#include <vknerf/scene.h>

VKN_BEGIN_DECLARATIONS

/* A field in training. */
typedef struct vkn_trainer vkn_trainer;

/* Creates a trainer: decodes the training images (with progress) if they fit in host memory, copies
 * as many as fit to the device, and initialises the field. `config` may be NULL. The trainer keeps
 * context and scene alive: all three may be destroyed in any order. The caller owns *trainer. */
VKN_API vkn_status vkn_trainer_create(vkn_context *context, vkn_scene *scene,
                                      const vkn_config *config, vkn_trainer **trainer);
/* Destroys a trainer and sets *trainer to NULL; accepts NULL. */
VKN_API void vkn_trainer_destroy(vkn_trainer **trainer);
/* Returns the effective configuration, with all defaults resolved, owned by the trainer. */
VKN_API const vkn_config *vkn_trainer_config(const vkn_trainer *trainer);

/* Backend of a trainer: the choice of precision `auto`, without backends that failed their
 * self-test (vkn_info_json). Texts are owned by the trainer. */
struct vkn_backend {
    const char *name;          /* "fp32", "fp16", "coopmat 16x16x16 (f32 accumulation)" */
    const char *why;           /* "asked for", "measured 1.8 times as fast as fp32", ... */
    const char *gradient_sums; /* of hash grid gradients: "f32, added atomically", ... */
    const char *tuning; /* "defaults: rounds 4, ..." or "tuned: ..." by vknerf bench --tune */
    const char *policy; /* differences from the precision: "policy.moments=f16"; "": none */
};
/* Returns the backend, owned by the trainer. */
VKN_API const struct vkn_backend *vkn_trainer_backend(const vkn_trainer *trainer);

/* Loads the whole state of a checkpoint: training continues as if it had not stopped. */
VKN_API vkn_status vkn_trainer_resume(vkn_trainer *trainer, const char *checkpoint);
/* Loads only parameters and occupancy grid of a checkpoint, for another scene or schedule. */
VKN_API vkn_status vkn_trainer_init(vkn_trainer *trainer, const char *checkpoint);
/* Writes a checkpoint of the whole state. */
VKN_API vkn_status vkn_trainer_save(vkn_trainer *trainer, const char *checkpoint);

/* ---- weights and occupancy grid -------------------------------------------------------------- */

/* Parameters of a trainer's field in f32, in one of two versions. A coarse field or a proposal has
 * tensors of its own, whose names begin with "coarse.". Checkpoints have the same tensors: the
 * layers' weights, [input][output] each, then the hash grid's levels, [entry][feature] each. */
struct vkn_tensor {
    size_t size;
    const char *name; /* literal: "params", which the optimiser updates; "average", their moving
                         average, which renderers and checkpoints' users evaluate; "coarse.params",
                         ... */
    uint64_t count;   /* number of elements */
};
/* Returns the number of tensors; 0 for NULL. */
VKN_API size_t vkn_trainer_tensor_count(const vkn_trainer *trainer);
/* Describes a tensor by its index from 0. VKN_BAD_INPUT beyond the last. */
VKN_API vkn_status vkn_trainer_tensor(const vkn_trainer *trainer, size_t index,
                                      struct vkn_tensor *tensor);
/* Copies a tensor to values[count]. VKN_BAD_INPUT for an unknown name, or if `count` is not the
 * tensor's. Not while the trainer runs, but in between_steps. */
VKN_API vkn_status vkn_trainer_read_tensor(vkn_trainer *trainer, const char *name, float *values,
                                           uint64_t count);
/* Replaces a tensor. Moments of the optimiser and the other tensors stay: to replace the field,
 * write "average" too. VKN_BAD_INPUT as above, and for an element that is not finite; nothing
 * changes then. */
VKN_API vkn_status vkn_trainer_write_tensor(vkn_trainer *trainer, const char *name,
                                            const float *values, uint64_t count);

/* An occupancy grid. Rays have samples only in occupied cells. Arrays have an element per cell,
 * [time_bins][cascades][z][y][x] with `resolution` cells along each axis. */
struct vkn_occupancy {
    size_t size;
    uint32_t resolution; /* cells along each axis of a cascade */
    uint32_t cascades;   /* number of cascades, from the finest to the coarsest */
    uint32_t time_bins;  /* number of time bins of a dynamic scene, else 1 */
    /* Centre and side of cascade 0 in the dataset's axes and units; the cube of each further
     * cascade has twice the side. With scene.contraction=cube the last cascade is the contracted
     * space. */
    double center[3], side;
    float threshold;   /* cells with higher values are occupied; and cells of a coarser cascade with
                          an occupied cell of a finer one */
    float *values;     /* the caller's; density times the smallest step, negative in cells that no
                          training view sees. NULL: not wanted */
    uint8_t *occupied; /* the caller's; 1: occupied. NULL: not wanted; ignored in writing */
};
/* Reads a trainer's grid: sets all members but the two arrays, and fills the arrays that are not
 * NULL. VKN_BAD_INPUT if march.sampling uses no grid. */
VKN_API vkn_status vkn_trainer_occupancy(vkn_trainer *trainer, struct vkn_occupancy *grid);
/* Replaces values and threshold. The training's updates, every 16 steps, continue from these
 * values. `center` and `side` are ignored. VKN_BAD_INPUT for other numbers of cells, named with the
 * right ones, and for values that are not finite; nothing changes then. */
VKN_API vkn_status vkn_trainer_set_occupancy(vkn_trainer *trainer,
                                             const struct vkn_occupancy *grid);

/* Statistics of the training images. If scene.image_budget does not hold all of them, image strips
 * are streamed to the device during training. */
struct vkn_images {
    size_t size;                    /* see <vknerf/api.h> */
    size_t count;                   /* number of images; parallel.images=share: this rank's only */
    size_t strips;                  /* number of strips of rows per image; 1: images are whole */
    size_t resident;                /* number of strips on the device, of all images together */
    uint32_t streamed_per_interval; /* strips replaced every 16 steps; 0: all are resident */
    uint64_t bytes;                 /* device memory for images */
    uint64_t exchange_bytes;        /* host memory of the staging buffers */
    uint64_t host_bytes; /* host memory for decoded images; 0: files are decoded when needed */
    uint32_t downscale;  /* current reduction: the scene's, times that of progressive training */
    /* Counts since the trainer was created: strips streamed; strips that were not ready in time. */
    uint64_t exchanged, late;
};
/* Returns the statistics of the training images. VKN_BAD_INPUT for a size that no version had. */
VKN_API vkn_status vkn_trainer_images(const vkn_trainer *trainer, struct vkn_images *images);

#define VKN_MAX_BUFFERS 64 /* a sufficient capacity for vkn_trainer_memory */

/* Device memory of all buffers with one name. */
struct vkn_buffer_memory {
    const char *name; /* literal */
    uint64_t bytes;   /* alignment included */
    bool on_host;     /* visible to the host */
};
/* Fills up to `capacity` (at least 1) entries with device memory by name, the largest first; the
 * last entry sums the rest. Returns the number of entries. Their sum is the current
 * gpu_memory_bytes. */
VKN_API size_t vkn_trainer_memory(const vkn_trainer *trainer, struct vkn_buffer_memory *buffers,
                                  size_t capacity);

/* Statistics of the communication between ranks, since the trainer was created. */
struct vkn_communication {
    size_t size;
    uint32_t ranks;            /* number of ranks; 1: all other members are 0 */
    uint32_t ranks_per_device; /* number of ranks per device: parallel.ranks_per_device */
    uint64_t bytes;            /* sent by a rank per step */
    double seconds;            /* duration of all communication */
    double waiting_seconds;    /* part of `seconds` spent waiting for slower ranks */
    double hidden_seconds;     /* part of `seconds` in which the rank's device computed */
    double step_seconds;       /* duration of the steps, with communication */
};
/* Returns the statistics of the communication. VKN_BAD_INPUT for a size that no version had. */
VKN_API vkn_status vkn_trainer_communication(const vkn_trainer *trainer,
                                             struct vkn_communication *communication);

/* Statistics of a training. Owned by the library. */
struct vkn_train_stats {
    uint64_t step;     /* finished steps */
    double seconds;    /* training time over all resumes */
    double loss, psnr; /* of rays' colours, as means over the rays since the last report */
    /* Values of the last step; grad_norm is the norm before clipping in the last step of which it
     * is known (every 16th and the last step of a run, or with clipping every step), or negative.
     */
    double learning_rate, loss_scale, grad_norm;
    uint64_t skipped_steps; /* since the run began: steps whose loss or gradient was not finite */
    double underflowed;     /* share of activation gradients that underflowed in f16 since the last
                           report; 0 in fp32 */
    /* Means since the last report; samples_per_second: live samples, marched_per_second: all. */
    double steps_per_second, rays_per_second, samples_per_second, marched_per_second;
    uint64_t gpu_memory_bytes; /* device memory in use */
    double idle_share;         /* share of the time since the last report in which the device ran no
                                  step, by its timestamps; NaN without timestamps */
    double exchange_share;     /* share of the same time spent in communication; NaN: one rank */
    const struct vkn_images *images; /* current statistics */
    /* The other parts of the loss, weights included, as means over the rays and over the steps
     * since the last report that computed them: distortion loss, interlevel loss of a proposal,
     * loss of the colours of a coarse field. NaN: no part of the loss. */
    double distortion_loss, interlevel_loss, coarse_loss;
    /* Of the last step, with batch.keep below 1, else 0: the share of live samples that got
     * gradients, and the mean factor of the gradients of these samples' rays. */
    double kept_share, keep_weight;
};

/* Parameters of vkn_trainer_run: limits and callbacks. */
struct vkn_train_run {
    size_t size;
    uint32_t until_step; /* number of finished steps at which the call returns; 0: only the
                            configuration's limits */
    double seconds; /* the call returns soon after this time, with at least 16 steps; 0: no limit */
    const volatile sig_atomic_t *stop; /* the call returns VKN_INTERRUPTED soon after this becomes
                                          non-zero; may be NULL */
    double report_seconds;             /* between reports; 0: 0.5 */
    /* Receives statistics; may be NULL. `report`, `warn` and `due` are called while the device is
     * busy: of functions that use the context they may only call those that query. */
    void (*report)(void *context, const struct vkn_train_stats *stats);
    /* Receives a warning, one line without newline: skipped steps, a lowered learning rate,
     * gradients that underflow, vanish or jump, rays whose loss rises or that have no gradient.
     * NULL: warnings go to the log. */
    void (*warn)(void *context, const char *line);
    void *context; /* first argument of all callbacks */
    /* Returns the seconds until between_steps should be called; 0: at once; HUGE_VAL: no call due.
     * Called after every 16 steps, or after every step if a call is due. NULL: between_steps
     * is never called. Needs `size`. */
    double (*due)(void *context);
    /* Uses the trainer between two steps, while it is idle and its clock stands still; must not
     * train with it. A failure ends the run. Calls do not change the results of steps. Needs
     * `size`. */
    vkn_status (*between_steps)(void *context);
};

/* Trains until a limit of the configuration, until_step, seconds or stop. The last report is of the
 * last step. VKN_ERROR: the training has diverged, or all steps are skipped (docs/precision.md);
 * the message says since which step, which value was not finite first, and what to change. `run`
 * may be NULL: until a limit of the configuration, without callbacks. */
VKN_API vkn_status vkn_trainer_run(vkn_trainer *trainer, const struct vkn_train_run *run);
/* Returns whether a limit of the configuration is reached. */
VKN_API bool vkn_trainer_finished(const vkn_trainer *trainer);
/* Returns the number of finished steps. */
VKN_API uint64_t vkn_trainer_step(const vkn_trainer *trainer);
/* Returns the training time in seconds, over all resumes. A trainer begins to count it when it has
 * finished 16 steps: drivers may compile pipelines at their first use. */
VKN_API double vkn_trainer_seconds(const vkn_trainer *trainer);

/* Starts to time every pass of every step and the idle time between passes, and to record events
 * for a trace. Slows training slightly. To be called before the first vkn_trainer_run. */
VKN_API vkn_status vkn_trainer_start_profile(vkn_trainer *trainer);

/* Mean time of a pass per step on the device. One step in 16 is timed, or all with
 * vkn_trainer_start_profile. The time of occupancy passes is divided by 16. */
struct vkn_pass_time {
    const char *name;    /* literal */
    double milliseconds; /* per step */
};
/* Fills up to `capacity` times in the order of the passes. Returns the number of passes, 0 on
 * devices without timestamps. */
VKN_API size_t vkn_trainer_pass_times(const vkn_trainer *trainer, struct vkn_pass_time *times,
                                      size_t capacity);

/* ---- profile --------------------------------------------------------------------------------- */

/* Profile of a pass, by step. docs/cost_model.md defines how work is counted. */
struct vkn_pass_profile {
    const char *name;             /* literal */
    double milliseconds;          /* from begin to end */
    double flops, bytes, atomics; /* work; `bytes` are all accesses, cached or not */
    double memory_bytes;          /* part of `bytes` that reaches memory with perfect caches */
    double floor_milliseconds;    /* minimum by work and the device's peaks; 0: peaks unknown */
    const char *bound;            /* limit of the floor: "flops", "bytes", "atomics" or "" */
};

/* Profile of a training. Owned by the library, valid until vkn_profile_free. */
struct vkn_profile {
    struct vkn_pass_profile **passes;  /* in order */
    size_t pass_count;                 /* 0: the device has no timestamps, or no step has run */
    double idle_milliseconds;          /* of the device between passes, per step */
    double interval_idle_milliseconds; /* between command buffers of 16 steps, per step */
    uint64_t steps, intervals;         /* number of timed steps and command buffers */
    /* Means per step of rays, all samples, live samples and hash grid entries with a gradient;
     * occupancy cells that an update evaluates. */
    double rays, marched_samples, live_samples, touched_entries, evaluated_cells;
    double peak_flops, peak_bytes, peak_atomics; /* of the device, per second; 0: not measured */
};

/* Returns the profile since vkn_trainer_start_profile. The caller frees *profile. */
VKN_API vkn_status vkn_trainer_profile(vkn_trainer *trainer, struct vkn_profile **profile);
/* Frees a profile and sets *profile to NULL; accepts NULL. */
VKN_API void vkn_profile_free(struct vkn_profile **profile);

VKN_END_DECLARATIONS

#endif
