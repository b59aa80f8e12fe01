/* Pictures in memory: makes them smaller, and JPEG files of them. The library and the program's
 * viewer, which sees nothing of the library's inside, both compile this room. */
#ifndef PIXELS_PIXELS_H
#define PIXELS_PIXELS_H

#include <stddef.h>
#include <stdint.h>

/* ---- smaller --------------------------------------------------------------------------------- */

/* Cuts the first from[0] columns and from[1] rows of a picture, of which a row has row_size pixels,
 * into to[0] x to[1] blocks of nearly the same size. For each block, row by row, `add` adds each of
 * its pixels to sums in *context, and `put` makes a pixel of the smaller picture of the sums over a
 * block of `count` pixels, and sets them to zero again. Callers name functions to be inlined. */
static inline __attribute__((always_inline)) void
pixels_shrink(const uint32_t from[2], size_t row_size, const uint32_t to[2],
              void (*add)(void *context, size_t pixel),
              void (*put)(void *context, size_t pixel, uint64_t count), void *context)
{
    size_t pixel = 0;
    for (uint64_t y = 0; y < to[1]; y++) {
        size_t rows[2] = {y * from[1] / to[1], (y + 1) * from[1] / to[1]};
        for (uint64_t x = 0; x < to[0]; x++) {
            size_t columns[2] = {x * from[0] / to[0], (x + 1) * from[0] / to[0]};
            for (size_t row = rows[0]; row < rows[1]; row++)
                for (size_t column = columns[0]; column < columns[1]; column++)
                    add(context, row * row_size + column);
            put(context, pixel++, (uint64_t)(rows[1] - rows[0]) * (columns[1] - columns[0]));
        }
    }
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

struct pixels_jpeg {
    const uint8_t *pixels; /* rows from the top, each directly behind the one above */
    uint32_t width, height;
    uint32_t channels;   /* 3: RGB, 4: RGBA, whose alpha is left out */
    int quality;         /* 1 to 100; above 90 colours keep their full resolution */
    const uint8_t *exif; /* content of the APP1 segment, at most 65533 bytes; NULL: none */
    size_t exif_size;
};
/* Returns the file by libjpeg-turbo, of *size bytes, which the caller frees; NULL without memory.
 */
void *pixels_write_jpeg(const struct pixels_jpeg *picture, size_t *size);

#endif
