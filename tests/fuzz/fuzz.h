/* Declares what all fuzz targets need. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Returns 0 for all bytes: a target fails by a crash, a sanitizer's report or require. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "%s: %s (%s)\n", program_invocation_short_name, what, vkn_last_error());
    abort();
}

/* Requires an error message after a refusal. */
static inline void require_message(void)
{
    require(vkn_last_error()[0] != '\0', "an error without a message");
    require(strpbrk(vkn_last_error(), "\n\x1b") == NULL, "a message of more than a line");
}

/* Copies the bytes and adds a zero byte, as when a file is read; the caller frees the copy. */
static inline char *copy_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    require(text != NULL, "out of memory");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
