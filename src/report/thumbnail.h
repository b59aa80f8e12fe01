/* Scales pictures down to thumbnails. */
#ifndef REPORT_THUMBNAIL_H
#define REPORT_THUMBNAIL_H

#include "base/base.h"

struct thumbnail {
    uint8_t *png; /* a PNG file, owned; 3 channels when it was scaled */
    size_t size;
    uint32_t width, height;
};

/* Reads a PNG or JPEG file, averaged down so that no side is longer than `edge` pixels. A PNG file
 * that fits is unchanged. Errors name the file. The caller frees thumbnail->png. */
vkn_status thumbnail_read(const char *path, uint32_t edge, struct thumbnail *thumbnail);

#endif
