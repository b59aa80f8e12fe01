/* Allocates memory with checks, grows texts, and compares what an allocation needs with what the
 * process can have. Checks beforehand are necessary: the kernel grants more memory than there is,
 * and kills a process that uses it. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"

/* ---- injected failures ----------------------------------------------------------------------- */

static atomic_long left; /* allocations up to the injected failure; 0: none */

void base_memory_fail_at(long nth)
{
    atomic_store(&left, nth);
}

long base_memory_until_failure(void)
{
    return atomic_load(&left);
}

/* Counts down; returns whether this allocation must fail. */
static bool inject_failure(void)
{
    long now = atomic_load(&left);
    while (now > 0 && !atomic_compare_exchange_weak(&left, &now, now - 1))
        continue;
    return now == 1;
}

/* ---- allocation ------------------------------------------------------------------------------ */

void *base_realloc(void *memory, size_t size)
{
    return inject_failure() || !memory_suffices(memory, size) ? NULL : realloc(memory, size);
}

void *base_alloc(size_t count, size_t size)
{
    /* At least one byte, so that NULL always means failure. */
    bool refused = inject_failure() || (size > 0 && count > SIZE_MAX / size) ||
                   !memory_suffices(NULL, count * size);
    void *memory = refused ? NULL : calloc(count > 0 ? count : 1, size > 0 ? size : 1);
    if (memory == NULL)
        base_fail(VKN_ERROR, "out of memory (%zu x %zu bytes)", count, size);
    return memory;
}

void *base_alloc_pointers(size_t count, size_t size)
{
    /* Two additional elements cover the gap between the pointers and the aligned elements. */
    void **pointers =
        base_alloc(count < SIZE_MAX - 2 ? count + 2 : SIZE_MAX, sizeof *pointers + size);
    if (pointers == NULL)
        return NULL;
    size_t unit = _Alignof(max_align_t),
           first = (count * sizeof *pointers + unit - 1) / unit * unit;
    for (size_t i = 0; i < count; i++)
        pointers[i] = (unsigned char *)pointers + first + i * size;
    return pointers;
}

char *base_format(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0) {
        base_fail(VKN_ERROR, "cannot format a text");
        return NULL;
    }
    char *text = base_alloc((size_t)size + 1, 1);
    if (text == NULL)
        return NULL;
    va_start(arguments, format);
    vsnprintf(text, (size_t)size + 1, format, arguments);
    va_end(arguments);
    return text;
}

static bool text_reserve(struct base_text *text, size_t more)
{
    if (text->failed)
        return false;
    if (more < text->capacity - text->size)
        return true;
    size_t capacity = text->capacity > 0 ? text->capacity : 256;
    while (capacity - text->size <= more) {
        if (capacity > SIZE_MAX / 2) {
            text->failed = true;
            break;
        }
        capacity *= 2;
    }
    char *data = text->failed ? NULL : base_realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        base_fail(VKN_ERROR, "out of memory (a text of %zu bytes)", text->size);
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void base_text_add(struct base_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size < 0) {
        text->failed = true;
        base_fail(VKN_ERROR, "cannot format a text");
        return;
    }
    if (!text_reserve(text, (size_t)size))
        return;
    va_start(arguments, format);
    vsnprintf(text->data + text->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    text->size += (size_t)size;
}

void base_text_add_bytes(struct base_text *text, const void *bytes, size_t size)
{
    if (!text_reserve(text, size))
        return;
    if (size > 0)
        memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* A sixteenth of the memory is reserved for untracked use: drivers' compilers, other processes. */
#define RESERVE 16u

uint64_t base_memory_total(void)
{
    const uint64_t least = (uint64_t)1 << 30;
    uint64_t bytes = base_memory_limits("").total;
    return bytes < UINT64_MAX && bytes > least ? bytes : least;
}

uint64_t base_memory_available(void)
{
    return base_memory_limits("").available;
}

uint64_t base_memory_usable(void)
{
    uint64_t available = base_memory_available();
    return available - available / RESERVE;
}

double base_mib(uint64_t bytes)
{
    return (double)bytes / (1024.0 * 1024.0);
}

vkn_status base_memory_check(uint64_t bytes, const char *what, const char *settings)
{
    uint64_t usable = base_memory_usable();
    if (bytes <= usable)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s needs %.2f GiB of memory, but %.2f GiB are available: reduce %s", what,
                     0x1p-30 * (double)bytes, 0x1p-30 * (double)usable, settings);
}

bool memory_suffices(const void *old, size_t size)
{
    if (size < MEMORY_LARGE)
        return true;
    size_t held = old != NULL ? malloc_usable_size((void *)(uintptr_t)old) : 0;
    return size <= held || size - held <= base_memory_available();
}
