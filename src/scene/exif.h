/* Reads EXIF data. scene.h includes this header for the module prepare. */
#ifndef SCENE_EXIF_H
#define SCENE_EXIF_H

#include <stddef.h>
#include <stdint.h>

#define EXIF_UPRIGHT 1u /* orientation of images that are stored upright */

/* EXIF data of a JPEG. */
struct exif {
    unsigned orientation;         /* 1 to 8; EXIF_UPRIGHT: none is given */
    double focal;                 /* mm; 0: unknown */
    size_t segment, segment_size; /* offset and size of APP1 including its marker; 0: none */
    size_t orientation_at;        /* offset of the orientation's low byte; the high byte is 0 */
};
/* Reads the EXIF data from the first EXIF_BYTES bytes of a JPEG. */
struct exif exif_read(const uint8_t *data, size_t size);
#define EXIF_BYTES ((size_t)128 << 10) /* number of leading bytes that contain the EXIF data */

/* Returns the EXIF orientation of a JPEG, of a PNG whose chunk eXIf precedes the pixels, or of a
 * TIFF. A TIFF must be complete. */
unsigned exif_orientation(const uint8_t *data, size_t size);

#endif
