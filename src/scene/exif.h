/* Reads EXIF data. scene.h includes this header for the module prepare. */
#ifndef SCENE_EXIF_H
#define SCENE_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIF_UPRIGHT 1u /* orientation of images that are stored upright */

/* EXIF data of an image. The offsets are those of a JPEG. */
struct exif {
    unsigned orientation; /* 1 to 8; EXIF_UPRIGHT: none is given */
    double focal;         /* mm; 0: unknown */
    /* Exposure time (s), ISO speed, f-number; 0: unknown. */
    double time, iso, aperture;
    size_t segment, segment_size; /* offset and size of APP1 including its marker; 0: none */
    size_t orientation_at;        /* offset of the orientation's low byte; the high byte is 0 */
};
/* Reads the EXIF data from the first EXIF_BYTES bytes of a JPEG. */
struct exif exif_read(const uint8_t *data, size_t size);
#define EXIF_BYTES ((size_t)128 << 10) /* number of leading bytes that contain the EXIF data */

/* Returns the EXIF data of a JPEG, of a PNG whose chunk eXIf precedes the pixels, or of a TIFF. A
 * TIFF must be complete. */
struct exif exif_of_image(const uint8_t *data, size_t size);
/* Computes the exposure in stops, log2(time ISO / aperture^2): how bright the image is of the same
 * light. An unknown f-number counts as 1. Returns false without time or ISO speed. */
bool exif_exposure(const struct exif *exif, float *exposure);

#endif
