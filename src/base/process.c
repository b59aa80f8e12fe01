/* Programs of others. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* environ */
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

char *base_program_find(const char *name)
{
    const char *folders = getenv("PATH");
    for (const char *at = folders; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ":");
        /* An empty entry is the current folder. */
        char *path =
            base_format("%.*s/%s", length > 0 ? (int)length : 1, length > 0 ? at : ".", name);
        if (path == NULL || (base_file_exists(path) && access(path, X_OK) == 0))
            return path;
        free(path);
        at += length + (at[length] == ':' ? 1 : 0);
    }
    return NULL;
}

static int redirect(posix_spawn_file_actions_t *actions, const int streams[3])
{
    int error = 0;
    for (int i = 0; i < 3 && error == 0; i++)
        error = streams[i] >= 0
                    ? posix_spawn_file_actions_adddup2(actions, streams[i], i)
                    : posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0);
    return error;
}

int base_program_start(const char *program, char *const arguments[], const int streams[3],
                       pid_t *process)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigaddset(&signals, SIGPIPE);
    sigaddset(&signals, SIGXFSZ);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    int error = redirect(&actions, streams);
    if (error == 0)
        error = posix_spawn(process, program, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

bool base_program_ended(pid_t process, bool wait, char how[BASE_HOW_SIZE])
{
    int status = 0;
    pid_t ended = 0;
    do {
        ended = waitpid(process, &status, wait ? 0 : WNOHANG);
    } while (ended < 0 && errno == EINTR);
    if (ended == 0)
        return false;
    if (ended < 0)
        snprintf(how, BASE_HOW_SIZE, "lost: %s", strerror(errno));
    else if (WIFSIGNALED(status))
        snprintf(how, BASE_HOW_SIZE, "signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        snprintf(how, BASE_HOW_SIZE, "exit status %d", WEXITSTATUS(status));
    else
        how[0] = '\0';
    return true;
}
