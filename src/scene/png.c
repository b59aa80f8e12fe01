/* PNG files by libpng. */
#include <setjmp.h>
#include <stdlib.h>

#include <png.h>

#include "scene/image.h"

/* Pictures are written as fast as they are rendered, or faster: what higher levels save, a few
 * percent, takes several times as long (BENCHMARKS.md). Rows of pictures are like those above them.
 */
#define LEVEL  2
#define FILTER PNG_FILTER_UP

struct writing {
    png_structp png;
    png_infop info;
    struct base_text *text;
    jmp_buf leave;
};

/* The only error there can be is too little memory: the pictures are what they should be. */
static void fail(png_structp png, png_const_charp message)
{
    (void)message;
    struct writing *writing = png_get_error_ptr(png);
    longjmp(writing->leave, 1);
}

static void warn(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static png_voidp allocate(png_structp png, png_alloc_size_t size)
{
    (void)png;
    return base_realloc(NULL, size);
}

static void release(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

static void append(png_structp png, png_bytep data, png_size_t size)
{
    struct writing *writing = png_get_io_ptr(png);
    base_text_add_bytes(writing->text, data, size);
    if (writing->text->failed)
        png_error(png, "no memory");
}

static void flush(png_structp png)
{
    (void)png;
}

static void write_rows(struct writing *writing, const struct image_png *image)
{
    static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGB_ALPHA};
    static const uint16_t one = 1;
    png_structp png = writing->png;
    size_t row = (size_t)image->width * image->channels * (image->bits / 8);
    png_set_write_fn(png, writing, append, flush);
    png_set_IHDR(png, writing->info, image->width, image->height, (int)image->bits,
                 types[image->channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, LEVEL);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, FILTER);
    png_write_info(png, writing->info);
    if (image->bits == 16 && *(const uint8_t *)&one == 1)
        png_set_swap(png); /* files have the high byte first */
    for (uint32_t y = 0; y < image->height; y++)
        png_write_row(png, (png_const_bytep)image->pixels + y * row);
    png_write_end(png, writing->info);
}

bool image_png_encode(const struct image_png *image, struct base_text *text)
{
    struct writing writing = {.text = text};
    volatile bool written = false;
    if (setjmp(writing.leave) == 0) {
        writing.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &writing, fail, warn, NULL,
                                                allocate, release);
        writing.info = writing.png ? png_create_info_struct(writing.png) : NULL;
        if (writing.info)
            write_rows(&writing, image);
        written = writing.info != NULL;
    }
    png_destroy_write_struct(&writing.png, &writing.info);
    return written;
}
