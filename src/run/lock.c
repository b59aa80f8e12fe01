/* Locks run directories against other processes. */
#include "run/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool same_file(const char *path, int descriptor)
{
    struct stat named, opened;
    return stat(path, &named) == 0 && fstat(descriptor, &opened) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/* Locks the file. *descriptor becomes -1 if the previous holder removed the file meanwhile. */
static vkn_status try_lock(const char *folder, const char *path, int *descriptor)
{
    BASE_TRY(base_lock_take(path, folder, "training into this folder", descriptor));
    if (same_file(path, *descriptor))
        return VKN_OK;
    close(*descriptor);
    *descriptor = -1;
    return VKN_OK;
}

static vkn_status lock_folder(const char *folder, struct run_lock *lock)
{
    do
        BASE_TRY(try_lock(folder, lock->path, &lock->descriptor));
    while (lock->descriptor < 0);
    /* The folder stays open, so that no new folder gets its inode number. */
    lock->folder_descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base_remove_temporaries(folder, RUN_CHECKPOINT_STEM);
    return VKN_OK;
}

vkn_status run_lock_take(const char *folder, struct run_lock *lock)
{
    if (lock->path)
        return VKN_OK;
    *lock = (struct run_lock){.path = base_path_join(folder, RUN_LOCK),
                              .folder = base_format("%s", folder),
                              .descriptor = -1,
                              .folder_descriptor = -1};
    vkn_status status = lock->path && lock->folder ? lock_folder(folder, lock) : VKN_ERROR;
    if (status != VKN_OK)
        run_lock_release(lock);
    return status;
}

vkn_status run_lock_check(const struct run_lock *lock)
{
    if (lock->folder_descriptor < 0 || same_file(lock->folder, lock->folder_descriptor))
        return VKN_OK;
    return base_fail(VKN_ERROR,
                     "%s: this folder was moved, removed or replaced since training began",
                     lock->folder);
}

void run_lock_release(struct run_lock *lock)
{
    if (lock->path && lock->descriptor >= 0) {
        if (same_file(lock->path, lock->descriptor)) /* removed before the lock is released */
            unlink(lock->path);
        close(lock->descriptor);
    }
    if (lock->path && lock->folder_descriptor >= 0)
        close(lock->folder_descriptor);
    free(lock->path);
    free(lock->folder);
    *lock = (struct run_lock){0};
}
