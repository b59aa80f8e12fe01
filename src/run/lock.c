#include "run/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/internal.h"

/* ---- who has it ---------------------------------------------------------------------------- */

/* Who has the lock is for messages alone, so a full disk is no reason not to train. A reader must
 * not take half of the line. */
static void write_owner(int descriptor)
{
    char host[128] = "this machine", line[192];
    if (gethostname(host, sizeof(host)) == 0)
        host[sizeof(host) - 1] = 0;
    int size = snprintf(line, sizeof(line), "%ld %s\n", (long)getpid(), host);
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, line, (size_t)size, 0) != size)
        base_log(BASE_LOG_DEBUG, "the lock's owner is not recorded: %s", strerror(errno));
}

static vkn_status refuse(const char *folder, int descriptor)
{
    char line[192] = "", *host = NULL;
    ssize_t size = pread(descriptor, line, sizeof(line) - 1, 0);
    long process = strtol(line, &host, 10);
    if (size > 0 && line[size - 1] == '\n' && process > 0 && *host == ' ')
        return base_fail(VKN_BAD_INPUT,
                         "%s: process %ld on %.*s is training into this folder; wait for its end, "
                         "or name another with --out",
                         folder, process, (int)strcspn(host + 1, "\n"), host + 1);
    return base_fail(VKN_BAD_INPUT,
                     "%s: another process is training into this folder; wait for its end, or name "
                     "another with --out",
                     folder);
}

/* ---- the lock ------------------------------------------------------------------------------ */

static bool same_file(const char *path, int descriptor)
{
    struct stat there, ours;
    return stat(path, &there) == 0 && fstat(descriptor, &ours) == 0 &&
           there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
}

/* *descriptor: of the locked file; -1 when the one before removed it in between. */
static vkn_status try_lock(const char *folder, const char *path, int *descriptor)
{
    *descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (*descriptor < 0)
        return base_fail(base_status_of_errno(errno), "%s: cannot be written: %s", path,
                         strerror(errno));
    int failed = flock(*descriptor, LOCK_EX | LOCK_NB) != 0 ? errno : 0;
    if (failed != EWOULDBLOCK && same_file(path, *descriptor)) {
        if (failed)
            base_log(BASE_LOG_WARNING,
                     "%s: cannot be locked (%s): make sure that nobody else trains into it", folder,
                     strerror(failed));
        return VKN_OK;
    }
    vkn_status status = failed == EWOULDBLOCK ? refuse(folder, *descriptor) : VKN_OK;
    close(*descriptor);
    *descriptor = -1;
    return status;
}

static vkn_status take(const char *folder, struct run_lock *lock)
{
    do
        BASE_TRY(try_lock(folder, lock->path, &lock->descriptor));
    while (lock->descriptor < 0);
    write_owner(lock->descriptor);
    /* Held open, so that no other folder gets its number. */
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
    vkn_status status = lock->path && lock->folder ? take(folder, lock) : VKN_ERROR;
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
        if (same_file(lock->path, lock->descriptor)) /* first, while nobody else can have it */
            unlink(lock->path);
        close(lock->descriptor);
    }
    if (lock->path && lock->folder_descriptor >= 0)
        close(lock->folder_descriptor);
    free(lock->path);
    free(lock->folder);
    *lock = (struct run_lock){0};
}
