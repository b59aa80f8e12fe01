/* Declares the parts of vkn_run_train: inputs, ranks, checkpoints, logs, evaluations, callbacks. */
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
#include "step/step.h"

/* ---- inputs (begin.c) ------------------------------------------------------------------------ */

/* Inputs of a training. */
struct run_beginning {
    const struct vkn_train_params *params;
    struct vkn_config config;   /* for the trainer, not effective yet */
    struct vkn_config recorded; /* effective, of the run to resume */
    char *scene_path;
    char *checkpoint; /* to resume or to read initial weights from; NULL: neither */
};

/* Reads the checkpoint of a run to resume or to initialise from, and completes the configuration.
 * VKN_BAD_INPUT for a new limit that the run has already passed. The caller closes *beginning, also
 * after a failure. */
vkn_status run_begin(const struct vkn_train_params *params, struct run_beginning *beginning);
/* Replaces inherited settings that the device does not support by supported ones, with a warning
 * each. Unsupported settings that the user gives stay, and the trainer refuses them. */
void run_begin_fit(struct run_beginning *beginning, const vkn_scene *scene,
                   const struct gpu_capabilities *device);
/* Restores a resumed run's reason for its precision in vkn_backend.why: the trainer itself says
 * "asked for" of every precision that its configuration names. */
void run_begin_explain(const struct run_beginning *beginning, vkn_trainer *trainer);
/* Opens the scene to train on. If a resumed run's scene has moved, the message says what to do. */
vkn_status run_begin_scene(const struct run_beginning *beginning, vkn_scene **scene);
void run_begin_close(struct run_beginning *beginning);

/* ---- ranks (ranks.c) ------------------------------------------------------------------------- */

struct parallel;
struct run_ranks;

/* Creates one rank for each of params->devices, or joins this process to those that mpirun has
 * started. *ranks stays NULL for a training of a single rank; the functions below accept NULL,
 * except run_ranks_device and run_ranks_follow. VKN_BAD_INPUT: a malformed list, a list together
 * with job.device, or several processes without MPI; also, on all ranks and with *ranks set,
 * processes that differ in version or command line. The caller closes *ranks. */
vkn_status run_ranks_open(const struct vkn_train_params *params, struct run_ranks **ranks);
void run_ranks_close(struct run_ranks **ranks);
/* Returns whether the last error is that of another process, which reports the error itself. */
bool run_ranks_other_failed(const struct run_ranks *ranks, vkn_status status);
/* Returns this rank's communicator; NULL: a single rank. */
struct parallel *run_ranks_comm(const struct run_ranks *ranks);
/* Returns the number of this process's rank; 0 for threads. */
uint32_t run_ranks_rank(const struct run_ranks *ranks);
/* Opens this rank's device. */
vkn_status run_ranks_context(const struct run_ranks *ranks, const struct vkn_train_params *params,
                             vkn_context **context);

/* Starts the other ranks, on rank 0: they train on the scene with the trainer's configuration, and
 * begin with its state. */
vkn_status run_ranks_start(struct run_ranks *ranks, vkn_scene *scene, vkn_trainer *trainer);
/* Ends the training of the other ranks, on rank 0; with a failure as `status` they fail, too. */
void run_ranks_announce_end(struct run_ranks *ranks, vkn_status status);
/* Ends the other ranks, on rank 0, and waits for their threads. Called after the last checkpoint,
 * because launchers end all processes after one has failed, and before the scene is closed. */
void run_ranks_leave(struct run_ranks *ranks, vkn_status status);
/* Return the number of ranks, and a rank's device once all have started. */
size_t run_ranks_count(const struct run_ranks *ranks);
const char *run_ranks_device(const struct run_ranks *ranks, size_t index);

/* Trains as a process of a rank other than 0, until rank 0 ends. Returns VKN_OK also for an
 * interrupted training: rank 0 reports the interruption. */
vkn_status run_ranks_follow(struct run_ranks *ranks);

/* ---- checkpoints (save.c) -------------------------------------------------------------------- */

/* State of the checkpoints of a run. */
struct run_saver {
    vkn_trainer *trainer;
    struct report_progress *progress; /* pauses for warnings */
    const struct run_lock *lock;
    const char *folder;
    char *path;          /* of the checkpoint */
    double last_try;     /* base_seconds() of the last try, or when training began */
    double cost_seconds; /* time that the last save took */
    double wait_seconds; /* time until the next try after a failure; 0: the last save worked */
    uint64_t step;       /* of the existing checkpoint */
    bool exists, written_here; /* a checkpoint exists; this saver wrote it */
    bool is_delayed;           /* a due save waits until the weights are sound */
};

/* Opens a saver whose members trainer, progress, lock and folder are set. They must outlive *saver,
 * which the caller closes. */
vkn_status run_saver_open(struct run_saver *saver);
void run_saver_close(struct run_saver *saver);

/* Return the step (UINT32_MAX: none), and the seconds from now (HUGE_VAL: never), at which the next
 * save is due. */
uint64_t run_saver_until_step(const struct run_saver *saver);
double run_saver_seconds(const struct run_saver *saver);
/* Saves if a save is due; `until`: the last result of run_saver_until_step. Warns of a failed save
 * and tries again later, unless the device is lost or the training has diverged. */
vkn_status run_saver_save_if_due(struct run_saver *saver, uint64_t until);
/* Saves at once, with the same handling of failures. */
vkn_status run_saver_save(struct run_saver *saver);
/* Saves the last step unless it is saved already. An error, VKN_ERROR or VKN_NO_DEVICE, says which
 * step is lost and how to go on. */
vkn_status run_saver_finish(struct run_saver *saver);

/* Handles a failure that ends the run, such as an image that cannot be read: saves the training if
 * it is sound, and adds to the last error what is saved and how to go on. Returns the status. */
vkn_status run_saver_fail(struct run_saver *saver, vkn_status status);

/* Removes all checkpoints of a run that is trained anew. */
void run_remove_checkpoints(const char *folder);

/* ---- metrics and event files (run_log.c) ------------------------------------------------- */

struct run_log;

/* Opens the logs in the run directory to continue after `step`; event files unless log.tensorboard
 * is off. `folder` and `progress` must outlive *run_log, which the caller closes. */
vkn_status run_log_open(const char *folder, uint64_t step, const struct vkn_config *config,
                        struct report_progress *progress, struct run_log **run_log);
/* Adds a line to both logs. A failure is a warning and closes the log that failed. */
void run_log_add(struct run_log *run_log, const struct report_metrics *metrics);
/* Adds an evaluation's means and pictures to the event file, with `targets` the views' images too.
 * Handles failures as run_log_add does. */
void run_log_add_evaluation(struct run_log *run_log, const struct vkn_evaluation *evaluation,
                            const struct run_pictures *pictures, bool targets);
/* Returns VKN_OK, or VKN_ERROR with the message of the first failure. */
vkn_status run_log_status(const struct run_log *run_log);
void run_log_close(struct run_log **run_log);

/* ---- evaluations (validate.c) ---------------------------------------------------------------- */

/* State of a training's evaluations. The caller sets and owns the members up to `stop`; `run_log`
 * later than the others. */
struct validation {
    vkn_trainer *trainer;
    vkn_scene *scene;
    enum scene_split_name split; /* to evaluate on */
    const char *folder;          /* the run directory */
    struct run_log *run_log;
    struct cJSON *evaluations; /* see run_add_evaluation */
    const volatile sig_atomic_t *stop;
    bool targets_logged;  /* the views' images are in the event file */
    uint64_t step;        /* of the last quick evaluation, or when training was resumed */
    double seconds;       /* training time at this step */
    size_t quick_views;   /* number of views in quick evaluations; 0: there was none yet */
    double rays_per_step; /* of the resumed run, before it was interrupted */
};

/* When an evaluation is due: as soon as one of the limits is reached. */
struct validation_due {
    uint64_t step;  /* UINT32_MAX: none */
    double seconds; /* from now, of training time; HUGE_VAL: none */
};

/* Completes the state of a training that begins or is resumed, from summary.json. */
void validate_open(struct validation *validation);
/* Returns when the next quick evaluation is due: at the steps of eval_every; unless these are set,
 * at 10, 20, 40 and 80 % of the limit that will end the training. */
struct validation_due validate_next(const struct validation *validation);
bool validate_is_due(const struct validation *validation);
/* Evaluates `eval_views` views, always the same; fewer or none where eval_every is not set and
 * rendering them would take a notable share of the training. A failure to write is a warning. */
vkn_status validate_quickly(struct validation *validation, struct report_progress *progress);
/* Evaluates all views, or a few of a scene that has only training views, and writes their pictures.
 * The caller frees *evaluation. */
vkn_status validate_finally(struct validation *validation, struct report_progress *progress,
                            struct vkn_evaluation **evaluation);

/* ---- vkn_train_callbacks (callbacks.c) -------------------------------------------------- */

/* The caller's callbacks during a training. */
struct run_callbacks {
    struct vkn_train_callbacks user; /* complete */
    struct run_saver *saver;         /* of the training */
};

/* Copies the caller's callbacks; `given` may be NULL. VKN_BAD_INPUT if only one of
 * `due` and `between_steps` is set. */
vkn_status run_callbacks_read(const struct vkn_train_callbacks *given,
                              struct run_callbacks *callbacks);
/* Call `opened` and `closed`. run_callbacks_close returns `status` and keeps the last error. */
void run_callbacks_open(struct run_callbacks *callbacks, struct run_saver *saver,
                        const char *scene);
vkn_status run_callbacks_close(struct run_callbacks *callbacks, vkn_status status);
/* Calls `report` if it is set. */
void run_callbacks_report(const struct run_callbacks *callbacks,
                          const struct vkn_train_stats *stats);
/* Call `due` and `between_steps`, as vkn_train_run needs them. */
double run_callbacks_due(const struct run_callbacks *callbacks);
vkn_status run_callbacks_between_steps(struct run_callbacks *callbacks);

/* ---- estimated time of a training (eta.c) ------------------------------------------------ */

/* Reports from which the remaining time is estimated. */
struct eta {
    unsigned reports;     /* number of reports so far */
    uint64_t first_step;  /* of the first report, which the compilation of pipelines delays */
    double first_seconds; /* training time at the first report */
};

/* Adds a report of the training. Returns true once, when a run without a time limit will take more
 * than ten more minutes; `line` then says so and suggests limits. `longest_side`: of the training
 * images, in pixels; `line` suggests a downscale factor for large ones. */
bool eta_update(struct eta *eta, const struct vkn_config *config,
                const struct vkn_train_stats *stats, uint32_t longest_side, char line[256]);
/* Returns whether the time limit, reached after `step` steps and `seconds`, left too few steps for
 * sharp pictures; `line` then says how many are usual, and what to change. */
bool eta_few_steps(const struct vkn_config *config, uint64_t step, double seconds, char line[256]);

/* ---- appearance of images (appearance.c) ----------------------------------------------------- */

/* Writes appearance.json, see run_write_views. */
vkn_status run_write_appearance(const char *folder, const struct step *step,
                                const struct vkn_scene *scene);

/* ---- refined cameras (cameras.c) ------------------------------------------------------------- */

/* Writes what the training has estimated of the training views, and logs it: the refined poses, and
 * how far they moved, to cameras.json in the run directory; the appearance to appearance.json.
 * Without scene.refine or scene.appearance removes the file of an earlier training. */
vkn_status run_write_views(const char *folder, const struct step *step,
                           const struct vkn_scene *scene);

/* ---- warnings about the capture (sanity.c) --------------------------------------------------- */

/* Warns of a scene that lies outside of the cube, and of a dynamic scene with a static model. */
void sanity_check_scene(const struct vkn_scene *scene, const struct vkn_config *config);
/* Logs what was found in the images, with the settings that depend on it: the plain background of
 * images without alpha, exposures that differ. */
void sanity_log_images(const struct vkn_scene *scene, const struct vkn_config *config);
/* Logs what loss.robust has left out, if the training has it. */
void sanity_log_outliers(const struct vkn_scene *scene, const struct vkn_config *config,
                         const char *folder, const struct step_outliers *found);
/* Warns of poses that do not fit the training images, if the images are in memory. */
void sanity_check_poses(const struct vkn_scene *scene);
/* Warns of overfitting, by the PSNR in dB of the training rays (0: unknown) and of the split. */
void sanity_check_quality(const struct vkn_scene *scene, double train_psnr,
                          enum scene_split_name split, double psnr);

#endif
