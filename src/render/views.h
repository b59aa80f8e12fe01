/* Which views to render, and their picture files. */
#ifndef RENDER_VIEWS_H
#define RENDER_VIEWS_H

#include <vknerf/run.h>

#include "scene/scene.h"

/* A pixel that a ray mostly passed through shows no surface and has no depth worth scaling to. */
#define RENDER_SOLID_OPACITY 0.5F

/* The cameras that `params` asks for, in its size. The caller frees views->cameras; their image
 * paths are the scene's. */
vkn_status render_views(const struct scene *scene, const struct vkn_render_params *params,
                        struct scene_camera_path *views);

/* The split that `split` names; the default is the first with views of test, val, train.
 * VKN_BAD_INPUT when it has none. */
vkn_status render_split(const struct scene *scene, enum vkn_split split,
                        enum scene_split_name *name);

/* A PNG file. Values are clamped to 0..1, 3 floats per pixel. */
vkn_status render_write_color(const char *path, const float *rgb, uint32_t width, uint32_t height);
/* The same with one float per pixel. */
vkn_status render_write_grey(const char *path, const float *values, uint32_t width,
                             uint32_t height);
/* Each value, clamped to 0..1, as 0..255. */
void render_to_bytes(const float *values, size_t count, uint8_t *bytes);
/* A NumPy file, float32 of shape (height, width). */
vkn_status render_write_npy(const char *path, const float *values, uint32_t width, uint32_t height);
/* Normals as colours 0.5 n + 0.5, 3 floats per pixel; black where the ray mostly passed through. */
void render_normal_colors(const struct vkn_picture *picture, float *rgb);
/* Mean absolute difference of the colours, from black over red to yellow at 0.25 and above. */
vkn_status render_write_error(const char *path, const float *a, const float *b, uint32_t width,
                              uint32_t height);

#endif
