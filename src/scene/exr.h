/* Reads EXR files of one channel (internal to the module scene). */
#ifndef SCENE_EXR_H
#define SCENE_EXR_H

#include "base/base.h"

/* Returns whether a file that begins with these bytes is an EXR file. */
bool exr_is(const uint8_t *data, size_t size);
/* Parse or read a file of one channel of f16 or f32, in scan lines without compression or with ZIP
 * or ZIPS: values[row][column], rows from the top. Other files, and files with a side of more than
 * SCENE_MAX_IMAGE_SIZE pixels, give VKN_BAD_INPUT. `name` is the name of the file for messages. The
 * caller frees *values. */
vkn_status exr_parse(const char *name, const uint8_t *data, size_t size, float **values,
                     uint32_t *width, uint32_t *height);
vkn_status exr_read(const char *path, float **values, uint32_t *width, uint32_t *height);

#endif
