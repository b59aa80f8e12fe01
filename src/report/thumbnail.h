/* Pictures small enough to be kept in numbers. */
#ifndef REPORT_THUMBNAIL_H
#define REPORT_THUMBNAIL_H

#include "base/base.h"

struct thumbnail {
    uint8_t *png; /* a PNG file with 3 channels (or as it was), owned */
    size_t size;
    uint32_t width, height;
};

/* The picture at `path` averaged down until no side is longer than `edge` pixels; a PNG file that
 * fits is taken as it is. Fails naming the file when it is no PNG or JPEG. The caller frees
 * thumbnail->png. */
vkn_status thumbnail_read(const char *path, uint32_t edge, struct thumbnail *thumbnail);

#endif
