/* Inside of the render room: pictures as bytes and numbers. */
#ifndef RENDER_WRITE_VIEW_H
#define RENDER_WRITE_VIEW_H

#include <vknerf/renderer.h>

#include "base/base.h"

/* A pixel that a ray mostly passed through shows no surface and has no depth worth scaling to. */
#define RENDER_SOLID_OPACITY 0.5F

/* Each value, clamped to 0..1, as 0..255. */
void render_to_bytes(const float *values, size_t count, uint8_t *bytes);
/* Colours that no background is in, and the opacity as straight alpha, 4 to a pixel. */
void render_rgba_bytes(const struct vkn_picture *picture, uint8_t *bytes);
/* A NumPy file, float32 of shape (height, width). */
vkn_status render_write_npy(const char *path, const float *values, uint32_t width, uint32_t height);
/* Normals as colours 0.5 n + 0.5, 3 floats per pixel; black where the ray mostly passed through.
 * Fresh memory that the caller frees; NULL on no memory. */
float *render_normal_colors(const struct vkn_picture *picture);

#endif
