/* What the jobs on run directories share: where things are, and what is written about a run. */
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
#define RUN_JSON_LIMIT        ((size_t)16 << 20) /* bytes of such a file that is read again */
#define RUN_VIEWS             "views"
#define RUN_REPORT            "report.html"
#define RUN_TRACE             "trace.json"

/* ---- lock (lock.c) --------------------------------------------------------------------------- */

/* One process at a time writes a run. Who only reads needs no lock. */
#define RUN_LOCK ".lock" /* says who writes the run, and goes with it */

/* Zero is no lock. */
struct run_lock {
    char *path; /* of RUN_LOCK; NULL: not locked */
    char *folder;
    int descriptor, folder_descriptor;
};

/* Locks the folder for this process, and removes what a killed one left of files half written; does
 * nothing when *lock is held already. VKN_BAD_INPUT names the process that has it. A lock ends with
 * its process, however that ends. */
vkn_status run_lock_take(const char *folder, struct run_lock *lock);
/* VKN_ERROR when the folder was moved, removed or replaced since it was locked. */
vkn_status run_lock_check(const struct run_lock *lock);
void run_lock_release(struct run_lock *lock);

/* ---- params (params.c) --------------------------------------------------------------------- */

/* *job is as given, NULL: all defaults; it becomes `own`, which is complete. */
vkn_status run_read_job(const struct vkn_job **job, struct vkn_job *own);
/* What a caller gives, complete: no pointer that stands for defaults is NULL. `own` and `job`
 * belong together. */
vkn_status run_read_train(const struct vkn_train_params *given, struct vkn_train_params *own,
                          struct vkn_job *job);

/* Of a training that begins, all zero. */
vkn_status run_create_result(struct vkn_train_result **result);

/* ---- folders (folder.c) -------------------------------------------------------------------- */

/* The checkpoint of a run directory, or the file itself. Fresh memory. VKN_BAD_INPUT when there is
 * neither. */
vkn_status run_find_checkpoint(const char *run, char **checkpoint);
/* How far a checkpoint has come, as its metadata says. */
struct run_reached {
    uint64_t step;
    double seconds; /* of training; 0 in deterministic runs */
};
/* Configuration, scene path and progress that a checkpoint records; *scene is fresh memory, and
 * both may be NULL. */
vkn_status run_read_checkpoint(const char *checkpoint, struct vkn_config *config, char **scene,
                               struct run_reached *reached);
/* The run directory that training writes to; fresh memory. One that is there already is locked. */
vkn_status run_choose_folder(const struct vkn_train_params *params, const char *scene,
                             char **folder, struct run_lock *lock);
/* Makes the folder, locks it if it was not, and tries whether files can be written there. The
 * default becomes another one that is new when it exists by now. *made: it was not there before. */
vkn_status run_prepare_folder(const struct vkn_train_params *params, char **folder,
                              struct run_lock *lock, bool *made);
/* Opens the scene at `given`, or where that is NULL at the path that a run recorded: when it is not
 * there any more, the message names --scene. */
vkn_status run_open_scene(const char *given, const char *recorded, const struct vkn_config *config,
                          struct vkn_scene **scene);
/* The path with all links resolved, or as it is when nothing is there. Fresh memory. */
char *run_absolute_path(const char *path);

/* ---- records (records.c) --------------------------------------------------------------------- */

/* Everything that summary.json says. */
struct run_record {
    const char *status;  /* "running", "finished", "interrupted", "failed" */
    const char *failure; /* why it failed; NULL: it did not */
    const char *scene;
    const char *device, *driver;
    const struct vkn_config *config; /* effective */
    const struct vkn_backend *backend;
    const struct vkn_train_result *result; /* evaluation NULL: not evaluated */
    const struct cJSON *evaluations;       /* array, see run_add_evaluation */
    bool pictures;                         /* views/ holds the evaluation's pictures */
    struct train_gradients gradients;
    struct train_sampling sampling;
    struct vkn_communication exchange;
    const struct run_ranks *ranks; /* NULL: on one device */
};

vkn_status run_write_config(const char *folder, const struct run_record *record,
                            const struct vkn_train_params *params);
vkn_status run_write_summary(const char *folder, const struct run_record *record);
/* Renders of an evaluation that stay when the next one comes. */
struct run_pictures {
    char prefix[32];   /* of their file names: "step_000500_" */
    size_t every, end; /* of the evaluation's views 0, every, 2 every, ... before end */
};
/* Appends {"step", "seconds", "psnr", "ssim", "views"} and, where `pictures` is not NULL,
 * "pictures":
 * [{"name", "render", "target", "psnr", "ssim"}, ...]. */
vkn_status run_add_evaluation(struct cJSON *evaluations, const struct vkn_evaluation *evaluation,
                              double seconds, const struct run_pictures *pictures);
/* A view's picture in the run directory, in fresh memory: "views/step_000500_test_003.png" for the
 * prefix "step_000500_" and the kind ""; the others, "_target", "_error", "_depth" and
 * "_opacity", have no prefix. */
char *run_picture_file(const char *prefix, const char *view, const char *kind);
/* The evaluations up to `step` of the folder's summary.json, or an empty array. NULL on no memory.
 */
struct cJSON *run_old_evaluations(const char *folder, uint64_t step);
/* What the folder's summary.json says of why a run in that precision computes as it does; NULL when
 * it says nothing. Fresh memory. */
char *run_old_why(const char *folder, enum vkn_precision precision);

/* ---- images (begin.c) ---------------------------------------------------------------------- */

/* train_load_images with progress. */
vkn_status run_load_images(struct vkn_scene *scene, const struct vkn_config *config,
                           const struct parallel *parallel, struct report_progress *progress);
/* Says how many of the training images are on the device, and how they are exchanged. */
void run_tell_streaming(const struct vkn_images *images);

/* "train", ... */
extern const char *const run_split_names[];

#endif
