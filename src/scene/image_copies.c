/* Writes copies of images and masks for a scene's folder: smaller ones, and upright ones. */
#include <stdlib.h>
#include <string.h>

#include "pixels/pixels.h"
#include "scene/find.h"
#include "scene/image.h"
#include "scene/transforms.h"

/* Returns VKN_ERROR instead of VKN_BAD_INPUT, since a failed write is not the image's fault. */
static vkn_status no_fault(vkn_status written)
{
    return written == VKN_BAD_INPUT ? VKN_ERROR : written;
}

/* ---- smaller --------------------------------------------------------------------------------- */

/* Converts premultiplied pixels to bytes with straight alpha. Ignored pixels become black. Returns
 * the number of channels: 4 with alpha, else 3. */
static uint32_t unpack(const uint32_t *pixels, size_t count, bool has_alpha, uint8_t *bytes)
{
    uint32_t channels = has_alpha ? 4 : 3;
    for (size_t i = 0; i < count; i++, bytes += channels) {
        uint32_t pixel = pixels[i] == SCENE_IGNORED ? 0 : pixels[i], alpha = pixel >> 24;
        for (uint32_t c = 0; c < 3; c++) {
            uint32_t value = pixel >> (8 * c) & 255;
            bytes[c] = (uint8_t)(alpha > 0 ? (value * 255 + alpha / 2) / alpha : 0);
        }
        if (has_alpha)
            bytes[3] = (uint8_t)alpha;
    }
    return channels;
}

static vkn_status write_smaller(const uint8_t *rgba, const uint8_t *used, uint32_t width,
                                uint32_t height, uint32_t factor, const char *path)
{
    size_t count = (size_t)(width / factor) * (height / factor);
    uint32_t *pixels = base_alloc(count, sizeof(*pixels));
    uint8_t *bytes = base_alloc(count, 4);
    vkn_status status = pixels != NULL && bytes != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK) {
        bool has_alpha = image_downscale(rgba, used, width, height, factor, pixels);
        uint32_t channels = unpack(pixels, count, has_alpha, bytes);
        status =
            no_fault(scene_image_write_png(path, bytes, width / factor, height / factor, channels));
    }
    free(pixels);
    free(bytes);
    return status;
}

vkn_status scene_copy_smaller(const char *image, const char *mask, const uint32_t *factors,
                              char *const *paths, size_t count)
{
    uint8_t *rgba = NULL, *used = NULL;
    uint32_t width, height;
    BASE_TRY(scene_image_read(image, &rgba, &width, &height));
    vkn_status status =
        mask != NULL ? mask_read(mask, false, EXIF_UPRIGHT, width, height, &used) : VKN_OK;
    for (size_t i = 0; i < count && status == VKN_OK; i++)
        status = write_smaller(rgba, used, width, height, factors[i], paths[i]);
    free(rgba);
    free(used);
    return status;
}

/* ---- upright --------------------------------------------------------------------------------- */

#define QUALITY 97 /* of JPEG, at most 100 */

/* Returns the stored image's (width x height) index of the pixel at (x, y) in the upright image
 * (Exif 2.32, tag 274: the position of the first row and the first column). */
static size_t stored_at(unsigned orientation, uint32_t width, uint32_t height, uint32_t x,
                        uint32_t y)
{
    bool transposed = orientation >= IMAGE_FIRST_TRANSPOSED;
    uint32_t column = transposed ? y : x, row = transposed ? x : y;
    if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
        column = width - 1 - column;
    if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
        row = height - 1 - row;
    return (size_t)row * width + column;
}

uint8_t *image_apply_orientation(const uint8_t *stored, size_t size, unsigned orientation,
                                 uint32_t *width, uint32_t *height)
{
    uint32_t from_width = *width, from_height = *height;
    uint8_t *upright = base_alloc((size_t)from_width * from_height, size), *at = upright;
    if (upright == NULL)
        return NULL;
    if (orientation >= IMAGE_FIRST_TRANSPOSED) {
        *width = from_height;
        *height = from_width;
    }
    for (uint32_t y = 0; y < *height; y++) {
        size_t from = stored_at(orientation, from_width, from_height, 0, y);
        size_t step =
            stored_at(orientation, from_width, from_height, 1, y) - from; /* modulo 2^64 */
        for (uint32_t x = 0; x < *width; x++, from += step, at += size)
            memcpy(at, stored + size * from, size);
    }
    return upright;
}

#define MARKER_SIZE 4 /* bytes of a segment's marker and length */

static vkn_status write_jpeg(const uint8_t *rgba, uint32_t width, uint32_t height,
                             const uint8_t *segment, size_t size, const char *path)
{
    const struct pixels_jpeg picture = {
        rgba, width, height, 4, QUALITY, segment + MARKER_SIZE, size - MARKER_SIZE};
    void *jpeg = pixels_write_jpeg(&picture, &size);
    vkn_status status = jpeg != NULL ? no_fault(base_file_replace(path, jpeg, size))
                                     : base_fail(VKN_ERROR, "%s: out of memory", path);
    free(jpeg);
    return status;
}

vkn_status scene_copy_upright(const char *image, unsigned orientation, const void *segment,
                              size_t size, const char *path)
{
    uint8_t *rgba = NULL;
    uint32_t width, height;
    BASE_TRY(scene_image_read(image, &rgba, &width, &height));
    uint8_t *upright = image_apply_orientation(rgba, 4, orientation, &width, &height);
    free(rgba);
    if (upright == NULL)
        return VKN_ERROR;
    vkn_status status = size > 0 ? write_jpeg(upright, width, height, segment, size, path)
                                 : no_fault(scene_image_write_png(path, upright, width, height, 4));
    free(upright);
    return status;
}

/* ---- masks ----------------------------------------------------------------------------------- */

static vkn_status copy_mask(const char *mask, const char *image, unsigned orientation,
                            const char *path)
{
    uint32_t width, height;
    uint8_t *used = NULL;
    BASE_TRY(scene_image_size(image, &width, &height));
    BASE_TRY(mask_read(mask, false, orientation, width, height, &used));
    for (size_t i = 0; i < (size_t)width * height; i++)
        used[i] = used[i] ? 255 : 0;
    vkn_status status = no_fault(scene_image_write_png(path, used, width, height, 1));
    free(used);
    return status;
}

vkn_status scene_copy_mask(const char *masks, const char *name, const char *image,
                           unsigned orientation, const char *path, bool *found)
{
    char *mask = NULL;
    struct finder *finder = NULL;
    BASE_TRY(finder_open(masks, NULL, &finder));
    vkn_status status = mask_find(finder, name, &mask);
    *found = mask != NULL;
    if (mask != NULL)
        status = copy_mask(mask, image, orientation, path);
    finder_close(&finder);
    free(mask);
    return status;
}
