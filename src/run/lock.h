/* The lock of a run directory: one process at a time writes a run. Who only reads needs none. */
#ifndef RUN_LOCK_H
#define RUN_LOCK_H

#include "base/base.h"

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

#endif
