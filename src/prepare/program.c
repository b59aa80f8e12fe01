/* Runs ffmpeg and COLMAP, passes their output to a log and callbacks, and stops them on request. */
#define _GNU_SOURCE /* strcasestr, vasprintf */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "prepare/internal.h"

#define MOST_LINE 1000 /* bytes of a line that are kept */

/* ---- arguments ------------------------------------------------------------------------------- */

void arguments_add(struct arguments *arguments, const char *format, ...)
{
    if (arguments->count + 2 > arguments->capacity && !arguments->failed) {
        size_t new_capacity = arguments->capacity > 0 ? 2 * arguments->capacity : 32;
        char **grown = realloc(arguments->items, new_capacity * sizeof(char *));
        arguments->failed = grown == NULL;
        arguments->items = grown != NULL ? grown : arguments->items;
        arguments->capacity = grown != NULL ? new_capacity : arguments->capacity;
    }
    if (arguments->failed)
        return;
    va_list values;
    va_start(values, format);
    char *text = NULL;
    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    va_end(values);
    arguments->failed = text == NULL;
    if (text == NULL)
        return;
    arguments->items[arguments->count++] = text;
    arguments->items[arguments->count] = NULL;
}

void arguments_free(struct arguments *arguments)
{
    for (size_t i = 0; i < arguments->count; i++)
        free(arguments->items[i]);
    free(arguments->items);
    *arguments = (struct arguments){0};
}

/* ---- finding --------------------------------------------------------------------------------- */

vkn_status program_require(const char *name, const char *what_for)
{
    char *path = base_program_find(name);
    free(path);
    if (path != NULL)
        return VKN_OK;
    const char *package = strcmp(name, "ffprobe") == 0 ? "ffmpeg" : name;
    return base_fail(VKN_ERROR, "no %s in PATH; install it (apt-get install %s) %s", name, package,
                     what_for);
}

/* ---- output ---------------------------------------------------------------------------------- */

/* What the callbacks of a running program use. */
struct reader {
    const struct preparation *preparation;
    struct program *program;
    int log;
    bool is_error; /* program->error_message mentions a failure */
    char line[MOST_LINE];
    size_t length;
};

/* Keeps the last line that mentions a failure, else the last line: a full disk may cut the log. */
static void keep_last_line(struct reader *reader)
{
    static const char *const signs[] = {"error", "fail", "invalid", "full", "no space"};
    const char *text = reader->line + strspn(reader->line, " \t");
    bool mentions_error = false;
    for (size_t i = 0; i < BASE_COUNT(signs); i++)
        mentions_error |= strcasestr(text, signs[i]) != NULL;
    if (*text == '\0' || (reader->is_error && !mentions_error))
        return;
    reader->is_error = mentions_error;
    snprintf(reader->program->error_message, ERROR_SIZE, "%.*s", ERROR_SIZE - 1, text);
}

static void end_line(struct reader *reader)
{
    reader->line[reader->length] = '\0';
    keep_last_line(reader);
    if (reader->length > 0 && reader->program->line != NULL)
        reader->program->line(reader->program->context, reader->line);
    reader->length = 0;
}

/* Writes to the log. Ignores a full disk, which other writes report. */
static void write_log(int log, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t now = write(log, data, size);
        if (now < 0 && errno != EINTR)
            return;
        data += now > 0 ? now : 0;
        size -= now > 0 ? (size_t)now : 0;
    }
}

static void handle_output(void *context, const char *data, size_t size)
{
    struct reader *reader = context;
    if (reader->program->bytes != NULL) {
        reader->program->bytes(reader->program->context, data, size);
        return;
    }
    write_log(reader->log, data, size);
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '\n' || data[i] == '\r')
            end_line(reader);
        else if (reader->length + 1 < sizeof(reader->line))
            reader->line[reader->length++] = data[i];
    }
}

static bool must_end(void *context)
{
    const struct reader *reader = context;
    return prepare_check_stop(reader->preparation) != VKN_OK;
}

/* Reads the first line with text, where ffmpeg gives the cause: "[tiff @ 0x55c1] Invalid ...". */
static void read_first_line(FILE *errors, char message[ERROR_SIZE])
{
    char line[MOST_LINE];
    while (fgets(line, sizeof(line), errors) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        const char *end = line[0] == '[' ? strstr(line, "] ") : NULL;
        const char *text = end != NULL ? end + 2 : line;
        if (*text == '\0')
            continue;
        snprintf(message, ERROR_SIZE, "%.*s", ERROR_SIZE - 1, text);
        return;
    }
}

/* Reads the error message of a program whose output is bytes. The errors are in a separate file,
 * because lines of parallel runs mix in the log. */
static void read_errors(FILE *errors, char message[ERROR_SIZE])
{
    rewind(errors);
    read_first_line(errors, message);
}

static void copy_errors(FILE *errors, int log)
{
    char data[4096];
    size_t size;
    rewind(errors);
    while ((size = fread(data, 1, sizeof(data), errors)) > 0)
        write_log(log, data, size);
}

/* ---- running --------------------------------------------------------------------------------- */

static void begin_log(int log, const struct program *program)
{
    struct base_text head = {0};
    base_text_add(&head, "\n$ %s", program->name);
    for (size_t i = 1; i < program->arguments.count; i++) {
        char *word = vkn_shell_word(program->arguments.items[i]);
        base_text_add(&head, " %s", word != NULL ? word : "?");
        free(word);
    }
    base_text_add(&head, "\n");
    if (!head.failed)
        write_log(log, head.data, head.size);
    free(head.data);
}

/* Returns whether a program failed by itself: by its exit status or a crash. SIGKILL etc. come from
 * outside, for example when memory is short. */
static bool has_failed_itself(const char *how)
{
    static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    static const char by_signal[] = "signal ";
    if (strncmp(how, by_signal, strlen(by_signal)) != 0)
        return strncmp(how, "exit status", strlen("exit status")) == 0;
    long number = strtol(how + strlen(by_signal), NULL, 10);
    for (size_t i = 0; i < BASE_COUNT(crashes); i++)
        if (number == crashes[i])
            return true;
    return false;
}

static vkn_status run_with(const struct preparation *preparation, struct program *program,
                           const char *path, const char *log_path, int log)
{
    char how[BASE_HOW_SIZE] = "";
    FILE *errors = program->bytes != NULL ? tmpfile() : NULL;
    if (program->bytes != NULL && errors == NULL)
        return base_fail(VKN_ERROR, "%s: no temporary file: %s", program->name, strerror(errno));
    begin_log(log, program);
    snprintf(program->error_message, sizeof(program->error_message), "no error message");
    struct reader reader = {.preparation = preparation, .program = program, .log = log};
    const struct base_program run = {
        .path = path,
        .arguments = program->arguments.items,
        .errors = errors != NULL ? fileno(errors) : -1,
        .keep = preparation->lock,
        .output = handle_output,
        .must_end = must_end,
        .context = &reader,
    };
    int error = base_program_run(&run, how);
    end_line(&reader);
    if (errors != NULL)
        copy_errors(errors, log);
    if (errors != NULL && how[0] != '\0')
        read_errors(errors, program->error_message);
    if (errors != NULL)
        fclose(errors);
    if (error != 0)
        return base_fail(VKN_ERROR, "%s cannot be started: %s", path, strerror(error));
    BASE_TRY(prepare_check_stop(preparation));
    if (how[0] == '\0')
        return VKN_OK;
    program->failed_itself = has_failed_itself(how);
    return base_fail(VKN_ERROR, "%s failed (%s): %s (complete log: %s)", program->name, how,
                     program->error_message, log_path);
}

static vkn_status run_logged(const struct preparation *preparation, struct program *program,
                             const char *path)
{
    char *log_path = base_format("%s/%s.log", preparation->work, program->name);
    if (log_path == NULL)
        return VKN_ERROR;
    int log = open(log_path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    vkn_status status =
        log >= 0 ? run_with(preparation, program, path, log_path, log)
                 : base_fail(base_status_of_errno(errno), "%s: %s", log_path, strerror(errno));
    if (log >= 0)
        close(log);
    free(log_path);
    return status;
}

vkn_status program_run(const struct preparation *preparation, struct program *program)
{
    vkn_status status = prepare_check_stop(preparation);
    char *path = base_program_find(program->name);
    if (status == VKN_OK && path == NULL)
        status = program_require(program->name, "for this");
    if (status == VKN_OK && program->arguments.failed)
        status = base_fail(VKN_ERROR, "%s: out of memory", program->name);
    if (status == VKN_OK)
        status = run_logged(preparation, program, path);
    free(path);
    arguments_free(&program->arguments);
    return status;
}

vkn_status prepare_check_stop(const struct preparation *preparation)
{
    if (!base_stop_asked(preparation->job.stop))
        return VKN_OK;
    return base_fail(VKN_INTERRUPTED, "%s: interrupted; run the same command again to continue",
                     preparation->out);
}
