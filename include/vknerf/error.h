/* vknerf/error.h: how every call of the public API reports failure, and text that is fit to be
 * shown. */
#ifndef VKNERF_ERROR_H
#define VKNERF_ERROR_H

#include <vknerf/api.h>

VKN_BEGIN_DECLARATIONS

/* Result of a call; the values are the exit codes of the command-line program. */
typedef enum vkn_status {
    VKN_OK = 0,
    VKN_ERROR = 1,         /* anything without a code of its own (out of memory, disk full, ...) */
    VKN_BAD_INPUT = 2,     /* usage or input; the message names the file and the field */
    VKN_NO_DEVICE = 3,     /* no usable Vulkan device, or the device was lost */
    VKN_INTERRUPTED = 130, /* stopped on request, after saving */
} vkn_status;

/* One line that says what went wrong in the last failed call of this thread and names the file,
 * field, device or shader concerned. Owned by the library, valid until the thread's next call. */
VKN_API const char *vkn_last_error(void);

/* Frees what a call gave as fresh memory, as free() does; NULL is nothing. */
VKN_API void vkn_free(void *memory);

/* Makes one harmless line of a text that holds names or content of files, for a terminal: controls
 * (line breaks, escape sequences, C1, changes of the direction of writing) become spaces, bytes
 * that are not UTF-8 question marks. */
VKN_API void vkn_clean_line(char *text);

/* The text with U+FFFD for each byte that is not UTF-8, in fresh memory that the caller frees:
 * names of files as JSON takes them. NULL on no memory. */
VKN_API char *vkn_to_utf8(const char *text);

/* The text as one word of a POSIX shell, in quotes where it needs them, in fresh memory that the
 * caller frees: names of files in commands to copy. NULL on no memory. */
VKN_API char *vkn_shell_word(const char *text);

VKN_END_DECLARATIONS

#endif
