/* Reads JPEG files with libjpeg-turbo. */
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "scene/image.h"

/* A small file can have endless scans, each of which takes as long as the whole image. */
#define MOST_SCANS 100

struct reading {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    struct image_file *file;
    uint8_t *rgba;
    jmp_buf error_jump;
};

/* ---- errors ---------------------------------------------------------------------------------- */

static _Noreturn void fail(j_common_ptr info)
{
    struct reading *reading = info->client_data;
    struct image_file *file = reading->file;
    char message[JMSG_LENGTH_MAX];
    int code = info->err->msg_code;
    info->err->format_message(info, message);
    file->out_of_memory |= code == JERR_OUT_OF_MEMORY || code == JERR_NO_BACKING_STORE;
    image_problem(file, "cannot be decoded (%s)", message);
    longjmp(reading->error_jump, 1);
}

/* Fails at warnings about damaged data, which libjpeg replaces by invented data. Other warnings are
 * about headers or about bytes outside of the image. */
static void warn(j_common_ptr info, int level)
{
    int code = info->err->msg_code;
    if (level < 0 && (code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
                      code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC))
        fail(info);
}

static void limit_scans(j_common_ptr info)
{
    struct reading *reading = info->client_data;
    if (reading->info.input_scan_number <= MOST_SCANS)
        return;
    image_problem(reading->file, "cannot be decoded (more than %d scans)", MOST_SCANS);
    longjmp(reading->error_jump, 1);
}

/* ---- the source of bytes --------------------------------------------------------------------- */

static void do_nothing(j_decompress_ptr info)
{
    (void)info;
}

/* Handles the end of the data: suspends libjpeg when the file continues, else fails. */
static boolean reach_end(j_decompress_ptr info)
{
    struct reading *reading = info->client_data;
    if (!reading->file->is_whole)
        return FALSE;
    image_problem(reading->file, "truncated JPEG");
    longjmp(reading->error_jump, 1);
}

static void skip(j_decompress_ptr info, long count)
{
    struct jpeg_source_mgr *source = info->src;
    size_t skipped = count < 0 ? 0 : (size_t)count;
    if (skipped > source->bytes_in_buffer)
        skipped = source->bytes_in_buffer;
    source->next_input_byte += skipped;
    source->bytes_in_buffer -= skipped;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns false when the data end inside of the header. */
static bool read_header(struct reading *reading)
{
    struct jpeg_decompress_struct *info = &reading->info;
    jpeg_create_decompress(info);
    info->src = &reading->source;
    info->progress = &reading->progress;
    return jpeg_read_header(info, TRUE) == JPEG_HEADER_OK;
}

static void measure(struct reading *reading)
{
    if (!read_header(reading))
        return;
    reading->file->width = reading->info.image_width;
    reading->file->height = reading->info.image_height;
}

/* Converts CMYK, which Adobe's programs store inverted, to RGBA in place. */
static void convert_cmyk(uint8_t *row, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++, row += 4) {
        for (size_t c = 0; c < 3; c++)
            row[c] = (uint8_t)((row[c] * row[3] + 127) / 255);
        row[3] = 255;
    }
}

static long memory_limit(void)
{
    uint64_t usable = base_memory_usable();
    return usable < LONG_MAX ? (long)usable : LONG_MAX;
}

static void decode(struct reading *reading)
{
    struct jpeg_decompress_struct *info = &reading->info;
    read_header(reading);
    bool is_cmyk = info->num_components == 4;
    info->out_color_space = is_cmyk ? JCS_CMYK : JCS_EXT_RGBA;
    if (jpeg_has_multiple_scans(info)) /* libjpeg keeps the coefficients of the whole image */
        info->mem->max_memory_to_use = memory_limit();
    jpeg_start_decompress(info);
    while (info->output_scanline < info->output_height) {
        JSAMPROW row = reading->rgba + (size_t)4 * info->output_scanline * info->output_width;
        jpeg_read_scanlines(info, &row, 1);
        if (is_cmyk)
            convert_cmyk(row, info->output_width);
    }
    jpeg_finish_decompress(info);
}

static bool attempt(struct reading *reading, void (*read)(struct reading *))
{
    if (setjmp(reading->error_jump) != 0)
        return false;
    read(reading);
    return true;
}

static bool read_file(struct image_file *file, uint8_t *rgba, void (*read)(struct reading *))
{
    struct reading reading = {.file = file, .rgba = rgba};
    reading.info.err = jpeg_std_error(&reading.errors);
    reading.errors.error_exit = fail;
    reading.errors.emit_message = warn;
    reading.info.client_data = &reading;
    reading.progress.progress_monitor = limit_scans;
    reading.source = (struct jpeg_source_mgr){.next_input_byte = file->data,
                                              .bytes_in_buffer = file->size,
                                              .init_source = do_nothing,
                                              .fill_input_buffer = reach_end,
                                              .skip_input_data = skip,
                                              .resync_to_restart = jpeg_resync_to_restart,
                                              .term_source = do_nothing};
    bool done = attempt(&reading, read);
    jpeg_destroy_decompress(&reading.info);
    return done;
}

static bool jpeg_is(const uint8_t *data, size_t size)
{
    return size >= 2 && data[0] == 0xff && data[1] == 0xd8;
}

static bool jpeg_measure(struct image_file *file)
{
    return read_file(file, NULL, measure);
}

static bool jpeg_decode(struct image_file *file, void *rgba)
{
    return read_file(file, rgba, decode);
}

const struct image_format image_jpeg = {jpeg_is, jpeg_measure, jpeg_decode};
