#include "report/thumbnail.h"

#include <stdlib.h>
#include <string.h>

#include "scene/scene.h"

#define FILE_LIMIT ((size_t)256 << 20)

/* The first pixel of the `index`-th of `parts` nearly equal parts of `size` pixels. */
static uint32_t part_begin(uint32_t index, uint32_t parts, uint32_t size)
{
    return (uint32_t)((uint64_t)index * size / parts);
}

/* Mean of the pixels that make one of the thumbnail's, 3 channels, rounded. */
static void average(const uint8_t *rgba, uint32_t width, const uint32_t x[2], const uint32_t y[2],
                    uint8_t rgb[3])
{
    uint64_t sums[3] = {0}, count = 0;
    for (uint32_t row = y[0]; row < y[1]; row++) {
        for (uint32_t column = x[0]; column < x[1]; column++, count++)
            for (size_t c = 0; c < 3; c++)
                sums[c] += rgba[4 * ((size_t)row * width + column) + c];
    }
    for (size_t c = 0; c < 3 && count > 0; c++)
        rgb[c] = (uint8_t)((sums[c] + count / 2) / count);
}

static void shrink(const uint8_t *rgba, uint32_t width, uint32_t height, const struct thumbnail *to,
                   uint8_t *rgb)
{
    for (uint32_t row = 0; row < to->height; row++) {
        const uint32_t y[2] = {part_begin(row, to->height, height),
                               part_begin(row + 1, to->height, height)};
        for (uint32_t column = 0; column < to->width; column++) {
            const uint32_t x[2] = {part_begin(column, to->width, width),
                                   part_begin(column + 1, to->width, width)};
            average(rgba, width, x, y, rgb + 3 * ((size_t)row * to->width + column));
        }
    }
}

static uint32_t scaled(uint32_t side, uint32_t longest, uint32_t edge)
{
    if (longest <= edge)
        return side;
    uint64_t result = ((uint64_t)side * edge + longest / 2) / longest;
    return result > 0 ? (uint32_t)result : 1;
}

static vkn_status make(const char *path, uint32_t edge, struct thumbnail *thumbnail)
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
        shrink(rgba, width, height, thumbnail, rgb);
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
    return make(path, edge, thumbnail);
}
