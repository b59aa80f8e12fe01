/* Declares the cameras around a scene and the renderer of their images. */
#ifndef MAKE_SCENE_VIEW_H
#define MAKE_SCENE_VIEW_H

#include "geometry.h"

/* Horizontal field of view of every camera, in radians. */
#define VIEW_ANGLE_X 0.6911

/* Camera to world, OpenGL convention: the camera looks along -back, and up is up in the image. */
typedef struct view {
    vec3 right, up, back, position;
} view;

/* Returns training camera `index` of `count`, evenly distributed on the upper hemisphere. */
view view_train(int index, int count);

/* Returns the same for the moving scene, with one camera per time: consecutive cameras are far
 * apart, and their height does not depend on the time. */
view view_moving(int index, int count);

/* Returns test camera `index` of `count`: one rising turn around the scene. */
view view_test(int index, int count);

/* Returns the gain of image `index`, 0.5 to 1.25: an automatic exposure that drifts. */
double view_gain(int index);

/* Renders size x size pixels into rgba, 4 * size * size bytes: sRGB, multiplied by the gain, with
 * straight alpha. */
void view_render(const geometry_scene *scene, const view *camera, double gain, int size,
                 unsigned char *rgba);

#endif
