/* Finds the positions of points that images show (internal to the module scene). */
#ifndef SCENE_TRIANGULATE_H
#define SCENE_TRIANGULATE_H

#include "scene/transforms.h"

/* An image with its lens and its pose, in the dataset's units. */
struct triangulate_view {
    struct scene_camera camera; /* its lens; the pose is not used */
    double focal[2], center[2]; /* pixels; in double precision */
    double pose[12];            /* camera to world, as in struct transforms_frame */
};
/* Makes the view of a frame whose lens has a size. */
struct triangulate_view triangulate_view(const struct transforms_frame *frame);

/* A view in which a point was found at a pixel. */
struct triangulate_observation {
    const struct triangulate_view *view;
    double pixel[2];
};
/* Moves a point to where the sum of its squared reprojection errors is smallest, by damped
 * Gauss-Newton steps from its position, unless its mean reprojection error would rise. Computes
 * this error, in pixels, as COLMAP's points3D have it. Returns false, with the position unchanged,
 * when a view does not project the point at its first position. */
bool triangulate(const struct triangulate_observation *observations, size_t count,
                 double position[3], double *error);

#endif
