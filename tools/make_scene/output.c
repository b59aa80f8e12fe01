/* for mkdir */
#define _POSIX_C_SOURCE 200809L

#include "output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wsign-compare"
#endif
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

void buffer_append(buffer *b, const void *bytes, size_t size)
{
    if (b->failed)
        return;
    if (b->size + size > b->capacity) {
        size_t capacity = 2 * (b->size + size);
        unsigned char *grown = realloc(b->bytes, capacity);
        if (!grown) {
            b->failed = 1;
            return;
        }
        b->bytes = grown;
        b->capacity = capacity;
    }
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

void buffer_print(buffer *b, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text)
        b->failed = 1;
    else
        buffer_append(b, text, (size_t)length);
}

static void append_png(void *context, void *bytes, int size)
{
    buffer_append(context, bytes, (size_t)size);
}

void buffer_png(buffer *b, const unsigned char *rgba, int size)
{
    stbi_write_png_compression_level = 9;
    if (!stbi_write_png_to_func(append_png, b, size, size, 4, rgba, 4 * size))
        b->failed = 1;
}

static int fail(const char *path, const char *why)
{
    fprintf(stderr, "make_scene: %s: %s\n", path, why);
    return -1;
}

int output_write(const char *path, const buffer *content)
{
    if (content->failed)
        return fail(path, "out of memory");
    FILE *file = fopen(path, "wb");
    if (!file)
        return fail(path, strerror(errno));
    size_t written = fwrite(content->bytes, 1, content->size, file);
    if (fclose(file) != 0 || written != content->size)
        return fail(path, "cannot write");
    return 0;
}

int output_compare(const char *path, const buffer *content)
{
    if (content->failed)
        return fail(path, "out of memory");
    FILE *file = fopen(path, "rb");
    if (!file)
        return fail(path, strerror(errno));
    int same = 1;
    for (size_t i = 0; same && i < content->size; i++)
        same = fgetc(file) == content->bytes[i];
    same = same && fgetc(file) == EOF;
    fclose(file);
    return same ? 0 : fail(path, "differs from the rendered file");
}

int output_folder(const char *path)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return fail(path, strerror(errno));
    return 0;
}
