/* The one place where stb is compiled: its decoder, PNG and JPEG from memory, and its writer of
 * JPEG. */
#include <stdlib.h>
#include <string.h>

#include "scene/image.h"

/* ---- memory --------------------------------------------------------------------------------- */

_Thread_local bool stb_short_of_memory;

/* Zeroed: where a corrupt JPEG leaves out a table or a part of the picture, stb 2.27 would read
 * what happened to be there. */
static void *decoder_alloc(size_t size)
{
    void *memory = base_realloc(NULL, size ? size : 1);
    stb_short_of_memory |= memory == NULL;
    return memory ? memset(memory, 0, size) : NULL;
}

static void *decoder_realloc(void *memory, size_t size)
{
    void *moved = base_realloc(memory, size);
    stb_short_of_memory |= moved == NULL;
    return moved;
}

/* ---- stb ------------------------------------------------------------------------------------ */

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
/* stb's assertions are about corrupt files, which must not end the program. */
#define STBI_ASSERT(condition)      ((void)0)

#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_MAX_DIMENSIONS 16384 /* SCENE_MAX_IMAGE_SIZE */
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>

#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ---- writing -------------------------------------------------------------------------------- */

bool stb_write_jpeg(stb_write write, void *context, int width, int height, const uint8_t *rgba,
                    int quality)
{
    return stbi_write_jpg_to_func(write, context, width, height, 4, rgba, quality) != 0;
}
