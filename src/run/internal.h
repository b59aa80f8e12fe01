/* Declares what the jobs on run directories share: locks, parameters, folders and records. */
#ifndef RUN_INTERNAL_H
#define RUN_INTERNAL_H

#include <vknerf/run.h>

#include "base/base.h"
#include "report/report.h"
#include "scene/scene.h"
#include "train/train.h"

struct cJSON;
struct run_ranks;

#define RUN_CHECKPOINT_STEM   "checkpoint"
#define RUN_CHECKPOINT_ENDING ".safetensors"
#define RUN_CHECKPOINT        RUN_CHECKPOINT_STEM RUN_CHECKPOINT_ENDING
#define RUN_CONFIG            "config.json"
#define RUN_SUMMARY           "summary.json"
#define RUN_CAMERAS           "cameras.json"
#define RUN_JSON_LIMIT        ((size_t)16 << 20) /* bytes of a JSON file that is read */
#define RUN_VIEWS             "views"
#define RUN_REPORT            "report.html"
#define RUN_TRACE             "trace.json"

/* ---- lock (lock.c) --------------------------------------------------------------------------- */

/* One process at a time writes a run. Readers need no lock. */
#define RUN_LOCK ".lock" /* names the process that writes the run; removed with the lock */

/* A lock on a run directory; zero: none. */
struct run_lock {
    char *path; /* of RUN_LOCK; NULL: not locked */
    char *folder;
    int descriptor, folder_descriptor;
};

/* Locks the folder for this process, and removes unfinished files of a process that was killed.
 * Does nothing when *lock is held already. VKN_BAD_INPUT names the process that has the lock. The
 * lock ends with its process, in whatever way the process ends. */
vkn_status run_lock_take(const char *folder, struct run_lock *lock);
/* Returns VKN_ERROR when the folder was moved, removed or replaced since it was locked. */
vkn_status run_lock_check(const struct run_lock *lock);
void run_lock_release(struct run_lock *lock);

/* ---- params (params.c) --------------------------------------------------------------------- */

/* Copies the caller's *job (NULL: all defaults) to *copy and points *job to *copy. */
vkn_status run_read_job(const struct vkn_job **job, struct vkn_job *copy);
/* Copies the caller's parameters to *copy, with defaults for NULL. copy->job points to *job. */
vkn_status run_read_train(const struct vkn_train_params *given, struct vkn_train_params *copy,
                          struct vkn_job *job);

/* Creates the result of a training that begins, all zero. */
vkn_status run_create_result(struct vkn_train_result **result);

/* ---- folders (folder.c) -------------------------------------------------------------------- */

/* Finds the checkpoint of `run`, a run directory or a checkpoint. The caller frees *checkpoint.
 * VKN_BAD_INPUT when there is none. */
vkn_status run_find_checkpoint(const char *run, char **checkpoint);
/* Progress of the training in a checkpoint, from its metadata. */
struct run_reached {
    uint64_t step;
    double seconds; /* of training; 0 in deterministic runs */
};
/* Reads configuration, scene path and progress from a checkpoint. The caller frees *scene; `scene`
 * and `reached` may be NULL. */
vkn_status run_read_checkpoint(const char *checkpoint, struct vkn_config *config, char **scene,
                               struct run_reached *reached);
/* Chooses the run directory of a training and locks it if it exists. The caller frees *folder. */
vkn_status run_choose_folder(const struct vkn_train_params *params, const char *scene,
                             char **folder, struct run_lock *lock);
/* Makes the folder, locks it unless it is locked, and checks that files can be written there. If a
 * folder of the default name exists by now, *folder becomes another name. Sets *made to whether it
 * made the folder. */
vkn_status run_prepare_folder(const struct vkn_train_params *params, char **folder,
                              struct run_lock *lock, bool *made);
/* Opens the scene at `given` or, if NULL, at the path that a run recorded; if the recorded scene
 * cannot be opened, the message names --scene. */
vkn_status run_open_scene(const char *given, const char *recorded, const struct vkn_config *config,
                          struct vkn_scene **scene);
/* Returns the path with all links resolved, unchanged if it does not exist. The caller frees it. */
char *run_absolute_path(const char *path);

/* ---- records (records.c) --------------------------------------------------------------- */

/* Content of summary.json. */
struct run_record {
    const char *status;  /* "running", "finished", "interrupted", "failed" */
    const char *failure; /* the error; NULL: none */
    const char *scene;
    const char *device, *driver;
    const struct vkn_config *config; /* effective */
    const struct vkn_backend *backend;
    const struct vkn_train_result *result; /* evaluation NULL: not evaluated */
    const struct cJSON *evaluations;       /* array, see run_add_evaluation */
    bool has_pictures;                     /* views/ holds the evaluation's pictures */
    struct train_gradients gradients;
    struct train_sampling sampling;
    struct vkn_communication communication;
    const struct run_ranks *ranks; /* NULL: a single rank */
};

/* Write config.json and summary.json into the folder. */
vkn_status run_write_config(const char *folder, const struct run_record *record,
                            const struct vkn_train_params *params);
vkn_status run_write_summary(const char *folder, const struct run_record *record);
/* Pictures of an evaluation that later evaluations do not overwrite. */
struct run_pictures {
    char prefix[32];   /* of the file names: "step_000500_" */
    size_t every, end; /* views 0, every, 2 every, ... before end of the evaluation have pictures */
};
/* Appends {"step", "seconds", "psnr", "ssim", "views"} and, unless `pictures` is NULL, "pictures":
 * [{"name", "render", "target", "psnr", "ssim"}, ...]. */
vkn_status run_add_evaluation(struct cJSON *evaluations, const struct vkn_evaluation *evaluation,
                              double seconds, const struct run_pictures *pictures);
/* Returns the name of a view's picture file, which the caller frees: for prefix "step_000500_" and
 * kind "" "views/step_000500_test_003.png". Kinds "_target", "_error", "_depth" and "_opacity" have
 * no prefix. */
char *run_picture_file(const char *prefix, const char *view, const char *kind);
/* Returns the evaluations up to `step` from summary.json, or an empty array; NULL: no memory. */
struct cJSON *run_old_evaluations(const char *folder, uint64_t step);
/* Returns the reason for the backend ("path_why") from the folder's summary.json, which the caller
 * frees; NULL if the run had another precision. */
char *run_old_why(const char *folder, enum vkn_precision precision);

/* ---- images (begin.c) ---------------------------------------------------------------------- */

/* Calls train_load_images and shows its progress. */
vkn_status run_load_images(struct vkn_scene *scene, const struct vkn_config *config,
                           const struct parallel *parallel, struct report_progress *progress);
/* Logs how many of the training images are on the device, and how they are streamed. */
void run_log_streaming(const struct vkn_images *images);

/* Names by enum vkn_split: "train", ... */
extern const char *const run_split_names[];

#endif
