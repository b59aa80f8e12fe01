/* Starts external programs, which end with this process. */
#define _GNU_SOURCE /* environ, pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

/* ---- between fork and exec ------------------------------------------------------------------- */

/* Inputs of the new process, which may call only async-signal-safe functions. */
struct start {
    const char *program;
    char *const *arguments;
    const int *streams;
    int keep;    /* descriptor that stays open; -1: none */
    int failure; /* pipe that receives the errno of a failure; exec closes it */
    pid_t parent;
};

/* First duplicates the streams to descriptors above 2, because a stream can be one of 0 to 2. */
static int redirect(const int streams[3])
{
    int moved[3];
    for (int i = 0; i < 3; i++) {
        moved[i] = streams[i] >= 0 ? fcntl(streams[i], F_DUPFD_CLOEXEC, 3)
                                   : open("/dev/null", O_RDWR | O_CLOEXEC);
        if (moved[i] >= 0 && moved[i] < 3)
            moved[i] = fcntl(moved[i], F_DUPFD_CLOEXEC, 3);
        if (moved[i] < 0)
            return errno;
    }
    for (int i = 0; i < 3; i++)
        if (dup2(moved[i], i) < 0)
            return errno;
    return 0;
}

/* Makes this process end with its parent, which is checked last: it may have ended before prctl. */
static int follow_parent(const struct start *start)
{
    if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0)
        return errno;
    return getppid() == start->parent ? 0 : ESRCH;
}

static _Noreturn void exec_program(struct start *start)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    start->failure = fcntl(start->failure, F_DUPFD_CLOEXEC, 3);
    int error = follow_parent(start);
    if (error == 0 && start->keep >= 0 && fcntl(start->keep, F_DUPFD, 3) < 0)
        error = errno;
    if (error == 0)
        error = redirect(start->streams);
    if (error == 0) {
        sigaction(SIGPIPE, &usual, NULL);
        sigaction(SIGXFSZ, &usual, NULL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(start->program, start->arguments, environ);
        error = errno;
    }
    ssize_t written = write(start->failure, &error, sizeof(error));
    _exit(written == (ssize_t)sizeof(error) ? 127 : 126);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Blocks signals around the fork, because handlers of this process must not run in the new one. */
static pid_t fork_off(struct start *start)
{
    sigset_t all, previous;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    pid_t process = fork();
    if (process == 0)
        exec_program(start);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
    errno = error;
    return process;
}

static int read_failure(int pipe)
{
    int error = 0;
    ssize_t size;
    do {
        size = read(pipe, &error, sizeof(error));
    } while (size < 0 && errno == EINTR);
    return size == (ssize_t)sizeof(error) ? error : 0;
}

int base_program_start(const char *program, char *const arguments[], const int streams[3], int keep,
                       struct base_process *process)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    struct start start = {program, arguments, streams, keep, ends[1], getpid()};
    const pid_t child = fork_off(&start);
    int error = child < 0 ? errno : 0;
    *process = (struct base_process){child, child};
    close(ends[1]);
    if (error == 0)
        error = read_failure(ends[0]);
    close(ends[0]);
    if (error != 0 && child > 0) {
        char how[BASE_HOW_SIZE];
        base_program_ended(process, true, how);
    }
    return error;
}

void base_program_end(const struct base_process *process, bool at_once)
{
    kill((pid_t)-process->group, at_once ? SIGKILL : SIGTERM);
}

bool base_program_ended(struct base_process *process, bool wait, char how[BASE_HOW_SIZE])
{
    int status = 0;
    pid_t ended = 0;
    do {
        ended = waitpid((pid_t)process->number, &status, wait ? 0 : WNOHANG);
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

/* ---- input ----------------------------------------------------------------------------------- */

/* Sockets, unlike pipes, have MSG_NOSIGNAL. */
int base_input_pipe(int ends[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

ssize_t base_input_write(int end, const void *data, size_t size)
{
    return send(end, data, size, MSG_NOSIGNAL);
}

bool base_pipe_wait(int end, int milliseconds)
{
    struct pollfd waiting = {.fd = end, .events = POLLIN};
    return poll(&waiting, 1, milliseconds) > 0;
}
