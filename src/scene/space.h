/* Measures a training space for captures that come without one (internal to the module scene). */
#ifndef SCENE_SPACE_H
#define SCENE_SPACE_H

#include "scene/transforms.h"

/* The dataset position of the unit cube's middle, and training units per dataset unit. */
struct space {
    double center[3], scale;
};

/* Computes centre and scale from at least one training frame. The rule puts the focus point into
 * the unit cube, which the finest cascade covers, and the cameras at the mean distance 1.32 from
 * it. instant-ngp's defaults put the cameras of a Blender scene at this distance and are tuned for
 * it.
 *
 *   1. All cameras look one way (the mean of their unit directions is longer than 0.9) and depths
 *      are known: the centre lies at the harmonic mean of the nearest and the farthest depth. The
 *      point where nearly parallel axes meet is far less certain.
 *   2. The cameras have a focus point (scene_focus_point): it is the centre.
 *   3. The cameras look around and depths are known: the centre is their mean position, and the
 *      harmonic mean of the depths counts as the distance.
 *   4. Else the centre is the mean position, and the farthest camera is 0.33 away from it. */
vkn_status space_measure(const struct transforms_frame *const *frames, size_t count,
                         struct space *space);

/* Computes the side of the cube: the smallest power of two from 1 to 128 that contains the cameras
 * and 98 % of the content; 16 when no content is known. The content is the file's points or,
 * without points, the far corners of each frame's view frustum. The cube must contain the cameras
 * because each camera sees, beyond its target, past the cameras on the other side: the content
 * there is at least as far away as they are. */
vkn_status space_cube_side(const struct transforms *file,
                           const struct transforms_frame *const *frames, size_t count,
                           const struct space *space, uint32_t *aabb_scale);

/* Computes the 2 % quantile of the frames' near bounds, in dataset units: the depth of the nearest
 * content. 0: unknown. */
vkn_status space_nearest_depth(const struct transforms_frame *const *frames, size_t count,
                               double *near);

/* Sets the frame's depth bounds to the 1 % and 99 % quantiles of the distances of visible points,
 * so that single outliers do not matter. Sorts the distances. Keeps the bounds when there are no
 * distances or only equal ones. */
void space_set_bounds(struct transforms_frame *frame, double *distances, size_t count);

/* Returns whether a neighbour of cell `at` has a point at less than 0.9 of its distance. Each cell
 * of an image, row by row, has the distance of its nearest point; 0: it has none. */
bool space_is_hidden(const double *distances, uint32_t columns, uint32_t rows, uint32_t at);

/* Returns the quantile `share` (0..1) of at least one value. Sorts the values. */
double space_quantile(double *values, size_t count, double share);

#endif
