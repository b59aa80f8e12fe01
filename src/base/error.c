/* Errors: one line per thread, recorded where the failure is understood and printed by the caller.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static _Thread_local char last_error[1024];

vkn_status base_fail(vkn_status status, const char *format, ...)
{
    /* Through a buffer of its own: an argument may be vkn_last_error(). */
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
