/* Averages blocks of pixels into premultiplied pixels. */
#include <string.h>

#include "pixels/pixels.h"
#include "scene/image.h"

struct blocks {
    const uint8_t *rgba, *used; /* rgba: straight alpha; used: averaged pixels, NULL: all */
    const uint32_t *pixels;     /* premultiplied input; NULL: the input is rgba */
    uint64_t weight;            /* scale of the colour sums: 255 for rgba (times alpha), else 1 */
    uint64_t sums[4], count;    /* over the used pixels of a block */
    uint32_t *small;
    bool has_alpha;
};

/* Returns sum / count, rounded to nearest, halves up. */
static uint32_t rounded(uint64_t sum, uint64_t count)
{
    return (uint32_t)((2 * sum + count) / (2 * count));
}

static inline void store_average(void *context, size_t pixel, uint64_t area)
{
    struct blocks *blocks = context;
    const uint64_t *sums = blocks->sums, weight = blocks->weight * blocks->count;
    uint32_t value = SCENE_IGNORED;
    if (2 * blocks->count >= area) {
        value = rounded(sums[0], weight) | rounded(sums[1], weight) << 8 |
                rounded(sums[2], weight) << 16 | rounded(sums[3], blocks->count) << 24;
        blocks->has_alpha |= value >> 24 < 255;
    }
    blocks->small[pixel] = value;
    memset(blocks->sums, 0, sizeof(blocks->sums));
    blocks->count = 0;
}

/* Adds a straight-alpha pixel. Colours are weighted with alpha in sRGB space, because images are
 * composited there; the sums are exact, so the only rounding is the last one. */
static inline void add_straight(void *context, size_t pixel)
{
    struct blocks *blocks = context;
    const uint8_t *p = blocks->rgba + 4 * pixel;
    if (blocks->used != NULL && blocks->used[pixel] == 0)
        return;
    for (size_t c = 0; c < 3; c++)
        blocks->sums[c] += (uint64_t)p[c] * p[3];
    blocks->sums[3] += p[3];
    blocks->count++;
}

bool image_downscale(const uint8_t *rgba, const uint8_t *used, uint32_t width, uint32_t height,
                     uint32_t k, uint32_t *pixels)
{
    struct blocks blocks = {.rgba = rgba, .used = used, .weight = 255, .small = pixels};
    const uint32_t to[2] = {width / k, height / k}, from[2] = {to[0] * k, to[1] * k};
    pixels_shrink(from, width, to, add_straight, store_average, &blocks);
    return blocks.has_alpha;
}

static inline void add_premultiplied(void *context, size_t pixel)
{
    struct blocks *blocks = context;
    uint32_t value = blocks->pixels[pixel];
    if (value == SCENE_IGNORED)
        return;
    for (uint32_t c = 0; c < 4; c++)
        blocks->sums[c] += value >> (8 * c) & 255;
    blocks->count++;
}

void image_shrink(const uint32_t *pixels, uint32_t width, uint32_t height, uint32_t k,
                  uint32_t *small)
{
    struct blocks blocks = {.pixels = pixels, .weight = 1, .small = small};
    const uint32_t to[2] = {width / k, height / k}, from[2] = {to[0] * k, to[1] * k};
    if (k == 1)
        memcpy(small, pixels, (size_t)width * height * sizeof *small);
    else
        pixels_shrink(from, width, to, add_premultiplied, store_average, &blocks);
}
