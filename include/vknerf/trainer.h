/* vknerf/trainer.h: a scene, a field, and the training step. */
#ifndef VKNERF_TRAINER_H
#define VKNERF_TRAINER_H

#include <signal.h>

#include <vknerf/config.h>
#include <vknerf/context.h>
#include <vknerf/scene.h>

VKN_BEGIN_DECLARATIONS

/* A field in training. */
typedef struct vkn_trainer vkn_trainer;

/* Decodes the training images (with progress) where they fit host memory, moves them, or as many as
 * fit, to the device and initialises the field. `config` may be NULL. Keeps using `context` and
 * `scene`, which the caller closes afterwards. The caller owns *trainer; destroy nulls it, and
 * takes NULL. */
VKN_API vkn_status vkn_trainer_create(vkn_context *context, vkn_scene *scene,
                                      const vkn_config *config, vkn_trainer **trainer);
/* See vkn_trainer_create. */
VKN_API void vkn_trainer_destroy(vkn_trainer **trainer);
/* The effective configuration, all defaults resolved. Owned by the trainer. */
VKN_API const vkn_config *vkn_trainer_config(const vkn_trainer *trainer);

/* How the trainer computes. Precision `auto` has become what it chose, and what failed its
 * self-test is not used: see vkn_info_json. Texts are owned by the trainer. */
struct vkn_backend {
    const char *name;          /* "fp32", "fp16", "coopmat 16x16x16 (f32 accumulation)" */
    const char *why;           /* "asked for", "measured 1.8 times as fast as fp32", ... */
    const char *gradient_sums; /* of the grid: "f32, added atomically", ... */
    const char *tuning; /* "defaults: rounds 4, ..." or "tuned: ..." by vknerf bench --tune */
    const char *policy; /* "policy.master_parameters=f16": what is not as the precision has it; "":
                           nothing */
};
/* Owned by the trainer. */
VKN_API const struct vkn_backend *vkn_trainer_backend(const vkn_trainer *trainer);

/* A checkpoint's whole state: training goes on as if never stopped. */
VKN_API vkn_status vkn_trainer_resume(vkn_trainer *trainer, const char *checkpoint);
/* A checkpoint's weights and occupancy grid only, for fine-tuning on another scene or schedule. */
VKN_API vkn_status vkn_trainer_init(vkn_trainer *trainer, const char *checkpoint);
/* `seconds`: training time so far, which resuming goes on from. */
VKN_API vkn_status vkn_trainer_save(vkn_trainer *trainer, const char *checkpoint);

/* The training images on the device: all, or so many at a time; see vkn_config.scene.image_budget.
 */
struct vkn_images {
    size_t size;                    /* see <vknerf/api.h> */
    size_t count;                   /* images; with parallel.images=share those of this rank */
    size_t strips;                  /* of rows, that each is cut into; 1: none is cut */
    size_t resident;                /* strips on the device, of all together */
    uint32_t streamed_per_interval; /* of these so many are exchanged every 16 steps; 0: all are
                                       there */
    uint64_t bytes;                 /* of device memory that images take */
    uint64_t exchange_bytes;        /* of host memory that the device copies them from */
    uint64_t host_bytes; /* decoded and kept in host memory; 0: read from their files as needed */
    uint32_t downscale;  /* of those that come in now: the scene's, more in progressive training */
    /* Strips that came in since the trainer began; exchanges not ready in time. */
    uint64_t exchanged, late;
};
/* VKN_BAD_INPUT for a size that there never was. */
VKN_API vkn_status vkn_trainer_images(const vkn_trainer *trainer, struct vkn_images *images);

#define VKN_MAX_BUFFERS 64 /* entries that are room enough for vkn_trainer_memory */

/* Device memory of the buffers of one name. */
struct vkn_buffer_memory {
    const char *name; /* literal */
    uint64_t bytes;   /* alignment included */
    bool on_host;     /* where the host sees it as well */
};
/* Device memory by what it is for, the largest first. The sum is gpu_memory_bytes at the same
 * moment. Fills up to `capacity` entries (at least 1), the last with all that is left over; returns
 * how many. */
VKN_API size_t vkn_trainer_memory(const vkn_trainer *trainer, struct vkn_buffer_memory *buffers,
                                  size_t capacity);

/* What passes between ranks that train together, since the trainer began. */
struct vkn_communication {
    size_t size;
    uint32_t ranks;            /* that train; 1: alone, and all else is 0 */
    uint32_t ranks_per_device; /* of these, that each device plays: parallel.ranks_per_device */
    uint64_t bytes;            /* that a rank exchanges in a step */
    double seconds;            /* of exchanges; of these, */
    double waiting_seconds;    /* for slower ranks, */
    double hidden_seconds;     /* while the rank's own device computed */
    double step_seconds;       /* of the steps, exchanges included */
};
/* VKN_BAD_INPUT for a size that there never was. */
VKN_API vkn_status vkn_trainer_communication(const vkn_trainer *trainer,
                                             struct vkn_communication *exchange);

/* The library's; grows at its end. */
struct vkn_train_stats {
    uint64_t step;     /* steps finished */
    double seconds;    /* training time over all resumes */
    double loss, psnr; /* mean over the rays since the last report */
    /* Of the last step; the norm before it is clipped. */
    double learning_rate, loss_scale, grad_norm;
    uint64_t skipped_steps; /* gradients not finite, since the start */
    double underflowed;     /* share of the activations' gradients that 16 bits turned into zero
                           since the last report; 0 in fp32 */
    /* Means since the last report. samples_per_second counts samples that carry a gradient. */
    double steps_per_second, rays_per_second, samples_per_second, marched_per_second;
    uint64_t gpu_memory_bytes; /* device memory that vknerf holds */
    double idle_share; /* of the time since the last report, in which the device ran no step, from
                          its own clock; NaN where it has no timestamps */
    double exchange_share; /* of that time, in which this rank exchanged gradients with others; NaN:
                              alone */
    const struct vkn_images *images; /* as of now */
};

/* How far a trainer trains, and whom it tells. */
struct vkn_train_run {
    size_t size;
    uint32_t until_step; /* return at the latest when this many steps are finished; 0: the config's
                            limits alone */
    double seconds; /* return soon after as many, a period of steps at the least; 0: no such limit
                     */
    const volatile sig_atomic_t *stop; /* return VKN_INTERRUPTED soon after it becomes non-zero; may
                                          be NULL */
    double report_seconds;             /* between reports; 0: 0.5 */
    void (*report)(void *context, const struct vkn_train_stats *stats); /* may be NULL. It, `warn`
                                 and `due` are called while the device is at work, and use nothing
                                 of the context but what only tells */
    /* One line for people, without newline: steps skipped, learning rate lowered, gradients that
     * become zero in 16 bits, are zero or jump, rays that get worse or of which nothing is learnt.
     * NULL: to the log. */
    void (*warn)(void *context, const char *line);
    void *context; /* of both, and of: */
    /* Somebody who looks at the field while it trains (since 0.2). Seconds from now until a visit
     * is wanted: 0: at once; HUGE_VAL: none is, as far as is known. Asked between periods of steps
     * or, while a visit is to come, between steps. NULL: nobody looks. */
    double (*due)(void *context);
    /* The visit, between two steps (since 0.2): nothing of the trainer is under way, whose seconds
     * stand still. It may use the trainer, but not train with it; a failure ends the run. Steps are
     * the same whether there are visits or not. */
    vkn_status (*between_steps)(void *context);
};

/* Trains until a limit of the configuration, until_step or stop. The last report is of the last
 * step. VKN_ERROR, with a message that says since which step, what was not finite first, and what
 * to change: the training has diverged, or no step is taken any more (docs/precision.md). `run` may
 * be NULL: to a limit of the configuration, without reports. */
VKN_API vkn_status vkn_trainer_run(vkn_trainer *trainer, const struct vkn_train_run *run);
/* Whether the configuration's limit is reached. */
VKN_API bool vkn_trainer_finished(const vkn_trainer *trainer);
VKN_API uint64_t vkn_trainer_step(const vkn_trainer *trainer);
VKN_API double vkn_trainer_seconds(const vkn_trainer *trainer);

/* From here on every pass of every step is timed from its begin to its end, so that idle time
 * between passes shows, and events are kept for a trace. Costs a little. Before the first
 * vkn_trainer_run. */
VKN_API vkn_status vkn_trainer_start_profile(vkn_trainer *trainer);

/* Milliseconds that each pass took on the device in one step: the mean over the steps timed so far,
 * one in each period, or all with vkn_trainer_start_profile; occupancy passes spread over theirs.
 * Returns the number of passes, 0 on devices without timestamps. */
struct vkn_pass_time {
    const char *name;    /* literal */
    double milliseconds; /* of a step */
};
/* Fills up to `capacity` times, in the order of the passes; see vkn_pass_time. */
VKN_API size_t vkn_trainer_pass_times(const vkn_trainer *trainer, struct vkn_pass_time *times,
                                      size_t capacity);

/* ---- where the time goes --------------------------------------------------------------------- */

/* A pass in one step; docs/cost_model.md says how its work is counted. */
struct vkn_pass_profile {
    const char *name;             /* literal */
    double milliseconds;          /* from its begin to its end */
    double flops, bytes, atomics; /* that it does, whether caches serve its bytes or not */
    double memory_bytes;          /* what perfect caches would leave of them for the memory */
    double floor_milliseconds; /* least by its work and the device's peaks; 0: peaks are not known
                                */
    const char *bound;         /* what the floor comes from: "flops", "bytes", "atomics" or "" */
};

/* The library's, until vkn_profile_free. */
struct vkn_profile {
    struct vkn_pass_profile **passes;  /* in order */
    size_t pass_count;                 /* 0: the device has no timestamps, or nothing ran yet */
    double idle_milliseconds;          /* of the device between the passes of a step */
    double interval_idle_milliseconds; /* and between periods of 16 steps; both by step */
    uint64_t steps, intervals;         /* that were timed */
    /* Means of a step: samples that were marched, and those that carry a gradient; grid entries
     * that gradients reached, since the start of the run; cells where an update evaluates the
     * field. */
    double rays, marched_samples, live_samples, touched_entries, evaluated_cells;
    double peak_flops, peak_bytes, peak_atomics; /* of the device, per second; 0: not measured */
};

/* What vkn_trainer_start_profile has found so far. The caller frees *profile. */
VKN_API vkn_status vkn_trainer_profile(vkn_trainer *trainer, struct vkn_profile **profile);
/* Nulls *profile, and takes NULL. */
VKN_API void vkn_profile_free(struct vkn_profile **profile);

VKN_END_DECLARATIONS

#endif
