/* Decodes and encodes image files in memory (internal to the module scene). */
#ifndef SCENE_IMAGE_H
#define SCENE_IMAGE_H

#include "scene/scene.h"

/* ---- formats: png.c, jpeg.c, webp.c, tiff.c, stb.c ------------------------------------------- */

/* An image file in memory, and the content of its header. */
struct image_file {
    const uint8_t *data;
    size_t size;
    bool is_whole;          /* false: only the first bytes of the file are present */
    uint32_t width, height; /* as stored; 0: the header is not complete yet */
    size_t min_size; /* smallest possible size in bytes of a complete file of this many pixels */
    bool is_16_bit;  /* samples have 16 bits; set to false before decoding: rounded to 8 bits */
    bool out_of_memory;
    char problem[256]; /* error message; "": none */
};
/* Records an error message if there is none yet; image_failed returns whether decoding failed. */
__attribute__((format(__printf__, 2, 3))) void image_problem(struct image_file *file,
                                                             const char *format, ...);
bool image_failed(const struct image_file *file);

/* The functions of an image format. */
struct image_format {
    /* Returns whether a file that begins with these bytes (at least one) has this format. */
    bool (*is)(const uint8_t *data, size_t size);
    /* Reads the size from the header. Returns false after an error (image_failed). */
    bool (*measure)(struct image_file *file);
    /* Decodes a complete file, after `measure`, to RGBA of 8 bits or, when `is_16_bit` is set, 16
     * bits. Returns false for truncated or damaged files. */
    bool (*decode)(struct image_file *file, void *rgba);
};
extern const struct image_format image_png, image_jpeg, image_webp, image_tiff, image_stb;

/* Lists of file name extensions. The second list is used only when no file has one of the first. */
#define IMAGE_ENDINGS 2
extern const char *const *const image_endings[IMAGE_ENDINGS];

/* ---- files ----------------------------------------------------------------------------------- */

/* Size and EXIF data from the header of an image file. */
struct image_header {
    uint32_t width, height;
    struct exif exif; /* the orientation is not applied to width and height */
};
/* Reads the header from a complete file or from its first bytes. The width is 0 when the header
 * does not end within these bytes. */
vkn_status image_read_header(const char *name, const uint8_t *data, size_t size, bool whole,
                             struct image_header *header);
/* Reads the header of an image file, from its first bytes if they suffice. */
vkn_status image_measure(const char *path, struct image_header *header);
/* Returns the upright copy of pixels of `size` bytes each, in fresh memory; NULL: out of memory.
 * Swaps *width and *height for orientations from 5 on. */
uint8_t *image_apply_orientation(const uint8_t *stored, size_t size, unsigned orientation,
                                 uint32_t *width, uint32_t *height);
#define IMAGE_FIRST_TRANSPOSED 5u /* first orientation that swaps width and height */

/* A pixel of a mask: the largest of red, green and blue, and alpha; 0..255 or 0..65535. */
struct image_mask {
    uint16_t value, alpha;
};
/* Reads a mask image. The caller frees *pixels. */
vkn_status image_read_mask(const char *path, struct image_mask **pixels, uint32_t *width,
                           uint32_t *height);

/* Decodes an image file in memory like scene_image_read; `name`: its name for messages. */
vkn_status image_decode(const char *name, const uint8_t *data, size_t size, uint8_t **rgba,
                        uint32_t *width, uint32_t *height);

/* ---- writing PNG ----------------------------------------------------------------------------- */

/* An image to encode as PNG. */
struct image_png {
    const void *pixels; /* rows from the top, of 8-bit or 16-bit samples */
    uint32_t width, height;
    uint32_t channels; /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA */
    uint32_t bits;     /* 8 or 16 */
};
/* Appends the file's bytes to *text. Returns false when out of memory. */
bool image_png_encode(const struct image_png *image, struct base_text *text);

/* Averages k x k blocks of straight-alpha RGBA into premultiplied pixels, width / k by height / k
 * (rounding down; remaining rows and columns are dropped); each channel is rounded to nearest once
 * at the end. Averages the pixels whose byte in `used` (width x height bytes; NULL: all used) is 1.
 * A block with fewer than half of its pixels used becomes SCENE_IGNORED. Returns whether any other
 * block has alpha < 255. */
bool image_downscale(const uint8_t *rgba, const uint8_t *used, uint32_t width, uint32_t height,
                     uint32_t k, uint32_t *pixels);
/* Like image_downscale for premultiplied pixels; SCENE_IGNORED pixels are not used. */
void image_shrink(const uint32_t *pixels, uint32_t width, uint32_t height, uint32_t k,
                  uint32_t *small);

#endif
