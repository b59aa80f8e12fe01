/* What the base room's files share. */
#ifndef BASE_INTERNAL_H
#define BASE_INTERNAL_H

#include "base/base.h"

/* ---- memory_limits.c
 * ----------------------------------------------------------------------------- */

/* What base_memory_total and base_memory_available tell; `root` goes before the paths of /proc and
 * /sys:
 * "" but in tests. UINT64_MAX where nothing tells. */
struct base_memory_limits {
    uint64_t total, available;
};
struct base_memory_limits base_memory_limits(const char *root);

/* Smaller allocations are not looked at: asking the kernel takes longer than they do. */
#define MEMORY_LARGE ((size_t)64 << 20)
/* Whether `old`, a block of malloc or NULL, can grow to `size` bytes. */
bool memory_suffices(const void *old, size_t size);

#endif
