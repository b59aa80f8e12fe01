/* Premultiplied averages of pixel blocks. */
#include <string.h>

#include "scene/image.h"

/* sum / count to the nearest integer, halves up. */
static uint32_t rounded(uint64_t sum, uint64_t count)
{
    return (uint32_t)((2 * sum + count) / (2 * count));
}

/* One block of K x K pixels that starts at `block`. Colours are weighted with alpha in sRGB space,
 * as images are composited there; the sums are exact, so the only rounding is the last one. */
static uint32_t average(const uint8_t *block, size_t row_size, uint32_t k)
{
    uint64_t red = 0, green = 0, blue = 0, alpha = 0;
    for (uint32_t y = 0; y < k; y++) {
        const uint8_t *p = block + y * row_size;
        for (uint32_t x = 0; x < k; x++, p += 4) {
            uint64_t weight = p[3];
            red += p[0] * weight;
            green += p[1] * weight;
            blue += p[2] * weight;
            alpha += weight;
        }
    }
    uint64_t area = (uint64_t)k * k;
    return rounded(red, 255 * area) | rounded(green, 255 * area) << 8 |
           rounded(blue, 255 * area) << 16 | rounded(alpha, area) << 24;
}

bool image_downscale(const uint8_t *rgba, uint32_t width, uint32_t height, uint32_t k,
                     uint32_t *pixels)
{
    size_t row_size = (size_t)width * 4;
    bool has_alpha = false;
    for (uint32_t y = 0; y < height / k; y++) {
        const uint8_t *row = rgba + (size_t)y * k * row_size;
        for (uint32_t x = 0; x < width / k; x++) {
            uint32_t pixel = average(row + (size_t)x * k * 4, row_size, k);
            has_alpha = has_alpha || pixel >> 24 < 255;
            *pixels++ = pixel;
        }
    }
    return has_alpha;
}

/* One block of pixels that are premultiplied already. */
static uint32_t average_pixels(const uint32_t *block, size_t row_size, uint32_t k)
{
    uint64_t sums[4] = {0};
    for (uint32_t y = 0; y < k; y++)
        for (uint32_t x = 0; x < k; x++)
            for (uint32_t c = 0; c < 4; c++)
                sums[c] += block[y * row_size + x] >> (8 * c) & 255;
    uint32_t pixel = 0;
    for (uint32_t c = 0; c < 4; c++)
        pixel |= rounded(sums[c], (uint64_t)k * k) << (8 * c);
    return pixel;
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
