/* Inside of the scene room: image files in memory. */
#ifndef SCENE_IMAGE_H
#define SCENE_IMAGE_H

#include "scene/scene.h"

/* ---- formats: png.c, jpeg.c, webp.c, tiff.c, stb.c ---------------------------------------------
 */

/* The bytes of a picture's file and what its format says of them. */
struct image_file {
    const uint8_t *data;
    size_t size;
    bool whole;             /* false: these are the first bytes of the file */
    uint32_t width, height; /* as stored; 0: the header goes on behind the bytes */
    size_t min_size;        /* that a whole file of this size of pixels has */
    bool is_16_bit;         /* samples have 16 bits; set to false, they are rounded to 8 */
    bool out_of_memory;
    char problem[256]; /* what is wrong with the file */
};
/* Notes what is wrong, unless something is noted already; whether something is. */
__attribute__((format(printf, 2, 3))) void image_problem(struct image_file *file,
                                                         const char *format, ...);
bool image_failed(const struct image_file *file);

struct image_format {
    /* Whether a file that begins with these bytes, one at least, is of this format. */
    bool (*is)(const uint8_t *data, size_t size);
    /* Reads the size from the header. False: image_failed says why. */
    bool (*measure)(struct image_file *file);
    /* Decodes a whole file that was measured into RGBA of 8 or, where it is wide, 16 bits. Files
     * that are cut off or damaged fail. */
    bool (*decode)(struct image_file *file, void *rgba);
};
extern const struct image_format image_png, image_jpeg, image_webp, image_tiff, image_stb;

/* How names of pictures end. Where some files fit the first list, others are not looked at. */
#define IMAGE_ENDINGS 2
extern const char *const *const image_endings[IMAGE_ENDINGS];

/* ---- files ----------------------------------------------------------------------------------- */

struct image_header {
    uint32_t width, height;
    unsigned orientation; /* EXIF's, 1 to 8 (exif.h); the size is that of the pixels as stored */
};
/* Reads the header of a whole file, or of its first bytes: a width of 0 where it goes on behind
 * them. */
vkn_status image_read_header(const char *name, const uint8_t *data, size_t size, bool whole,
                             struct image_header *header);
/* Reads as much of a file as its size and orientation take. */
vkn_status image_measure(const char *path, struct image_header *header);
/* Turns pixels of `size` bytes each as EXIF's orientation says: into fresh memory, NULL without.
 * The sides change places for orientations from 5 on. */
uint8_t *image_apply_orientation(const uint8_t *stored, size_t size, unsigned orientation,
                                 uint32_t *width, uint32_t *height);
#define IMAGE_FIRST_TRANSPOSED 5u /* the first orientation in which sides change places */

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

/* ---- writing PNG ----------------------------------------------------------------------------- */

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
