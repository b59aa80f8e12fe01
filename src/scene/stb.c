/* The one place where stb's image decoder and writer are compiled: PNG and JPEG, from memory and into it. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "scene/image.h"

/* ---- memory --------------------------------------------------------------------------------- */

_Thread_local bool stb_short_of_memory;

/* Zeroed: where a corrupt JPEG leaves out a table or a part of the picture, stb 2.27 would read what
 * happened to be there. */
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

/* The writer grows its tables without looking whether it could. Where it could not it is left at once,
 * and all that it had is freed: every block is in a list. */
struct block {
    struct block *next, **place;
    max_align_t data[];
};
static _Thread_local struct writing {
    jmp_buf leave;
    struct block *blocks;
} *writing;

static void link_block(struct block *block, struct block **place)
{
    block->place = place;
    *place = block;
    if (block->next)
        block->next->place = &block->next;
}

static struct block *block_of(void *data)
{
    return (struct block *)(void *)((char *)data - offsetof(struct block, data));
}

static void writer_free(void *data)
{
    if (!data)
        return;
    struct block *block = block_of(data);
    *block->place = block->next;
    if (block->next)
        block->next->place = block->place;
    free(block);
}

static void *writer_realloc(void *data, size_t size)
{
    struct block *old = data ? block_of(data) : NULL;
    struct block **place = old ? old->place : &writing->blocks, *next = old ? old->next : *place;
    struct block *block = base_realloc(old, sizeof(*block) + size);
    if (!block)
        longjmp(writing->leave, 1);
    block->next = next;
    link_block(block, place);
    return block->data;
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

#define STBIW_MALLOC(size)           writer_realloc(NULL, size)
#define STBIW_REALLOC(pointer, size) writer_realloc(pointer, size)
#define STBIW_FREE(pointer)          writer_free(pointer)
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* ---- writing -------------------------------------------------------------------------------- */

bool stb_write_png(stb_write write, void *context, int width, int height, int channels,
                   const uint8_t *pixels)
{
    struct writing now = {.blocks = NULL};
    volatile bool written = false;
    writing = &now;
    if (setjmp(now.leave) == 0)
        written = stbi_write_png_to_func(write, context, width, height, channels, pixels,
                                         width * channels) != 0;
    while (now.blocks)
        writer_free(now.blocks->data);
    writing = NULL;
    return written;
}

bool stb_write_jpeg(stb_write write, void *context, int width, int height, const uint8_t *rgba,
                    int quality)
{
    return stbi_write_jpg_to_func(write, context, width, height, 4, rgba, quality) != 0;
}
