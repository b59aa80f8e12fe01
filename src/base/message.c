/* Records the last error of each thread, and writes the log. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vknerf/context.h>

#include "base/base.h"

/* ---- errors ---------------------------------------------------------------------------------- */

static _Thread_local char last_error[1024];

vkn_status base_fail(vkn_status status, const char *format, ...)
{
    /* A separate buffer, because vkn_last_error() may be among the arguments. */
    char message[sizeof(last_error)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    vkn_clean_line(message);
    memcpy(last_error, message, sizeof(last_error));
    return status;
}

const char *vkn_last_error(void)
{
    return last_error;
}

void vkn_free(void *memory)
{
    free(memory);
}

void base_error_keep(struct base_kept_error *kept)
{
    _Static_assert(sizeof(kept->message) == sizeof(last_error), "the whole message");
    kept->number = errno;
    memcpy(kept->message, last_error, sizeof(last_error));
}

void base_error_restore(struct base_kept_error *kept)
{
    memcpy(last_error, kept->message, sizeof(last_error));
    errno = kept->number;
}

/* ---- log ------------------------------------------------------------------------------------- */

static _Atomic int threshold = BASE_LOG_INFO;
static _Thread_local const char *log_prefix;

/* Serialises the lines of all threads, and prevents calls of a replaced callback. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static vkn_log_callback *listener;
static void *listener_user;
/* This thread runs the log callback and holds the lock. */
static _Thread_local bool in_listener;

void base_log_prefix(const char *name)
{
    log_prefix = name;
}

void base_log_threshold(enum base_log_level level)
{
    atomic_store(&threshold, (int)level);
}

void vkn_log_quiet(bool quiet)
{
    base_log_threshold(quiet ? BASE_LOG_WARNING : BASE_LOG_INFO);
}

void vkn_log_to(vkn_log_callback *callback, void *user)
{
    if (!in_listener)
        pthread_mutex_lock(&lock);
    listener = callback;
    listener_user = user;
    if (!in_listener)
        pthread_mutex_unlock(&lock);
}

void base_progress_report(const struct base_progress *progress, const char *what, size_t done,
                          size_t total)
{
    BASE_KEEP_ERROR;
    if (!progress->callback || log_prefix)
        return;
    const char *previous = base_forbid_calls("progress");
    progress->callback(progress->context, what, done, total);
    base_forbid_calls(previous);
}

/* Calls the log callback; preserves the last error, which the callback may overwrite. */
static void call_listener(enum base_log_level level, const char *line)
{
    BASE_KEEP_ERROR;
    const char *previous = base_forbid_calls("vkn_log_to");
    in_listener = true;
    listener(listener_user, level >= BASE_LOG_WARNING ? VKN_LOG_WARNING : VKN_LOG_INFO, line);
    in_listener = false;
    base_forbid_calls(previous);
}

static void write_line(enum base_log_level level, char *line, size_t prefix)
{
    size_t size = strlen(line);
    bool nested = in_listener; /* logged by the callback itself: goes to stderr */
    if (!nested)
        pthread_mutex_lock(&lock);
    if (listener && !nested)
        call_listener(level, line + prefix);
    else {
        line[size++] = '\n';
        fwrite(line, 1, size, stderr);
        fflush(stderr); /* Windows buffers stderr unless it is a console */
    }
    if (!nested)
        pthread_mutex_unlock(&lock);
}

void base_log(enum base_log_level level, const char *format, ...)
{
    static const char *const prefixes[] = {
        [BASE_LOG_DEBUG] = "debug: ", [BASE_LOG_INFO] = "", [BASE_LOG_WARNING] = "warning: "};
    if ((int)level < atomic_load(&threshold) || (log_prefix && level < BASE_LOG_WARNING))
        return;

    char line[2048];
    int used = snprintf(line, sizeof(line), "%s%s%s", prefixes[level], log_prefix ? log_prefix : "",
                        log_prefix ? ": " : "");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, sizeof(line) - 1 - (size_t)used, format, arguments);
    va_end(arguments);
    vkn_clean_line(line);
    write_line(level, line, strlen(prefixes[level]));
}
