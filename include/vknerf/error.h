/* vknerf/error.h: how every call of the public API reports failure. */
#ifndef VKNERF_ERROR_H
#define VKNERF_ERROR_H

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
const char *vkn_last_error(void);

#endif
