/* Runs external programs until they end. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/internal.h"

#define POLL_MILLISECONDS 100
#define KILL_DELAY        5.0 /* seconds from SIGTERM to SIGKILL, and from SIGKILL to the last wait */

/* Waits for output; returns whether the pipe is still open. */
static bool read_some(const struct base_program *program, int pipe, int milliseconds)
{
    char data[1 << 16];
    if (!base_pipe_wait(pipe, milliseconds))
        return true;
    ssize_t size = read(pipe, data, sizeof data);
    if (size > 0)
        program->output(program->context, data, (size_t)size);
    return size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Returns whether to go on waiting for the end of a program that was asked to end at *asked_at, or
 * is asked now (0). */
static bool end_group(const struct base_process *process, double *asked_at)
{
    double now = base_seconds();
    if (*asked_at == 0.0) {
        *asked_at = now;
        base_program_end(process, false);
    } else if (now > *asked_at + KILL_DELAY) {
        base_program_end(process, true);
    }
    return now < *asked_at + 2 * KILL_DELAY;
}

static void follow(const struct base_program *program, int pipe, struct base_process *process,
                   char how[BASE_HOW_SIZE])
{
    double asked_at = 0.0;
    bool is_open = true;
    while (!base_program_ended(process, false, how)) {
        bool must_end = asked_at > 0 || program->must_end(program->context);
        if (must_end && !end_group(process, &asked_at)) {
            snprintf(how, BASE_HOW_SIZE, "left behind");
            break;
        }
        if (is_open)
            is_open = read_some(program, pipe, POLL_MILLISECONDS);
        else
            base_sleep(1e-4 * POLL_MILLISECONDS);
    }
    /* The pipe can still hold output after the program's end. The number of reads is limited,
     * because a child process of the program can keep the pipe open. */
    for (size_t i = 0; i < 64 && is_open; i++)
        is_open = read_some(program, pipe, 0);
    base_program_end(process, true);
}

int base_program_run(const struct base_program *program, char how[BASE_HOW_SIZE])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    struct base_process process;
    const int streams[3] = {-1, ends[1], program->errors >= 0 ? program->errors : ends[1]};
    int error =
        base_program_start(program->path, program->arguments, streams, program->keep, &process);
    close(ends[1]);
    if (error == 0)
        follow(program, ends[0], &process, how);
    close(ends[0]);
    return error;
}
