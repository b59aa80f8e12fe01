/* Implements a library for LD_PRELOAD that fails the Nth allocation of vknerf itself (malloc,
 * calloc and realloc called from the program or from libcjson, not from the driver), for tests of
 * its reaction.
 *
 *     MALLOCFAULT_N=12        fails the 12th (from 1); 0: none
 *     MALLOCFAULT_STICKY=1    and all later ones
 *     MALLOCFAULT_COUNT=FILE  writes the number of allocations at the end
 *
 * Only processes named "vknerf" are affected, not scripts around them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANGES 4

/* The C library's own functions: dlsym would allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static struct {
    struct {
        uintptr_t low, high;
    } ranges[RANGES]; /* of code whose allocations count */
    int range_count;
    long fail_at;
    int sticky;
    atomic_long count;
} fault;

static atomic_int ready;

/* The program is the first object, even if its loader was started by name. */
static int add_range(struct dl_phdr_info *object, size_t size, void *data)
{
    (void)size;
    int *index = data;
    int wanted = (*index)++ == 0 || strstr(object->dlpi_name, "libcjson") != NULL;
    if (!wanted || fault.range_count == RANGES)
        return 0;
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        low = begin < low ? begin : low;
        high = begin + part->p_memsz > high ? begin + part->p_memsz : high;
    }
    fault.ranges[fault.range_count].low = low;
    fault.ranges[fault.range_count].high = high;
    fault.range_count++;
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *number = getenv("MALLOCFAULT_N"), *sticky = getenv("MALLOCFAULT_STICKY");
    if (number == NULL || strcmp(program_invocation_short_name, "vknerf") != 0)
        return;
    fault.fail_at = strtol(number, NULL, 10);
    fault.sticky = sticky != NULL && *sticky == '1';
    int index = 0;
    dl_iterate_phdr(add_range, &index);
    atomic_store(&ready, 1);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("MALLOCFAULT_COUNT");
    if (path == NULL || !atomic_load(&ready))
        return;
    char line[32];
    int size = snprintf(line, sizeof(line), "%ld\n", atomic_load(&fault.count));
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0 || write(file, line, (size_t)size) != size)
        fprintf(stderr, "mallocfault: %s: %s\n", path, strerror(errno));
    if (file >= 0)
        close(file);
}

static int fails(const void *caller)
{
    if (!atomic_load(&ready))
        return 0;
    uintptr_t at = (uintptr_t)caller;
    for (int i = 0; i < fault.range_count; i++) {
        if (at < fault.ranges[i].low || at >= fault.ranges[i].high)
            continue;
        long number = atomic_fetch_add(&fault.count, 1) + 1;
        return fault.fail_at > 0 &&
               (number == fault.fail_at || (fault.sticky && number > fault.fail_at));
    }
    return 0;
}

static void *without_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? without_memory() : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0)) ? without_memory() : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails(__builtin_return_address(0)) ? without_memory() : __libc_realloc(old, size);
}
