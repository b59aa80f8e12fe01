/* vknerf/error.h: status codes and error messages of the public API, and functions that make texts
 * safe to print. */
#ifndef VKNERF_ERROR_H
#define VKNERF_ERROR_H

#include <vknerf/api.h>

VKN_BEGIN_DECLARATIONS

/* Result of a call. The values are the exit codes of the command-line program. */
typedef enum vkn_status {
    VKN_OK = 0,
    VKN_ERROR = 1,         /* any other failure: out of memory, disk full, ... */
    VKN_BAD_INPUT = 2,     /* wrong usage or input; the message names the file and the field */
    VKN_NO_DEVICE = 3,     /* no usable Vulkan device, or the device was lost */
    VKN_INTERRUPTED = 130, /* stopped on request; the state was saved */
} vkn_status;

/* Returns the message of this thread's last failed call: one line that names the file, field,
 * device or shader concerned. Owned by the library, valid until the thread's next call. */
VKN_API const char *vkn_last_error(void);

/* Frees memory that a call returned for the caller to free, as free() does; accepts NULL. */
VKN_API void vkn_free(void *memory);

/* Makes a text with names or content of files safe to print as one line on a terminal: replaces
 * control characters (line breaks, escape sequences, C1, changes of the direction of writing) by
 * spaces, and bytes that are not UTF-8 by question marks. */
VKN_API void vkn_clean_line(char *text);

/* Returns the text with U+FFFD for each byte that is not UTF-8, for file names in JSON, in memory
 * that the caller frees; NULL if memory runs out. */
VKN_API char *vkn_to_utf8(const char *text);

/* Returns the text as one word of a POSIX shell, quoted if necessary, for file names in commands to
 * copy, in memory that the caller frees; NULL if memory runs out. */
VKN_API char *vkn_shell_word(const char *text);

VKN_END_DECLARATIONS

#endif
