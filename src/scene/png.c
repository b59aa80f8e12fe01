/* Reads and writes PNG files with libpng. */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "scene/image.h"

/* Compression must be as fast as rendering: higher levels save a few percent and take several times
 * as long (BENCHMARKS.md). Rows of images are similar to the rows above them. */
#define LEVEL  2
#define FILTER PNG_FILTER_UP

/* Largest compression factor of deflate. */
#define MAX_COMPRESSION 1032

struct work {
    png_structp png;
    png_infop info;
    jmp_buf error_jump;
    struct image_file *file; /* file to read; NULL: writing */
    size_t at;
    uint8_t *rgba;
    const struct image_png *image;
    struct base_text *text;
};

/* ---- callbacks of libpng --------------------------------------------------------------------- */

/* Reports an error of libpng. Writing has no message because it only fails when out of memory. */
static _Noreturn void fail(png_structp png, png_const_charp message)
{
    struct work *work = png_get_error_ptr(png);
    if (work->file != NULL)
        image_problem(work->file, "cannot be decoded (%s)", message);
    longjmp(work->error_jump, 1);
}

static void warn(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static png_voidp allocate(png_structp png, png_alloc_size_t size)
{
    struct work *work = png_get_mem_ptr(png);
    void *memory = base_realloc(NULL, size);
    if (work->file != NULL)
        work->file->out_of_memory |= memory == NULL;
    return memory;
}

static void release(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

static void append(png_structp png, png_bytep data, png_size_t size)
{
    struct work *work = png_get_io_ptr(png);
    base_text_add_bytes(work->text, data, size);
    if (work->text->failed)
        png_error(png, "no memory");
}

static void flush(png_structp png)
{
    (void)png;
}

static void read_bytes(png_structp png, png_bytep data, png_size_t size)
{
    struct work *work = png_get_io_ptr(png);
    struct image_file *file = work->file;
    if (size > file->size - work->at) {
        if (file->is_whole)
            image_problem(file, "truncated PNG");
        longjmp(work->error_jump, 1);
    }
    memcpy(data, file->data + work->at, size);
    work->at += size;
}

static bool is_little_endian(void)
{
    static const uint16_t one = 1;
    return *(const uint8_t *)&one == 1;
}

static bool attempt(struct work *work, void (*step)(struct work *))
{
    if (setjmp(work->error_jump) != 0)
        return false;
    step(work);
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads the header; skips unknown chunks. image.c limits the size. */
static void read_header(struct work *work)
{
    png_structp png = work->png;
    png_set_read_fn(png, work, read_bytes);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(png, work->info);
}

static void measure(struct work *work)
{
    struct image_file *file = work->file;
    read_header(work);
    file->width = png_get_image_width(work->png, work->info);
    file->height = png_get_image_height(work->png, work->info);
    file->is_16_bit = png_get_bit_depth(work->png, work->info) == 16;
    size_t row_size = png_get_rowbytes(work->png, work->info) + 1; /* plus the filter's byte */
    file->min_size = row_size * file->height / MAX_COMPRESSION;
}

static void decode(struct work *work)
{
    png_structp png = work->png;
    const struct image_file *file = work->file;
    read_header(work);
    if (!file->is_16_bit)
        png_set_scale_16(png);
    else if (is_little_endian())
        png_set_swap(png);
    png_set_expand(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xffff, PNG_FILLER_AFTER);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, work->info);
    size_t row_size = (size_t)file->width * (file->is_16_bit ? 8 : 4);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < file->height; y++)
            png_read_row(png, work->rgba + y * row_size, NULL);
    png_read_end(png, NULL);
}

static bool read_file(struct image_file *file, void *rgba, void (*step)(struct work *))
{
    struct work work = {.file = file, .rgba = rgba};
    work.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &work, fail, warn, &work, allocate,
                                        release);
    work.info = work.png != NULL ? png_create_info_struct(work.png) : NULL;
    bool done = work.info != NULL && attempt(&work, step);
    png_destroy_read_struct(&work.png, &work.info, NULL);
    return done;
}

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static bool png_is(const uint8_t *data, size_t size)
{
    return memcmp(data, signature, size < sizeof(signature) ? size : sizeof(signature)) == 0;
}

/* Reads the size. The first bytes of a file may end before the pixels without an error. */
static bool png_measure(struct image_file *file)
{
    return read_file(file, NULL, measure) || (!file->is_whole && !image_failed(file));
}

static bool png_decode(struct image_file *file, void *rgba)
{
    return read_file(file, rgba, decode);
}

const struct image_format image_png = {png_is, png_measure, png_decode};

/* ---- writing --------------------------------------------------------------------------------- */

static void write_rows(struct work *work)
{
    static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_RGB_ALPHA};
    const struct image_png *image = work->image;
    png_structp png = work->png;
    size_t row_size = (size_t)image->width * image->channels * (image->bits / 8);
    png_set_write_fn(png, work, append, flush);
    png_set_IHDR(png, work->info, image->width, image->height, (int)image->bits,
                 types[image->channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, LEVEL);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, FILTER);
    png_write_info(png, work->info);
    if (image->bits == 16 && is_little_endian())
        png_set_swap(png); /* PNG is big-endian */
    for (uint32_t y = 0; y < image->height; y++)
        png_write_row(png, (png_const_bytep)image->pixels + y * row_size);
    png_write_end(png, work->info);
}

bool image_png_encode(const struct image_png *image, struct base_text *text)
{
    struct work work = {.image = image, .text = text};
    work.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &work, fail, warn, &work, allocate,
                                         release);
    work.info = work.png != NULL ? png_create_info_struct(work.png) : NULL;
    bool done = work.info != NULL && attempt(&work, write_rows);
    png_destroy_write_struct(&work.png, &work.info);
    return done;
}
