/* Allocates memory with checks, and grows texts. */
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
