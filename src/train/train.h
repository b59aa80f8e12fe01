/* train: the trainer of vknerf/trainer.h; here what a run needs of it beside that. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <vknerf/trainer.h>

struct cJSON;
struct cost_peaks;
struct field_backend;
struct gpu_device;
struct parallel;
struct step;

/* Decodes the training images, or this rank's share of them, at once where the host's budget holds
 * them; else they are read from their files whenever they are needed. `parallel`: NULL alone;
 * `progress` may be NULL. VKN_BAD_INPUT for more ranks than images to share. */
vkn_status train_load_images(struct vkn_scene *scene, const struct vkn_config *config,
                             const struct parallel *parallel,
                             void (*progress)(void *context, size_t done, size_t total),
                             void *context);

/* Bytes of device memory that a trainer would take, but for alignment. VKN_BAD_INPUT as
 * vkn_trainer_create. */
vkn_status train_memory(const struct gpu_device *device, const struct vkn_scene *scene,
                        const struct vkn_config *config, uint64_t *bytes);

/* ---- several ranks -----------------------------------------------------------------------------
 */

/* vkn_trainer_create for one of several ranks, all with the same effective configuration; NULL:
 * alone. With parallel.images=share no two ranks have one scene. The caller keeps the rank's end,
 * and calls train_broadcast_state before the first vkn_trainer_run: from then on the ranks' runs
 * end together, when rank 0's does, and what is not rank 0's to decide fails or stops all. */
vkn_status train_create(vkn_context *context, vkn_scene *scene, const struct vkn_config *config,
                        struct parallel *parallel, vkn_trainer **trainer);
/* VKN_OK where all come with it; else the first rank's status and last error, on all, as "rank 1:
 * ...". */
vkn_status train_sync_status(struct parallel *parallel, vkn_status status);
/* All others take over the state of rank 0. */
vkn_status train_broadcast_state(vkn_trainer *trainer);
/* A rank trains no further, or could not begin: with a failure all others end as well, with the
 * last error as the reason. */
void train_announce_end(struct parallel *parallel, vkn_status status);
/* The same, and this rank's end is gone. */
void train_leave(struct parallel *parallel, vkn_status status);
/* Whether the trainer's device is lost, and not another rank's. */
bool train_device_is_lost(const vkn_trainer *trainer);

/* What the trainer trains, for those who show it: the step, how many of them are done, and the
 * scene's path. All belong to the trainer. */
struct train_internals {
    const struct step *step;
    const uint64_t *steps_done;
    const char *scene_path;
};
struct train_internals train_internals(const vkn_trainer *trainer);

/* Another holder, who calls vkn_trainer_destroy as well. */
vkn_trainer *train_hold(vkn_trainer *trainer);

/* Of its device, for callbacks that may use the trainer. */
struct base_guard *train_guard(vkn_trainer *trainer);

/* vkn_trainer_images and vkn_trainer_communication. */
struct vkn_images train_images(const vkn_trainer *trainer);
struct vkn_communication train_exchange(const vkn_trainer *trainer);

/* Bytes of vkn_backend.why. */
#define TRAIN_WHY 320
/* Replaces vkn_backend.why of the trainer, which computes as before. */
void train_explain_backend(vkn_trainer *trainer, const char *why);

/* What was seen of the gradients since the trainer began or went on. */
struct train_gradients {
    uint64_t steps;                     /* whose gradient was finite */
    uint64_t underflowed, jumps, zeros; /* of these, in which 16 bits turned much into zero, the
                                       norm was far above the usual one, all was zero */
    uint64_t skipped, lost;             /* steps that were skipped; whose loss was not finite */
    uint64_t skipped_steps;             /* since the start of the run */
    char warning[512]; /* how often there was what people were warned of; empty: they were not */
};
struct train_gradients train_gradients(const vkn_trainer *trainer);

/* Whether vkn_trainer_run failed because the training is over before its limit: it has diverged, or
 * no step is taken any more. Its state is not worth a checkpoint. */
bool train_ended_early(const vkn_trainer *trainer);
/* Whether the last steps give no reason to doubt the weights: else they take no checkpoint's place.
 */
bool train_is_sound(const vkn_trainer *trainer);
/* At the end of a training, before it is saved: VKN_ERROR as from a training that ended early where
 * no step was taken at all, or where the weights are not finite. */
vkn_status train_check_end(vkn_trainer *trainer);
/* After a save that failed with `status`, which comes back: with an error as from a training that
 * ended early, where what would be saved is not finite; none later could be saved either. */
vkn_status train_check_failed_save(vkn_trainer *trainer, vkn_status status);

/* How rays were sampled since the trainer began or went on; shares and samples of a ray are means,
 * zero while there is nothing to tell them from. */
struct train_sampling {
    enum vkn_sampling kind;
    uint64_t steps;
    double seconds, rays; /* of training; all */
    double evaluated;     /* samples of a ray, of which as many as `coarse` are a coarse field's; */
    double coarse;
    double live;         /* those of the others that count: neither behind a surface nor, with
                            march.alpha_threshold, transparent */
    double march_steps;  /* of a ray, whatever is there */
    double empty_share;  /* of march_steps that the occupancy grid leaves out; 0 without one */
    double behind_share; /* of what is evaluated, but the coarse, that does not count */
};
struct train_sampling train_sampling(const vkn_trainer *trainer);
/* As "sampling" of summary.json, for the caller; NULL on no memory. */
struct cJSON *train_sampling_json(const struct train_sampling *sampling);

#define TRAIN_MAX_PASSES 72u /* that vkn_trainer_pass_times tells of */

/* ---- the profile, see vkn_trainer_start_profile ---------------------------------------------- */

/* Measures what the device reaches, in the arithmetic of that backend. */
typedef vkn_status train_peaks(struct gpu_device *device, const struct field_backend *backend,
                               struct cost_peaks *peaks);
/* vkn_trainer_profile, with the peaks from a room that stands above this one. */
vkn_status train_profile(vkn_trainer *trainer, train_peaks *measure, struct vkn_profile **profile);

/* An event of the host at the trainer's step, from `began` (base_seconds()) until now. `name`:
 * literal. Nothing happens without a profile. */
void train_add_event(vkn_trainer *trainer, const char *name, double began);
/* Writes `path` as a trace of all events since `origin` (base_seconds()). */
vkn_status train_write_trace(vkn_trainer *trainer, const char *path, double origin,
                             const char *device, const char *driver);

#endif
