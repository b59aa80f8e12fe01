/* What a camera writes into a picture beside the pixels; a part of scene.h, for the room prepare
 * too. */
#ifndef SCENE_EXIF_H
#define SCENE_EXIF_H

#include <stddef.h>
#include <stdint.h>

#define EXIF_UPRIGHT 1u /* the orientation of pictures that are stored as they are looked at */

/* EXIF in the first bytes of a JPEG. */
struct exif {
    unsigned orientation;         /* 1 to 8; EXIF_UPRIGHT without */
    double focal;                 /* mm; 0: not known */
    size_t segment, segment_size; /* where APP1 is, its marker included; 0: there is none */
    size_t orientation_at;        /* where the value's byte is that is not zero */
};
struct exif exif_read(const uint8_t *data, size_t size);
#define EXIF_BYTES ((size_t)128 << 10) /* of a file, which hold it */

/* The orientation of a JPEG, of a PNG whose chunk eXIf stands before the pixels, or of a TIFF, all
 * of which has to be there. */
unsigned exif_orientation(const uint8_t *data, size_t size);

#endif
