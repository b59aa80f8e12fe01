/* Declares the cameras around a scene and the renderer of their images. */
#ifndef MAKE_SCENE_VIEW_H
#define MAKE_SCENE_VIEW_H

#include "geometry.h"

/* Returns the horizontal field of view of a scene's cameras, in radians. */
double view_angle(const geometry_scene *scene);

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

/* Return training and test camera `index` of `count` of the outdoor scene: a ring around it that
 * looks across the ring, a third of the cameras down, a third slightly up and a third at the sky.
 */
view view_outdoors(int index, int count);
view view_outdoors_test(int index, int count);

/* Returns the gain of image `index`, 0.5 to 1.25: an automatic exposure that drifts. */
double view_gain(int index);

/* Renders size x size pixels into rgba, 4 * size * size bytes: sRGB, multiplied by the gain, with
 * straight alpha. */
void view_render(const geometry_scene *scene, const view *camera, double gain, int size,
                 unsigned char *rgba);

/* Renders the sky of the outdoor scene: column x of size is the azimuth 2 pi (x + 0.5) / size from
 * the x axis to the y axis, row y the angle pi / 2 (y + 0.5) / size from the zenith. */
void view_render_sky(int size, unsigned char *rgba);

#endif
