/* Inside of the scene room: image files in memory. */
#ifndef SCENE_IMAGE_H
#define SCENE_IMAGE_H

#include "scene/scene.h"

enum image_kind { IMAGE_UNKNOWN, IMAGE_PNG, IMAGE_JPEG };

struct image_header {
    enum image_kind kind;
    uint32_t width, height;
    uint64_t decoded_size; /* bytes that the file's compressed data must make; 0 when unknown */
    unsigned orientation;  /* EXIF's, 1 to 8 (exif.h); the size is that of the pixels as stored */
};

/* Reads the header from the first `size` bytes of a file. Returns NULL, or what is wrong with it
 * ("truncated PNG"). When the bytes end before the size is known: NULL with width 0. */
const char *image_header_read(const uint8_t *data, size_t size, struct image_header *header);
/* Walks a whole file: every part there, checksums right, the end mark present. stb decodes files
 * that were cut off into half-grey pictures; this is what tells. */
const char *image_check(const uint8_t *data, size_t size, const struct image_header *header);
uint32_t image_crc32(const uint8_t *data, size_t size);

/* Reads as much of a file as its size and orientation take. */
vkn_status image_measure(const char *path, struct image_header *header);
/* Turns pixels of `size` bytes each as EXIF's orientation says: into fresh memory, NULL without.
 * The sides change places for orientations from 5 on. */
uint8_t *image_turn(const uint8_t *stored, size_t size, unsigned orientation, uint32_t *width,
                    uint32_t *height);
#define IMAGE_ON_ITS_SIDE 5u /* the first orientation in which sides change places */

/* What a mask is read from: of each pixel the largest of red, green and blue, and alpha, in full
 * precision. */
struct image_mask {
    uint16_t value, alpha;
};
/* The caller frees *pixels. */
vkn_status image_read_mask(const char *path, struct image_mask **pixels, uint32_t *width,
                           uint32_t *height);

/* scene_image_read from memory; `name` stands for the file in messages. */
vkn_status image_decode(const char *name, const uint8_t *data, size_t size, uint8_t **rgba,
                        uint32_t *width, uint32_t *height);

/* ---- stb.c: what stb does not say of itself -------------------------------------------------- */

/* Set where this thread's decoding failed for want of memory, which looks like a broken file. */
extern _Thread_local bool stb_short_of_memory;
/* stb's JPEG of RGBA without its alpha; it allocates nothing. False for sizes that are none. */
typedef void (*stb_write)(void *context, void *data, int size);
bool stb_write_jpeg(stb_write write, void *context, int width, int height, const uint8_t *rgba,
                    int quality);

/* ---- png.c: libpng's writer ------------------------------------------------------------------ */

struct image_png {
    const void *pixels; /* rows from the top, of 8-bit or 16-bit numbers */
    uint32_t width, height;
    uint32_t channels; /* 1 grey, 2 with alpha, 3 rgb, 4 with alpha */
    uint32_t bits;     /* 8 or 16 */
};
/* Appends the file's bytes to *text; false on no memory. */
bool image_png_encode(const struct image_png *image, struct base_text *text);

/* Averages K x K blocks of straight-alpha RGBA into premultiplied pixels, width / K by height / K
 * (rounding down; the rest is dropped), each channel rounded to nearest once at the end. Of `used`
 * (width x height bytes; NULL: all 1) the pixels with 1 are averaged; a block of which they are
 * less than half becomes SCENE_IGNORED. Returns whether any other result has alpha < 255. */
bool image_downscale(const uint8_t *rgba, const uint8_t *used, uint32_t width, uint32_t height,
                     uint32_t k, uint32_t *pixels);
/* The same of premultiplied pixels, as image_downscale makes them; SCENE_IGNORED ones are not used.
 */
void image_shrink(const uint32_t *pixels, uint32_t width, uint32_t height, uint32_t k,
                  uint32_t *small);

#endif
