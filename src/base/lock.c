/* Locks files, and reports which process holds a lock. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define MOST_HOST    128
#define MOST_NAME    64
#define WAIT_SECONDS 1.0

/* ---- the owner ------------------------------------------------------------------------------- */

static void name_host(char host[MOST_HOST])
{
    snprintf(host, MOST_HOST, "this machine");
    if (gethostname(host, MOST_HOST) == 0)
        host[MOST_HOST - 1] = 0;
}

/* The owner is only used in messages, so a failed write (full disk) is ignored. The line ends in a
 * newline, by which readers know that it is complete. */
static void write_owner(int descriptor)
{
    char host[MOST_HOST], line[MOST_HOST + 32];
    name_host(host);
    int size = snprintf(line, sizeof(line), "%ld %s\n", (long)getpid(), host);
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, line, (size_t)size, 0) != size)
        base_log(BASE_LOG_DEBUG, "the lock's owner is not recorded: %s", strerror(errno));
}

static bool read_owner(int descriptor, long *process, char host[MOST_HOST])
{
    char line[MOST_HOST + 32] = "", *end = NULL;
    ssize_t size = pread(descriptor, line, sizeof(line) - 1, 0);
    *process = strtol(line, &end, 10);
    if (size <= 0 || line[size - 1] != '\n' || *process <= 0 || *end != ' ')
        return false;
    snprintf(host, MOST_HOST, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
    return true;
}

static bool has_ended(long process, const char *host)
{
    char here[MOST_HOST];
    name_host(here);
    return strcmp(here, host) == 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH;
}

/* ---- children that the owner left behind ----------------------------------------------------- */

static bool has_open(const char *process, const struct stat *file)
{
    char *folder = base_format("/proc/%s/fd", process);
    DIR *stream = folder != NULL ? opendir(folder) : NULL;
    bool found = false;
    for (struct dirent *entry; !found && stream != NULL && (entry = readdir(stream)) != NULL;) {
        struct stat opened;
        char *path = base_path_join(folder, entry->d_name);
        found = path != NULL && stat(path, &opened) == 0 && opened.st_dev == file->st_dev &&
                opened.st_ino == file->st_ino;
        free(path);
    }
    if (stream != NULL)
        closedir(stream);
    free(folder);
    return found;
}

static void name_process(const char *process, char name[MOST_NAME])
{
    char *path = base_format("/proc/%s/comm", process);
    FILE *stream = path != NULL ? fopen(path, "re") : NULL;
    if (stream == NULL || fgets(name, MOST_NAME, stream) == NULL)
        snprintf(name, MOST_NAME, "?");
    name[strcspn(name, "\n")] = '\0';
    if (stream != NULL)
        fclose(stream);
    free(path);
}

/* Returns another process of this machine that has the file open; 0: none is visible. */
static long find_holder(int descriptor, char name[MOST_NAME])
{
    struct stat file;
    DIR *stream = fstat(descriptor, &file) == 0 ? opendir("/proc") : NULL;
    long holder = 0;
    for (struct dirent *entry;
         holder == 0 && stream != NULL && (entry = readdir(stream)) != NULL;) {
        long process =
            isdigit((unsigned char)entry->d_name[0]) ? strtol(entry->d_name, NULL, 10) : 0;
        if (process <= 0 || process == (long)getpid() || !has_open(entry->d_name, &file))
            continue;
        holder = process;
        name_process(entry->d_name, name);
    }
    if (stream != NULL)
        closedir(stream);
    return holder;
}

/* ---- lock ------------------------------------------------------------------------------------ */

static vkn_status refuse(const char *folder, const char *doing, int descriptor)
{
    static const char advice[] = "wait for its end, or name another folder with --out";
    char host[MOST_HOST], name[MOST_NAME];
    long process;
    if (!read_owner(descriptor, &process, host))
        return base_fail(VKN_BAD_INPUT, "%s: another process is %s; %s", folder, doing, advice);
    if (!has_ended(process, host))
        return base_fail(VKN_BAD_INPUT, "%s: process %ld on %s is %s; %s", folder, process, host,
                         doing, advice);
    long holder = find_holder(descriptor, name);
    if (holder == 0)
        return base_fail(
            VKN_BAD_INPUT,
            "%s: a program that process %ld on %s started and left behind is still %s; %s", folder,
            process, host, doing, advice);
    return base_fail(
        VKN_BAD_INPUT,
        "%s: process %ld (%s) is still %s, though the vknerf that started it has ended; "
        "wait for its end, or end it",
        folder, holder, name, doing);
}

/* Locks by flock. If the owner has ended, waits WAIT_SECONDS for its children to end. */
static int try_lock(int descriptor)
{
    char host[MOST_HOST];
    long process;
    double began = base_seconds();
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        bool may_end = error == EWOULDBLOCK && read_owner(descriptor, &process, host) &&
                       has_ended(process, host) && base_seconds() - began < WAIT_SECONDS;
        if (!may_end)
            return error;
        base_sleep(0.02);
    }
    return 0;
}

vkn_status base_lock_take(const char *path, const char *folder, const char *doing, int *descriptor)
{
    *descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (*descriptor < 0)
        return base_fail(base_status_of_errno(errno), "%s: cannot be written: %s", path,
                         strerror(errno));
    int error = try_lock(*descriptor);
    if (error == EWOULDBLOCK) {
        vkn_status status = refuse(folder, doing, *descriptor);
        close(*descriptor);
        *descriptor = -1;
        return status;
    }
    if (error != 0)
        base_log(BASE_LOG_WARNING,
                 "%s: cannot be locked (%s): make sure that no other process is %s", folder,
                 strerror(error), doing);
    write_owner(*descriptor);
    return VKN_OK;
}
