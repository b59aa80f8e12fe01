/* Scales pictures down to thumbnails. */
#include "report/thumbnail.h"

#include <stdlib.h>
#include <string.h>

#include "pixels/pixels.h"
#include "scene/scene.h"

#define FILE_LIMIT ((size_t)256 << 20)

struct shrinking {
    const uint8_t *rgba;
    uint8_t *rgb;
    uint64_t sums[3]; /* of RGB over the picture's pixels in one pixel of the thumbnail */
};

static inline void add(void *context, size_t pixel)
{
    struct shrinking *shrinking = context;
    for (size_t c = 0; c < 3; c++)
        shrinking->sums[c] += shrinking->rgba[4 * pixel + c];
}

static inline void put(void *context, size_t pixel, uint64_t count)
{
    struct shrinking *shrinking = context;
    for (size_t c = 0; c < 3; c++) {
        shrinking->rgb[3 * pixel + c] = (uint8_t)((shrinking->sums[c] + count / 2) / count);
        shrinking->sums[c] = 0;
    }
}

static uint32_t scaled(uint32_t side, uint32_t longest, uint32_t edge)
{
    if (longest <= edge)
        return side;
    uint64_t result = ((uint64_t)side * edge + longest / 2) / longest;
    return result > 0 ? (uint32_t)result : 1;
}

static vkn_status scale(const char *path, uint32_t edge, struct thumbnail *thumbnail)
{
    uint8_t *rgba = NULL;
    uint32_t width = 0, height = 0;
    BASE_TRY(scene_image_read(path, &rgba, &width, &height));
    uint32_t longest = width > height ? width : height;
    thumbnail->width = scaled(width, longest, edge);
    thumbnail->height = scaled(height, longest, edge);
    uint8_t *rgb = base_alloc((size_t)thumbnail->width * thumbnail->height, 3);
    vkn_status status = VKN_ERROR;
    if (rgb) {
        const uint32_t from[2] = {width, height}, to[2] = {thumbnail->width, thumbnail->height};
        pixels_shrink(from, width, to, add, put, &(struct shrinking){rgba, rgb, {0}});
        status = scene_image_encode_png(rgb, thumbnail->width, thumbnail->height, 3,
                                        &thumbnail->png, &thumbnail->size);
    }
    free(rgb);
    free(rgba);
    return status;
}

vkn_status thumbnail_read(const char *path, uint32_t edge, struct thumbnail *thumbnail)
{
    *thumbnail = (struct thumbnail){0};
    char *data = NULL;
    size_t size = 0;
    uint32_t width = 0, height = 0;
    BASE_TRY(scene_image_size(path, &width, &height));
    BASE_TRY(base_file_read(path, FILE_LIMIT, &data, &size));
    if (width <= edge && height <= edge && size > 4 && memcmp(data, "\x89PNG", 4) == 0) {
        *thumbnail = (struct thumbnail){(uint8_t *)data, size, width, height};
        return VKN_OK;
    }
    free(data);
    return scale(path, edge, thumbnail);
}
