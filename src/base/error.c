/* Errors: one line per thread, recorded where the failure is understood and printed by the caller.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"

static _Thread_local char last_error[1024];

/* One line is the contract, also when a file name holds a line break. */
static void keep_one_line(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
}

vkn_status base_fail(vkn_status status, const char *format, ...)
{
    /* Through a buffer of its own: an argument may be vkn_last_error(). */
    char message[sizeof(last_error)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    keep_one_line(message);
    memcpy(last_error, message, sizeof(last_error));
    return status;
}

const char *vkn_last_error(void)
{
    return last_error;
}
