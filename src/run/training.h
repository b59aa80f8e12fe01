/* What a run that trains is made of: how it begins, its ranks, what it saves and says on the way.
 */
#ifndef RUN_TRAINING_H
#define RUN_TRAINING_H

#include <vknerf/run.h>
#include <vknerf/trainer.h>

#include "base/base.h"
#include "config/config.h"
#include "gpu/gpu.h"
#include "report/report.h"
#include "run/internal.h"
#include "scene/scene.h"

/* ---- what it begins with (begin.c) ----------------------------------------------------------- */

struct run_beginning {
    const struct vkn_train_params *params;
    struct vkn_config config;   /* for the trainer, not effective yet */
    struct vkn_config recorded; /* of the run to resume */
    char *scene_path;
    char *checkpoint; /* to resume or to take weights from; NULL: neither */
};

/* Reads the checkpoint's configuration. Refuses a new limit that a run to resume has passed, where
 * nothing would be trained, and says when it is at the limit that it had. The caller closes
 * *beginning, also after a failure. */
vkn_status run_begin(const struct vkn_train_params *params, struct run_beginning *beginning);
/* Settings that a resumed run was trained with but that this device cannot do become what it can,
 * with a warning each; what the user asks for stays, for the trainer to refuse. */
void run_begin_fit(struct run_beginning *beginning, const vkn_scene *scene,
                   const struct gpu_capabilities *device);
/* Makes vkn_backend.why of a resumed run's trainer say why the run computes as it does, when that
 * was decided as the run began: a trainer says "asked for" of every precision that it is given. */
void run_begin_explain(const struct run_beginning *beginning, vkn_trainer *trainer);
/* Opens the scene that is trained on; of a resumed run whose scene has moved the message says what
 * to do. */
vkn_status run_begin_scene(const struct run_beginning *beginning, vkn_scene **scene);
void run_begin_close(struct run_beginning *beginning);

/* ---- ranks (ranks.c) ------------------------------------------------------------------------- */

struct parallel;
struct run_ranks;

/* One rank for each of params->devices, or this process as one of several; *ranks stays NULL where
 * a training is alone. VKN_BAD_INPUT for a list that is none, or beside params->job.context.device,
 * or where there are several processes and no MPI; also, on all ranks and with *ranks set, where
 * processes differ in version or in what they are asked to train. The caller closes *ranks. All
 * others may be asked of NULL: alone. */
vkn_status run_ranks_open(const struct vkn_train_params *params, struct run_ranks **ranks);
void run_ranks_close(struct run_ranks **ranks);
/* Whether another process than this one has failed with the last error, and tells it. */
bool run_ranks_other_failed(const struct run_ranks *ranks, vkn_status status);
/* This rank's end; NULL: alone. */
struct parallel *run_ranks_comm(const struct run_ranks *ranks);
uint32_t run_ranks_rank(const struct run_ranks *ranks);
/* This rank's device, opened. */
vkn_status run_ranks_context(const struct run_ranks *ranks, const struct vkn_train_params *params,
                             vkn_context **context);

/* Of rank 0: the others train on that scene as its trainer does, from its state on. */
vkn_status run_ranks_start(struct run_ranks *ranks, vkn_scene *scene, vkn_trainer *trainer);
/* Ends their training: with a failure of rank 0 they stop as well. */
void run_ranks_announce_end(struct run_ranks *ranks, vkn_status status);
/* Ends them, once what must not be lost is saved: launchers end all processes where one has failed.
 * Only then may the scene be closed. */
void run_ranks_leave(struct run_ranks *ranks, vkn_status status);
/* Their devices in order, once they have started; `index` below run_ranks_count. */
size_t run_ranks_count(const struct run_ranks *ranks);
const char *run_ranks_device(const struct run_ranks *ranks, size_t index);

/* Of a process with another number: trains with rank 0 until that ends. VKN_OK as well where all
 * are told to stop, which rank 0 tells. */
vkn_status run_ranks_follow(struct run_ranks *ranks);

/* ---- checkpoints (save.c) -------------------------------------------------------------------- */

struct run_saver {
    vkn_trainer *trainer;
    struct report_progress *progress; /* pauses for warnings */
    const struct run_lock *lock;
    const char *folder;
    char *path;      /* of the checkpoint */
    double last;     /* base_seconds() of the last try, or when training began */
    double cost;     /* seconds that the last one took */
    double wait;     /* seconds before the next try after a failure; 0: the last one worked */
    uint64_t step;   /* of the checkpoint that is there */
    bool there, own; /* there is one; this saver wrote it */
    bool delay_save; /* the last that was due: the weights were in doubt */
};

/* For a trainer that begins or was resumed, with trainer, progress, lock and folder set; these must
 * outlive *saver, which the caller closes. */
vkn_status run_saver_open(struct run_saver *saver);
void run_saver_close(struct run_saver *saver);

/* Steps and seconds from now (0: no limit) until training should pause for a save. */
uint64_t run_saver_until_step(const struct run_saver *saver);
double run_saver_seconds(const struct run_saver *saver);
/* Saves if one is due, `until` being what run_saver_until_step said before. A failure is a warning
 * and tried again later; only a device that is lost ends the training. */
vkn_status run_saver_save_if_due(struct run_saver *saver, uint64_t until);
/* The same at once. */
vkn_status run_saver_save(struct run_saver *saver);
/* Saves what is not saved yet. An error says which step is lost and how to go on; it is VKN_ERROR
 * or VKN_NO_DEVICE. */
vkn_status run_saver_finish(struct run_saver *saver);

/* Whatever ends a run, such as an image that cannot be read any more, with the last error as the
 * reason: saves what is worth it, and adds to the error what is saved and how to go on. Returns the
 * status. */
vkn_status run_saver_fail(struct run_saver *saver, vkn_status status);

/* Removes the checkpoint of a run that is trained anew, and those that were kept beside it. */
void run_remove_checkpoints(const char *folder);

/* ---- metrics and event files (run_log.c) ----------------------------------------------------- */

struct run_log;

/* Goes on at `step` in the run directory; event files only when the configuration has them.
 * `folder` and `progress`, which pauses for warnings, must outlive *journal, which the caller
 * closes.
 */
vkn_status run_log_open(const char *folder, uint64_t step, const struct vkn_config *config,
                        struct report_progress *progress, struct run_log **run_log);
/* A line and its scalars. A failure is a warning and ends the log that failed, not the training. */
void run_log_add(struct run_log *run_log, const struct report_metrics *metrics);
/* An evaluation's means and its pictures on event files, in the same way. `targets`: the images
 * that the views should look like as well. */
void run_log_add_evaluation(struct run_log *run_log, const struct vkn_evaluation *evaluation,
                            const struct run_pictures *pictures, bool targets);
/* VKN_OK, or VKN_ERROR with the message of the first failure. */
vkn_status run_log_status(const struct run_log *run_log);
void run_log_close(struct run_log **run_log);

/* ---- evaluations (validate.c) ---------------------------------------------------------------- */

/* Belongs to the caller, as does all that it points to but the renderer. */
struct validation {
    vkn_trainer *trainer;
    vkn_scene *scene;
    enum scene_split_name split; /* to evaluate on */
    const char *folder;          /* the run directory */
    struct run_log *run_log;
    struct cJSON *evaluations; /* see run_add_evaluation */
    const volatile sig_atomic_t *stop;
    vkn_renderer *renderer; /* of the trainer; NULL until needed */
    bool targets_logged;
};

/* `eval_views` views, always the same. A picture or log that cannot be written is a warning. */
vkn_status validate_quickly(struct validation *validation, struct report_progress *progress);
/* All views, with their pictures; a few when there are but training views. The caller frees
 * *evaluation. */
vkn_status validate_finally(struct validation *validation, struct report_progress *progress,
                            struct vkn_evaluation **evaluation);
void validate_close(struct validation *validation);

/* ---- vkn_train_callbacks (callbacks.c)
 * ------------------------------------------------------------ */

struct run_callbacks {
    struct vkn_train_callbacks user; /* complete; due is NULL: there is none */
    struct run_saver *saver;         /* of the trainer that is looked at */
};

/* `given` may be NULL. VKN_BAD_INPUT for one that cannot be asked. */
vkn_status run_callbacks_read(const struct vkn_train_callbacks *given,
                              struct run_callbacks *callbacks);
/* From here on, until the end, which takes over the status and its error. */
void run_callbacks_open(struct run_callbacks *callbacks, struct run_saver *saver,
                        const char *scene);
vkn_status run_callbacks_close(struct run_callbacks *callbacks, vkn_status status);
/* As vkn_train_run has them. */
double run_callbacks_due(const struct run_callbacks *callbacks);
vkn_status run_callbacks_visit(struct run_callbacks *callbacks);

/* ---- how long it will take (eta.c) ------------------------------------------------------- */

struct eta {
    unsigned reports;     /* so far */
    uint64_t first_step;  /* of the first report, which the compilation of programs delays */
    double first_seconds; /* of training, at the first report */
};

/* Takes a report of training into account. True once, when the rates so far let a run that is
 * limited by its steps alone take more than ten minutes from here on: `line` then says so and what
 * ends sooner. `longest_side`: of the training images, in pixels; large ones are worth downscaling.
 */
bool eta_update(struct eta *eta, const struct vkn_config *config,
                const struct vkn_train_stats *stats, uint32_t longest_side, char line[256]);

/* ---- warnings about the capture (sanity.c) --------------------------------------------------- */

void sanity_check_scene(const struct vkn_scene *scene, const struct vkn_config *config);
/* Once the training images are loaded, where they are held in memory: poses that do not fit them.
 */
void sanity_check_poses(const struct vkn_scene *scene);
/* PSNR of what was trained on, 0 where it is not known, and of views of that split. */
void sanity_check_quality(const struct vkn_scene *scene, double train_psnr,
                          enum scene_split_name split, double psnr);

#endif
