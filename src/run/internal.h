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
    const char *split;                     /* name of the split that they measure */
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
/* Adds a measured value, rounded to 1 / `factor`, because meaningless digits hide differences. */
void run_add_measure(struct cJSON *object, const char *name, double value, double factor);
/* Returns a JSON file of the run; NULL if it is missing or cannot be read. */
struct cJSON *run_read_json(const char *folder, const char *name);
/* Returns the reason for the backend ("path_why") from the folder's summary.json, which the caller
 * frees; NULL if the run had another precision. */
char *run_old_why(const char *folder, enum vkn_precision precision);

/* ---- evaluations (evaluations.c) ----------------------------------------------------------- */

/* Pictures of an evaluation that later evaluations do not overwrite. */
struct run_pictures {
    char prefix[32];   /* of the file names: "step_000500_" */
    size_t every, end; /* views 0, every, 2 every, ... before end of the evaluation have pictures */
    /* Means over the views that all evaluations of the run measure, which curves show. */
    double psnr, ssim;
    size_t quick_views; /* number of these views; 0: all of this evaluation */
};
/* Add the means of an evaluation, "per_view" with the quality of all views, and "pictures" with the
 * files of evenly spaced views. */
void run_evaluation_json(struct cJSON *json, const struct vkn_evaluation *evaluation);
void run_views_json(struct cJSON *json, const struct vkn_evaluation *evaluation);
void run_pictures_json(struct cJSON *json, const struct vkn_evaluation *evaluation);
/* Appends {"step", "seconds", "psnr", "ssim", "views"} and, unless `pictures` is NULL, "pictures":
 * [{"name", "render", "target", "psnr", "ssim"}, ...]; with quick_views also "quick": {"psnr",
 * "ssim", "views"}. */
vkn_status run_add_evaluation(struct cJSON *evaluations, const struct vkn_evaluation *evaluation,
                              double seconds, const struct run_pictures *pictures);
/* Returns the name of a view's picture file, which the caller frees: for prefix "step_000500_" and
 * kind "" "views/step_000500_test_003.png". Kinds "_target", "_error", "_depth" and "_opacity" have
 * no prefix. */
char *run_picture_file(const char *prefix, const char *view, const char *kind);
/* Returns the evaluations up to `step` from summary.json, or an empty array; NULL: no memory. */
struct cJSON *run_old_evaluations(const char *folder, uint64_t step);
/* Returns how many of `total` views the latest quick evaluation measured; 0: none, or all. */
size_t run_quick_views(const struct cJSON *evaluations, size_t total);
/* Adds "reached": for 25 and 30 dB the first evaluation with at least this PSNR on the views of
 * quick evaluations, as {"psnr", "split", "step", "seconds", "views"}. */
void run_reached_json(struct cJSON *json, const struct cJSON *evaluations, const char *split);

/* ---- images (begin.c) ---------------------------------------------------------------------- */

/* Calls train_load_images and shows its progress. */
vkn_status run_load_images(struct vkn_scene *scene, const struct vkn_config *config,
                           const struct parallel *parallel, struct report_progress *progress);
/* Logs how many of the `views` training images are on the device, how they are streamed, and a
 * progressive training. */
void run_log_images(const struct vkn_images *images, size_t views, const struct vkn_config *config);

#endif
