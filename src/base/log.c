/* The log: lines on standard error. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static _Atomic int threshold = BASE_LOG_INFO;
static _Thread_local const char *speaker;

void base_log_speaker(const char *name)
{
    speaker = name;
}

void base_log_threshold(enum base_log_level level)
{
    atomic_store(&threshold, (int)level);
}

void base_log(enum base_log_level level, const char *format, ...)
{
    static const char *const prefixes[] = {
        [BASE_LOG_DEBUG] = "debug: ", [BASE_LOG_INFO] = "", [BASE_LOG_WARNING] = "warning: "};
    if ((int)level < atomic_load(&threshold) || (speaker && level < BASE_LOG_WARNING))
        return;

    /* The line is written in one piece, so that lines of several threads do not mix. */
    char line[2048];
    int used = snprintf(line, sizeof(line), "%s%s%s", prefixes[level], speaker ? speaker : "",
                        speaker ? ": " : "");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, sizeof(line) - 1 - (size_t)used, format, arguments);
    va_end(arguments);
    vkn_clean_line(line);
    size_t size = strlen(line);
    line[size++] = '\n';
    fwrite(line, 1, size, stderr);
}
