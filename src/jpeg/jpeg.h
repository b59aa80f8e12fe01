/* JPEG files in memory, written by libjpeg-turbo. The library and the program's viewer, which sees
 * nothing of the library's inside, both compile this room. */
#ifndef JPEG_JPEG_H
#define JPEG_JPEG_H

#include <stddef.h>
#include <stdint.h>

struct jpeg_picture {
    const uint8_t *pixels; /* rows from the top, each directly behind the one above */
    uint32_t width, height;
    uint32_t channels;   /* 3: RGB, 4: RGBA, whose alpha is left out */
    int quality;         /* 1 to 100; above 90 colours keep their full resolution */
    const uint8_t *exif; /* content of the APP1 segment, at most 65533 bytes; NULL: none */
    size_t exif_size;
};
/* Returns the file, of *size bytes, which the caller frees; NULL without memory. */
void *jpeg_write(const struct jpeg_picture *picture, size_t *size);

#endif
