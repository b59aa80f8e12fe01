/* train: implements vknerf/trainer.h; this header declares what other modules need besides it. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <vknerf/trainer.h>

struct cJSON;
struct cost_peaks;
struct field_backend;
struct gpu_device;
struct parallel;
struct step;
struct step_outliers;

/* Decodes the training images, or this rank's share of them, if they fit scene.host_budget; else
 * they are decoded from their files whenever they are needed. `parallel`: NULL for a single rank;
 * `progress` may be NULL. VKN_BAD_INPUT: parallel.images=share with fewer images than ranks. */
vkn_status train_load_images(struct vkn_scene *scene, const struct vkn_config *config,
                             const struct parallel *parallel,
                             void (*progress)(void *context, size_t done, size_t total),
                             void *context);

/* Computes the bytes of device memory that a trainer would allocate, without alignment.
 * VKN_BAD_INPUT as vkn_trainer_create. */
vkn_status train_memory(const struct gpu_device *device, const struct vkn_scene *scene,
                        const struct vkn_config *config, uint64_t *bytes);

/* ---- several ranks --------------------------------------------------------------------------- */

/* Creates the trainer of one of several ranks, which all have the same effective configuration;
 * `parallel` NULL: of a single rank. With parallel.images=share every rank needs a scene of its
 * own. The communicator stays the caller's. All ranks call train_broadcast_state before the first
 * vkn_trainer_run. From then on all runs end with rank 0's, or if any rank fails or is stopped. */
vkn_status train_create(vkn_context *context, vkn_scene *scene, const struct vkn_config *config,
                        struct parallel *parallel, vkn_trainer **trainer);
/* Returns VKN_OK if `status` is VKN_OK on all ranks; else, on all ranks, the status and the last
 * error ("rank 1: ...") of the first rank that has failed. Collective. */
vkn_status train_sync_status(struct parallel *parallel, vkn_status status);
/* Broadcasts the state of rank 0's trainer to all other ranks. Collective. */
vkn_status train_broadcast_state(vkn_trainer *trainer);
/* Ends this rank's part in the training. If `status` is a failure, sends the last error to all
 * other ranks, which then end with it. */
void train_announce_end(struct parallel *parallel, vkn_status status);
/* Calls train_announce_end and destroys this rank's communicator. */
void train_leave(struct parallel *parallel, vkn_status status);
/* Returns whether this trainer's own device is lost. */
bool train_device_is_lost(const vkn_trainer *trainer);

/* A trainer's internals that rendering needs. All pointers belong to the trainer. */
struct train_internals {
    const struct step *step;
    const uint64_t *steps_done;
    const char *scene_path;
};
struct train_internals train_internals(const vkn_trainer *trainer);

/* Adds a reference, for which the caller also calls vkn_trainer_destroy. */
vkn_trainer *train_hold(vkn_trainer *trainer);

/* Returns the guard of the trainer's device, for callbacks that may use the trainer. */
struct base_guard *train_guard(vkn_trainer *trainer);

/* Return what vkn_trainer_images and vkn_trainer_communication return. */
struct vkn_images train_images(const vkn_trainer *trainer);
struct vkn_communication train_communication(const vkn_trainer *trainer);

#define TRAIN_WHY 320 /* bytes of vkn_backend.why */
/* Replaces the text of vkn_backend.why. */
void train_explain_backend(vkn_trainer *trainer, const char *why);

/* Counts of the gradient monitor since the trainer was created or resumed. */
struct train_gradients {
    uint64_t steps;                     /* with a finite gradient */
    uint64_t underflowed, jumps, zeros; /* part of `steps`: with much f16 underflow; with a norm far
                                           above the usual one; with a gradient of zero */
    uint64_t skipped, nonfinite_losses; /* skipped steps; steps with a loss that was not finite */
    uint64_t skipped_steps;             /* skipped since the start of the run */
    char warning[512];                  /* summary of the warnings; empty: there was no warning */
};
struct train_gradients train_gradients(const vkn_trainer *trainer);

/* Returns whether vkn_trainer_run failed because the training has diverged or skips every step.
 * Such a state is not worth a checkpoint. */
bool train_ended_early(const vkn_trainer *trainer);
/* Returns whether the last steps were neither skipped nor much worse than before. Otherwise the
 * weights must not replace a checkpoint. */
bool train_is_sound(const vkn_trainer *trainer);
/* Checks a training at its end, before it is saved. VKN_ERROR, with the message of a failed
 * training, if every step was skipped or if the weights are not finite. */
vkn_status train_check_end(vkn_trainer *trainer);
/* Returns `status`, the status of a failed save. If the reason is a state that is not finite, marks
 * the training as failed and sets its error message: no later save could succeed. */
vkn_status train_check_failed_save(vkn_trainer *trainer, vkn_status status);

/* Statistics of the sampling since the trainer was created or resumed. Samples are means per ray.
 * Means and shares are 0 as long as no ray was sampled. */
struct train_sampling {
    enum vkn_sampling kind;
    uint64_t steps;
    double seconds, rays; /* training time; number of rays */
    double timed_rays;    /* part of `rays` that were sampled in `seconds` */
    double evaluated;     /* samples at which any field was evaluated */
    double coarse;        /* evaluated samples of the coarse field or the proposal */
    double live;          /* samples of the main field with a gradient: neither behind a surface
                             nor, with march.alpha_threshold, transparent */
    double march_steps;   /* steps of the march through the whole cube */
    double empty_share;   /* share of march_steps that the occupancy grid skips; 0 without a grid */
    double behind_share;  /* share of the main field's evaluated samples that are not live */
};
struct train_sampling train_sampling(const vkn_trainer *trainer);
/* Returns object "sampling" of summary.json, which the caller frees; NULL without memory. */
struct cJSON *train_sampling_json(const struct train_sampling *sampling);

#define TRAIN_MAX_PASSES 72u /* at most returned by vkn_trainer_pass_times */

/* ---- the profile, see vkn_trainer_start_profile ---------------------------------------------- */

/* Measures the device's peak rates in the arithmetic of the backend. */
typedef vkn_status train_peaks(struct gpu_device *device, const struct field_backend *backend,
                               struct cost_peaks *peaks);
/* Implements vkn_trainer_profile. `measure` comes from module bench, which train must not call. */
vkn_status train_profile(vkn_trainer *trainer, train_peaks *measure, struct vkn_profile **profile);

/* Adds a host event from `began` (base_seconds()) until now, at the trainer's step. `name`: a
 * literal. Does nothing without a profile. */
void train_add_event(vkn_trainer *trainer, const char *name, double began);
/* Writes a picture of the error map to the PNG file `path`, and sets what outliers it has; removes
 * the file if the training keeps no error map. */
vkn_status train_write_errors(const vkn_trainer *trainer, const char *path,
                              struct step_outliers *found);
/* Writes the trace of all events since `origin` (base_seconds()) to `path`. */
vkn_status train_write_trace(vkn_trainer *trainer, const char *path, double origin,
                             const char *device, const char *driver);

#endif
