/* pixels: shrinks pictures in memory and encodes them as JPEG. The module is compiled into the
 * library and into the viewer, which cannot use the library's internals. */
#ifndef PIXELS_PIXELS_H
#define PIXELS_PIXELS_H

#include <stddef.h>
#include <stdint.h>

/* ---- shrinking ------------------------------------------------------------------------------- */

/* Shrinks a picture of from[0] x from[1] pixels, with row_size pixels from row to row, to to[0] x
 * to[1] pixels, each from a block of the picture. `add` adds the pixel with index `pixel` to sums
 * in *context; after each block, `put` sets the result's pixel with index `pixel` from the sums
 * over `count` pixels, and resets the sums. Both functions are inlined. */
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

/* A picture and the parameters of its JPEG file. */
struct pixels_jpeg {
    const uint8_t *pixels; /* [height][width][channels], top row first */
    uint32_t width, height;
    uint32_t channels;   /* 3: RGB; 4: RGBA, whose alpha is ignored */
    int quality;         /* 1 to 100; above 90 without chroma subsampling */
    const uint8_t *exif; /* content of the APP1 segment, at most 65533 bytes; NULL: none */
    size_t exif_size;
};
/* Returns a JPEG file of *size bytes, which the caller frees; NULL: out of memory. */
void *pixels_write_jpeg(const struct pixels_jpeg *picture, size_t *size);

#endif
