/* Runs the processes that make a certificate, and ends those that hang. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vknerf/certify.h>

#include "certify/internal.h"

#define POLL_MILLISECONDS 200
#define KILL_DELAY        5.0 /* seconds from SIGTERM to SIGKILL */
#define CPU_LIMIT         600.0
#define GPU_LIMIT         120.0

struct reader {
    struct certificate *certificate;
    certify_line *on_line; /* NULL: nothing reads lines */
    int pipe, log;
    char line[1 << 16];
    size_t size;
    double last;  /* time of the last sign of progress */
    off_t logged; /* size of the log then */
};

/* Passes complete lines on, and drops lines that are too long. */
static void split_lines(struct reader *reader)
{
    char *begin = reader->line, *end;
    while ((end = memchr(begin, '\n', reader->size - (size_t)(begin - reader->line)))) {
        *end = '\0';
        if (reader->on_line)
            reader->on_line(reader->certificate, begin);
        begin = end + 1;
    }
    reader->size -= (size_t)(begin - reader->line);
    memmove(reader->line, begin, reader->size);
    if (reader->size == sizeof reader->line)
        reader->size = 0;
}

/* Waits for output; returns false at its end. */
static bool read_some(struct reader *reader)
{
    struct pollfd waiting = {.fd = reader->pipe, .events = POLLIN};
    struct stat log;
    if (fstat(reader->log, &log) == 0 && log.st_size != reader->logged) {
        reader->logged = log.st_size;
        reader->last = base_seconds();
    }
    if (poll(&waiting, 1, POLL_MILLISECONDS) <= 0)
        return true;
    ssize_t size =
        read(reader->pipe, reader->line + reader->size, sizeof reader->line - reader->size);
    if (size > 0) {
        reader->last = base_seconds();
        reader->size += (size_t)size;
        split_lines(reader);
    }
    return size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Ends a process and its children. A process that the driver does not let go is left behind. */
static void end_process(pid_t process, char how[BASE_HOW_SIZE])
{
    double start = base_seconds();
    kill(-process, SIGTERM);
    while (!base_program_ended(process, false, how) && base_seconds() < start + 2 * KILL_DELAY) {
        if (base_seconds() > start + KILL_DELAY)
            kill(-process, SIGKILL);
        poll(NULL, 0, POLL_MILLISECONDS);
    }
}

static vkn_status follow(struct certificate *certificate, struct reader *reader, pid_t process,
                         char how[BASE_HOW_SIZE])
{
    uint32_t given = certificate->params->limit;
    double limit = given > 0 ? given : certificate->is_cpu ? CPU_LIMIT : GPU_LIMIT;
    reader->last = base_seconds();
    while (read_some(reader)) {
        bool is_late = base_seconds() > reader->last + limit;
        if (!is_late && !base_stop_asked(certificate->job->stop))
            continue;
        end_process(process, how);
        if (!is_late)
            return base_fail(VKN_INTERRUPTED, "certify: interrupted");
        snprintf(how, BASE_HOW_SIZE, "hung: no progress for %.0f s", limit);
        return VKN_OK;
    }
    base_program_ended(process, true, how);
    kill(-process, SIGKILL); /* ends child processes that are still running */
    return VKN_OK;
}

static size_t add_words(char **words, size_t at, const char *const *added, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[at++] = (char *)(uintptr_t)added[i];
    return at;
}

/* Joins the words of the command, the arguments and the options of the job; the caller frees the
 * list. */
static char **join_words(const struct certificate *certificate, const char *const *arguments)
{
    const struct vkn_certify_params *params = certificate->params;
    const char *const device[] = {"--device", certificate->job->device},
                      *const shaders[] = {"--shader-dir", certificate->job->shader_dir};
    size_t count = 0, at = 0;
    while (arguments[count])
        count++;
    char **words = base_alloc(params->command_count + count + 5, sizeof *words);
    if (!words)
        return NULL;
    at = add_words(words, at, params->command, params->command_count);
    at = add_words(words, at, arguments, count);
    at = add_words(words, at, device, device[1] ? 2 : 0);
    add_words(words, at, shaders, shaders[1] ? 2 : 0);
    return words;
}

vkn_status certify_run(struct certificate *certificate, const char *const *arguments,
                       certify_line *on_line, char how[BASE_HOW_SIZE])
{
    int ends[2];
    pid_t process = 0;
    char **words = join_words(certificate, arguments);
    struct reader *reader = base_alloc(1, sizeof *reader);
    if (!words || !reader || pipe2(ends, O_CLOEXEC) != 0) {
        free(words);
        free(reader);
        return base_fail(VKN_ERROR, "certify: out of memory or descriptors");
    }
    const int streams[3] = {-1, ends[1], certificate->log};
    int error = base_program_start(words[0], words, streams, -1, &process);
    close(ends[1]);
    *reader = (struct reader){
        .certificate = certificate, .on_line = on_line, .pipe = ends[0], .log = certificate->log};
    vkn_status status =
        error == 0 ? follow(certificate, reader, process, how)
                   : base_fail(VKN_ERROR, "%s cannot be started: %s", words[0], strerror(error));
    close(ends[0]);
    free(reader);
    free(words);
    return status;
}
