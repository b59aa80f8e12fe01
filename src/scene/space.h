/* Inside of the scene room: a training space for captures that come without one. */
#ifndef SCENE_SPACE_H
#define SCENE_SPACE_H

#include "scene/transforms.h"

/* What goes to the middle of the unit cube, in the dataset's units, and dataset units to training
 * units. */
struct space {
    double center[3], scale;
};

/* Centre and scale from training frames, of which there is at least one. A rule that puts what the
 * cameras look at into the unit cube, in the finest cascade, and the cameras at the mean distance
 * 1.32 from it: where instant-ngp's defaults put the cameras of a Blender scene, and what they were
 * tuned for.
 *
 * 1. Cameras that all look one way (mean of their unit directions longer than 0.9) while the depths
 *    of what they see are known: the middle of the disparities in view, at the harmonic mean of the
 *    nearest and the farthest depth. The point where nearly parallel axes meet is far less certain.
 * 2. Cameras that look at one point (scene_focus_point): that point.
 * 3. Cameras that look around, depths known: their mean position, and the harmonic mean of the
 * depths counts as the distance.
 * 4. Else the mean position, and the farthest camera 0.33 away from it. */
vkn_status space_measure(const struct transforms_frame *const *frames, size_t count,
                         struct space *space);

/* Side of the cube: the power of two from 1 to 128 that holds the cameras and 98 % of the content,
 * which are the file's points or, without, the corners of what each frame sees between its bounds.
 * Without either 16. The cameras have to be inside because behind what one of them looks at, others
 * stand: what is seen past it is no nearer than those. */
vkn_status space_cube_side(const struct transforms *file,
                           const struct transforms_frame *const *frames, size_t count,
                           const struct space *space, uint32_t *aabb_scale);

/* Depth of the nearest content in dataset units, 0 when not known: of 98 % of the frames all
 * content begins there or farther. */
vkn_status space_nearest_depth(const struct transforms_frame *const *frames, size_t count,
                               double *near);

/* Sets the frame's bounds from distances of what it sees, which are sorted: of a hundred points in
 * view one may be wrongly near, and one wrongly far. Too few or equal ones leave them. */
void space_set_bounds(struct transforms_frame *frame, double *distances, size_t count);

/* The value that `share` of the values do not exceed; sorts them. At least one value. */
double space_quantile(double *values, size_t count, double share);

#endif
