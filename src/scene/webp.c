/* Reads WebP files with libwebp, if it is installed. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "loading/loading.h"
#include "scene/image.h"

#define FILE_NAME "libwebp.so.7"

/* X(NAME, result, parameters): functions used from webp/decode.h (not needed to build). */
#define FUNCTIONS(X)                                                        \
    X(WebPGetInfo, int, (const uint8_t *data, size_t size, int *w, int *h)) \
    X(WebPDecodeRGBAInto, uint8_t *,                                        \
      (const uint8_t *data, size_t size, uint8_t *rgba, size_t capacity, int row_size))

// NOLINTNEXTLINE(bugprone-macro-parentheses): types and names
#define POINTER(name, result, parameters) static result(*name) parameters;
FUNCTIONS(POINTER)

static bool loaded; /* all functions have been found */

static void load(void)
{
    static const char *const files[] = {FILE_NAME, NULL};
    void *library = loading_open(files);
    loaded = true;
#define FIND(name, result, parameters) loaded = loading_find(library, #name, &(name)) && loaded;
    FUNCTIONS(FIND)
}

static bool webp_is(const uint8_t *data, size_t size)
{
    return size >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0;
}

static bool webp_measure(struct image_file *file)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int width = 0, height = 0;
    pthread_once(&once, load);
    if (!loaded)
        image_problem(file, "WebP needs " FILE_NAME ", which is missing: install libwebp7");
    else if (!WebPGetInfo(file->data, file->size, &width, &height))
        image_problem(file, "cannot be decoded (no header of a WebP picture)");
    file->width = (uint32_t)width;
    file->height = (uint32_t)height;
    return !image_failed(file);
}

static bool webp_decode(struct image_file *file, void *rgba)
{
    int row_size = 4 * (int)file->width;
    size_t capacity = (size_t)row_size * file->height;
    if (!WebPDecodeRGBAInto(file->data, file->size, rgba, capacity, row_size))
        image_problem(file, "cannot be decoded (a truncated, damaged or animated WebP image)");
    return !image_failed(file);
}

const struct image_format image_webp = {webp_is, webp_measure, webp_decode};
