/* Premultiplied averages of pixel blocks. */
#include <string.h>

#include "scene/image.h"

/* sum / count to the nearest integer, halves up. */
static uint32_t rounded(uint64_t sum, uint64_t count)
{
    return (uint32_t)((2 * sum + count) / (2 * count));
}

/* The mean of `count` pixels from sums by channel, of a block of `area` pixels. */
static uint32_t mean(const uint64_t sums[4], uint64_t weight, uint64_t count, uint64_t area)
{
    if (2 * count < area)
        return SCENE_IGNORED;
    return rounded(sums[0], weight * count) | rounded(sums[1], weight * count) << 8 |
           rounded(sums[2], weight * count) << 16 | rounded(sums[3], count) << 24;
}

/* One block of K x K pixels that starts at `block`. Colours are weighted with alpha in sRGB space,
 * as images are composited there; the sums are exact, so the only rounding is the last one. */
static uint32_t average(const uint8_t *block, const uint8_t *used, size_t width, uint32_t k)
{
    uint64_t sums[4] = {0}, count = 0;
    for (uint32_t y = 0; y < k; y++) {
        const uint8_t *p = block + 4 * y * width;
        for (uint32_t x = 0; x < k; x++, p += 4) {
            if (used != NULL && used[y * width + x] == 0)
                continue;
            uint64_t weight = p[3];
            sums[0] += p[0] * weight;
            sums[1] += p[1] * weight;
            sums[2] += p[2] * weight;
            sums[3] += weight;
            count++;
        }
    }
    return mean(sums, 255, count, (uint64_t)k * k);
}

bool image_downscale(const uint8_t *rgba, const uint8_t *used, uint32_t width, uint32_t height,
                     uint32_t k, uint32_t *pixels)
{
    bool has_alpha = false;
    for (uint32_t y = 0; y < height / k; y++) {
        for (uint32_t x = 0; x < width / k; x++) {
            size_t first = (size_t)y * k * width + (size_t)x * k;
            uint32_t pixel =
                average(rgba + 4 * first, used != NULL ? used + first : NULL, width, k);
            has_alpha = has_alpha || (pixel >> 24 < 255 && pixel != SCENE_IGNORED);
            *pixels++ = pixel;
        }
    }
    return has_alpha;
}

/* One block of pixels that are premultiplied already. */
static uint32_t average_pixels(const uint32_t *block, size_t row_size, uint32_t k)
{
    uint64_t sums[4] = {0}, count = 0;
    for (uint32_t y = 0; y < k; y++) {
        for (uint32_t x = 0; x < k; x++) {
            uint32_t pixel = block[y * row_size + x];
            if (pixel == SCENE_IGNORED)
                continue;
            for (uint32_t c = 0; c < 4; c++)
                sums[c] += pixel >> (8 * c) & 255;
            count++;
        }
    }
    return mean(sums, 1, count, (uint64_t)k * k);
}

void image_shrink(const uint32_t *pixels, uint32_t width, uint32_t height, uint32_t k,
                  uint32_t *small)
{
    if (k == 1) {
        memcpy(small, pixels, (size_t)width * height * sizeof *small);
        return;
    }
    for (uint32_t y = 0; y < height / k; y++)
        for (uint32_t x = 0; x < width / k; x++)
            *small++ = average_pixels(pixels + (size_t)y * k * width + (size_t)x * k, width, k);
}
