/* Encodes pictures as JPEG with libjpeg-turbo. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "pixels/pixels.h"

#define MAX_SUBSAMPLED 90 /* highest quality with chroma subsampling */

struct writing {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    const struct pixels_jpeg *picture;
    unsigned char *data;
    unsigned long size;
    jmp_buf failure;
};

/* Handles errors of libjpeg, which can only run out of memory here. */
static void fail(j_common_ptr info)
{
    struct writing *writing = info->client_data;
    longjmp(writing->failure, 1);
}

/* Returns an upper bound of the file's size: two bytes for each sample, and the headers. libjpeg
 * then never enlarges the buffer. */
static size_t bound(const struct pixels_jpeg *picture)
{
    return (size_t)(picture->width + 16) * (picture->height + 16) * 6 + 4096 + picture->exif_size;
}

static void write_picture(struct writing *writing)
{
    const struct pixels_jpeg *picture = writing->picture;
    struct jpeg_compress_struct *info = &writing->info;
    jpeg_create_compress(info);
    jpeg_mem_dest(info, &writing->data, &writing->size);
    info->image_width = picture->width;
    info->image_height = picture->height;
    info->input_components = (int)picture->channels;
    info->in_color_space = picture->channels == 4 ? JCS_EXT_RGBX : JCS_EXT_RGB;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, picture->quality, TRUE);
    if (picture->quality > MAX_SUBSAMPLED)
        info->comp_info[0].h_samp_factor = info->comp_info[0].v_samp_factor = 1;
    info->write_JFIF_header = picture->exif == NULL; /* EXIF has to come first */
    jpeg_start_compress(info, TRUE);
    if (picture->exif != NULL)
        jpeg_write_marker(info, JPEG_APP0 + 1, picture->exif, (unsigned)picture->exif_size);
    while (info->next_scanline < info->image_height) {
        size_t first = (size_t)info->next_scanline * picture->width * picture->channels;
        JSAMPROW row = (JSAMPROW)(uintptr_t)(picture->pixels + first);
        jpeg_write_scanlines(info, &row, 1);
    }
    jpeg_finish_compress(info);
}

/* Writes the picture; returns false when out of memory. */
static bool succeeds(struct writing *writing)
{
    writing->info.err = jpeg_std_error(&writing->errors);
    writing->errors.error_exit = fail;
    writing->info.client_data = writing;
    if (writing->data == NULL || setjmp(writing->failure) != 0)
        return false;
    write_picture(writing);
    return true;
}

void *pixels_write_jpeg(const struct pixels_jpeg *picture, size_t *size)
{
    struct writing writing = {.picture = picture, .size = bound(picture)};
    unsigned char *buffer = writing.data = malloc(writing.size);
    bool written = succeeds(&writing);
    jpeg_destroy_compress(&writing.info);
    if (!written) {
        free(buffer);
        return NULL;
    }
    *size = writing.size;
    void *fitting = realloc(buffer, writing.size);
    return fitting != NULL ? fitting : buffer;
}
