/* Declarations shared by the files of the base module. */
#ifndef BASE_INTERNAL_H
#define BASE_INTERNAL_H

#include "base/base.h"

/* ---- memory_limits.c ------------------------------------------------------------------------- */

/* Memory limits of the process in bytes; UINT64_MAX: unknown. base_memory_limits reads /proc and
 * /sys below `root`: "", except in tests. */
struct base_memory_limits {
    uint64_t total, available;
};
struct base_memory_limits base_memory_limits(const char *root);

/* ---- memory.c -------------------------------------------------------------------------------- */

/* Smaller allocations are not checked: reading the limits takes longer than such an allocation. */
#define MEMORY_LARGE ((size_t)64 << 20) /* bytes */
/* Returns whether `old`, a block of malloc or NULL, can grow to `size` bytes. */
bool memory_suffices(const void *old, size_t size);

/* ---- process.c ------------------------------------------------------------------------------- */

/* Waits until a pipe can be read or has ended; returns false after the given time. */
bool base_pipe_wait(int end, int milliseconds);

#endif
