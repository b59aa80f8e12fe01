/* Converts pictures and writes them as PNG and NumPy files. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/render.h"
#include "render/write_view.h"

/* Rounds to the nearest. lroundf, a library call, takes more than twice as long. */
static uint8_t to_byte(float value)
{
    if (value >= 1.0F)
        return 255;
    float scaled = value > 0.0F ? value * 255.0F : 0.0F;
    uint8_t whole = (uint8_t)scaled;
    return scaled - (float)whole >= 0.5F ? (uint8_t)(whole + 1) : whole;
}

void render_to_bytes(const float *values, size_t count, uint8_t *bytes)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = to_byte(values[i]);
}

/* Scales colours by opacity / rounded alpha, which keeps the premultiplied colour: composited on
 * any background, the result is off by less than one step of a byte. */
void render_rgba_bytes(const struct vkn_picture *picture, uint8_t *bytes)
{
    size_t pixels = (size_t)picture->width * picture->height;
    for (size_t i = 0; i < pixels; i++) {
        uint8_t alpha = to_byte(picture->opacity[i]);
        float factor = alpha > 0 ? 255.0F * picture->opacity[i] / (float)alpha : 0.0F;
        for (size_t c = 0; c < 3; c++)
            bytes[4 * i + c] = to_byte(picture->color[3 * i + c] * factor);
        bytes[4 * i + 3] = alpha;
    }
}

static vkn_status write_png(const char *path, const float *values, uint32_t width, uint32_t height,
                            uint32_t channels)
{
    size_t count = (size_t)width * height * channels;
    uint8_t *bytes = base_alloc(count, 1);
    if (!bytes)
        return VKN_ERROR;
    render_to_bytes(values, count, bytes);
    vkn_status status = scene_image_write_png(path, bytes, width, height, channels);
    free(bytes);
    return status;
}

vkn_status render_write_color(const char *path, const float *rgb, uint32_t width, uint32_t height)
{
    return write_png(path, rgb, width, height, 3);
}

vkn_status render_write_grey(const char *path, const float *values, uint32_t width, uint32_t height)
{
    return write_png(path, values, width, height, 1);
}

float *render_normal_colors(const struct vkn_picture *picture)
{
    size_t pixels = (size_t)picture->width * picture->height;
    float *rgb = base_alloc(pixels, 3 * sizeof *rgb);
    for (size_t i = 0; i < 3 * pixels && rgb; i++)
        rgb[i] = picture->opacity[i / 3] >= RENDER_SOLID_OPACITY ? 0.5F * picture->normal[i] + 0.5F
                                                                 : 0.0F;
    return rgb;
}

/* Format 1.0 (numpy.lib.format). The header is padded to a multiple of 64 bytes. */
vkn_status render_write_npy(const char *path, const float *values, uint32_t width, uint32_t height)
{
    char header[128] = "\x93NUMPY\x01", shape[96];
    snprintf(shape, sizeof(shape), "{'descr': '<f4', 'fortran_order': False, 'shape': (%u, %u), }",
             height, width);
    header[8] = (char)(sizeof(header) - 10);
    snprintf(header + 10, sizeof(header) - 10, "%-117s", shape);
    header[sizeof(header) - 1] = '\n';
    size_t count = (size_t)width * height;
    struct base_file_writer writer;
    BASE_TRY(base_file_begin(&writer, path));
    errno = 0;
    if (fwrite(header, 1, sizeof(header), writer.stream) == sizeof(header) &&
        fwrite(values, sizeof(*values), count, writer.stream) == count)
        return base_file_commit(&writer);
    base_fail(VKN_ERROR, "%s: cannot be written: %s", path, strerror(errno));
    base_file_abort(&writer);
    return VKN_ERROR;
}

/* ---- heat maps of errors ------------------------------------------------------------------- */

#define LARGEST_ERROR 0.25F

/* Maps 0..1 from dark to bright, so that errors differ in lightness, not only in hue. */
static void heat(float share, float rgb[3])
{
    static const float stops[5][3] = {{0.00F, 0.00F, 0.02F},
                                      {0.34F, 0.06F, 0.43F},
                                      {0.74F, 0.22F, 0.33F},
                                      {0.98F, 0.56F, 0.04F},
                                      {0.99F, 1.00F, 0.64F}};
    float at = share < 1.0F ? share * 4.0F : 4.0F; /* NaN counts as the largest error */
    int stop = at >= 3.0F ? 3 : (int)at;
    for (int c = 0; c < 3; c++)
        rgb[c] = stops[stop][c] + (at - (float)stop) * (stops[stop + 1][c] - stops[stop][c]);
}

vkn_status render_write_error(const char *path, const float *a, const float *b, uint32_t width,
                              uint32_t height)
{
    size_t pixels = (size_t)width * height;
    float *rgb = base_alloc(pixels, 3 * sizeof(*rgb));
    if (!rgb)
        return VKN_ERROR;
    for (size_t i = 0; i < pixels; i++) {
        float error = 0.0F;
        for (size_t c = 3 * i; c < 3 * i + 3; c++)
            error += fabsf(a[c] - b[c]) / 3.0F;
        heat(error / LARGEST_ERROR, rgb + 3 * i);
    }
    vkn_status status = render_write_color(path, rgb, width, height);
    free(rgb);
    return status;
}
