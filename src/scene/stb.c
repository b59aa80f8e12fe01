/* Reads BMP, TGA, GIF (the first frame) and Radiance HDR (as sRGB) with stb. */
#include <stdlib.h>
#include <string.h>

#include "scene/image.h"

/* ---- memory ---------------------------------------------------------------------------------- */

static _Thread_local bool out_of_memory;

/* Returns zeroed memory: stb 2.27 would read uninitialised memory where a file is incomplete. */
static void *decoder_alloc(size_t size)
{
    void *memory = base_realloc(NULL, size ? size : 1);
    out_of_memory |= memory == NULL;
    return memory ? memset(memory, 0, size) : NULL;
}

static void *decoder_realloc(void *memory, size_t size)
{
    void *moved = base_realloc(memory, size);
    out_of_memory |= moved == NULL;
    return moved;
}

/* ---- stb ------------------------------------------------------------------------------------- */

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wdouble-promotion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#endif

#define STBI_MALLOC(size)           decoder_alloc(size)
#define STBI_REALLOC(pointer, size) decoder_realloc(pointer, size)
#define STBI_FREE(pointer)          free(pointer)
/* stb asserts on corrupt files, which must not end the program. */
#define STBI_ASSERT(condition)      ((void)0)

#define STBI_ONLY_BMP
#define STBI_ONLY_TGA
#define STBI_ONLY_GIF
#define STBI_ONLY_HDR
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS 16384 /* SCENE_MAX_IMAGE_SIZE */
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ---- reading callbacks ----------------------------------------------------------------------- */

struct source {
    const struct image_file *file;
    size_t at;
    bool truncated; /* stb read beyond the end */
    int padding;    /* number of bytes that were returned beyond the end */
};

/* Number of 0xff bytes returned beyond the end before zeros. stb's HDR reader would loop forever on
 * zeros, which are empty runs; this many 0xff bytes fill the widest row. */
#define MAX_PADDING 4096

static int pad(struct source *source, char *data, int size)
{
    int left = MAX_PADDING - source->padding, made = left < size ? left : size;
    source->truncated = true;
    source->padding += made;
    memset(data, 0xff, (size_t)made);
    return made;
}

static int read_bytes(void *user, char *data, int size)
{
    struct source *source = user;
    size_t left = source->file->size - source->at;
    size_t taken = left < (size_t)size ? left : (size_t)size;
    if (taken == 0)
        return pad(source, data, size);
    memcpy(data, source->file->data + source->at, taken);
    source->at += taken;
    return (int)taken;
}

static void skip(void *user, int count)
{
    struct source *source = user;
    size_t left = source->file->size - source->at;
    source->truncated |= count > 0 && (size_t)count > left;
    source->at += count < 0 ? 0 : (size_t)count < left ? (size_t)count : left;
}

static int is_at_end(void *user)
{
    struct source *source = user;
    return source->at == source->file->size;
}

static const stbi_io_callbacks callbacks = {read_bytes, skip, is_at_end};

/* ---- the format ------------------------------------------------------------------------------ */

static bool stb_measure(struct image_file *file)
{
    struct source source = {.file = file};
    int width = 0, height = 0, channels = 0;
    out_of_memory = false;
    if (stbi_info_from_callbacks(&callbacks, &source, &width, &height, &channels)) {
        file->width = (uint32_t)width;
        file->height = (uint32_t)height;
        return true;
    }
    file->out_of_memory = out_of_memory;
    image_problem(file, "cannot be decoded (%s)", stbi_failure_reason());
    return false;
}

static bool stb_is(const uint8_t *data, size_t size)
{
    return stb_measure(&(struct image_file){.data = data, .size = size});
}

static bool stb_decode(struct image_file *file, void *rgba)
{
    struct source source = {.file = file};
    int width = 0, height = 0, channels = 0;
    out_of_memory = false;
    void *pixels = stbi_load_from_callbacks(&callbacks, &source, &width, &height, &channels, 4);
    file->out_of_memory = out_of_memory;
    if (source.truncated)
        image_problem(file, "truncated");
    else if (pixels == NULL)
        image_problem(file, "cannot be decoded (%s)", stbi_failure_reason());
    else if ((uint32_t)width != file->width || (uint32_t)height != file->height)
        image_problem(file, "corrupt (two sizes in one file)");
    else
        memcpy(rgba, pixels, (size_t)4 * file->width * file->height);
    free(pixels);
    return !image_failed(file);
}

const struct image_format image_stb = {stb_is, stb_measure, stb_decode};
