/* What the base room's files share. */
#ifndef BASE_INTERNAL_H
#define BASE_INTERNAL_H

#include "base/base.h"

/* ---- json.c ---------------------------------------------------------------------------------- */

/* "NAME: line L, column C: PROBLEM"; VKN_BAD_INPUT. */
vkn_status json_fail_at(const char *name, const char *text, size_t position, const char *problem);
/* The same: "not valid JSON near ...", with the next few characters. */
vkn_status json_fail_near(const char *name, const char *text, size_t size, size_t position);

/* ---- json_syntax.c --------------------------------------------------------------------------- */

/* VKN_BAD_INPUT unless the text is JSON within the limits that base_json_read names. NaN, Infinity
 * and -Infinity are numbers to it, of which it says how many there are. */
vkn_status json_check_syntax(const char *name, const char *text, size_t size, size_t *not_finite);
/* Such a text in fresh memory with 9e999, which is read as infinity, for these words; NULL with an
 * error recorded. */
char *json_replace_words(const char *text, size_t size, size_t *new_size);

/* ---- available.c ----------------------------------------------------------------------------- */

/* What base_memory and base_memory_available tell; `root` goes before the paths of /proc and /sys:
 * "" but in tests. UINT64_MAX where nothing tells. */
struct base_memory_limits {
    uint64_t total, available;
};
struct base_memory_limits base_memory_limits(const char *root);

/* Smaller allocations are not looked at: asking the kernel takes longer than they do. */
#define MEMORY_LARGE ((size_t)64 << 20)
/* Whether `old`, a block of malloc or NULL, can grow to `size` bytes. */
bool memory_is_there(const void *old, size_t size);

#endif
