/* Runs the processes that make a certificate, and ends those that hang. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <vknerf/certify.h>

#include "certify/internal.h"

#define CPU_LIMIT 600.0 /* seconds without progress after which a process hangs */
#define GPU_LIMIT 120.0

struct reader {
    struct certificate *certificate;
    certify_line *on_line; /* NULL: nothing reads lines */
    char line[1 << 16];
    size_t size;
    double limit, last; /* seconds; time of the last sign of progress */
    off_t logged;       /* size of the log then */
    bool is_late;
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

static void read_output(void *context, const char *data, size_t size)
{
    struct reader *reader = context;
    reader->last = base_seconds();
    while (size > 0) {
        size_t room = sizeof reader->line - reader->size, now = size < room ? size : room;
        memcpy(reader->line + reader->size, data, now);
        reader->size += now;
        data += now;
        size -= now;
        split_lines(reader);
    }
}

/* A process hangs when neither its output nor the log has grown for the limit. */
static bool must_end(void *context)
{
    struct reader *reader = context;
    struct stat log;
    if (fstat(reader->certificate->log, &log) == 0 && log.st_size != reader->logged) {
        reader->logged = log.st_size;
        reader->last = base_seconds();
    }
    reader->is_late = base_seconds() > reader->last + reader->limit;
    return reader->is_late || base_stop_asked(reader->certificate->job->stop);
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
    uint32_t given = certificate->params->limit;
    char **words = join_words(certificate, arguments);
    struct reader *reader = base_alloc(1, sizeof *reader);
    if (!words || !reader) {
        free(words);
        free(reader);
        return VKN_ERROR;
    }
    reader->certificate = certificate;
    reader->on_line = on_line;
    reader->limit = given > 0 ? given : certificate->is_cpu ? CPU_LIMIT : GPU_LIMIT;
    reader->last = base_seconds();
    const struct base_program program = {
        .path = words[0],
        .arguments = words,
        .errors = certificate->log,
        .keep = -1,
        .output = read_output,
        .must_end = must_end,
        .context = reader,
    };
    int error = base_program_run(&program, how);
    vkn_status status = VKN_OK;
    if (error != 0)
        status = base_fail(VKN_ERROR, "%s cannot be started: %s", words[0], strerror(error));
    else if (reader->is_late)
        snprintf(how, BASE_HOW_SIZE, "hung: no progress for %.0f s", reader->limit);
    else if (base_stop_asked(certificate->job->stop))
        status = base_fail(VKN_INTERRUPTED, "certify: interrupted");
    free(reader);
    free(words);
    return status;
}
