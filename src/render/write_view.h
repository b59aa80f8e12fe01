/* Converts pictures to bytes, normals to colours, and writes NumPy files. Private to render. */
#ifndef RENDER_WRITE_VIEW_H
#define RENDER_WRITE_VIEW_H

#include <vknerf/renderer.h>

#include "base/base.h"

/* Pixels of a lower opacity show no surface: their depth is ignored and their normal black. */
#define RENDER_SOLID_OPACITY 0.5F

/* Converts values, clamped to 0..1, to bytes 0..255. */
void render_to_bytes(const float *values, size_t count, uint8_t *bytes);
/* Converts straight colours and opacity to RGBA with straight alpha, 4 bytes per pixel. */
void render_rgba_bytes(const struct vkn_picture *picture, uint8_t *bytes);
/* Writes a NumPy file, float32 of shape (height, width). */
vkn_status render_write_npy(const char *path, const float *values, uint32_t width, uint32_t height);
/* Returns normals as colours 0.5 n + 0.5, 3 floats per pixel, black below RENDER_SOLID_OPACITY. The
 * caller frees the array. NULL when out of memory. */
float *render_normal_colors(const struct vkn_picture *picture);

#endif
