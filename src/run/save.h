/* The checkpoints of a run that trains: when they are due, written, tried again, kept. */
#ifndef RUN_SAVE_H
#define RUN_SAVE_H

#include <vknerf/trainer.h>

#include "report/report.h"
#include "run/lock.h"

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
    bool put_off;    /* the last that was due: the weights were in doubt */
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
vkn_status run_saver_visit(struct run_saver *saver, uint64_t until);
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

#endif
