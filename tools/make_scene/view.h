/* Cameras around the scene and the pictures that they take. */
#ifndef MAKE_SCENE_VIEW_H
#define MAKE_SCENE_VIEW_H

#include "geometry.h"

/* Horizontal field of view, radians, of every camera. */
#define VIEW_ANGLE_X 0.6911

/* Camera to world, OpenGL convention: the camera looks along -back, up is up in the picture. */
typedef struct view {
    vec3 right, up, back, position;
} view;

/* Training camera index of count: evenly spread over the upper hemisphere. */
view view_train(int index, int count);

/* The same, but far from the camera before it, and no height tells the index: one camera for each
 * moment of a scene that moves. */
view view_moving(int index, int count);

/* Test camera index of count: one turn around the scene while rising. */
view view_test(int index, int count);

/* Renders size x size pixels of straight-alpha sRGB RGBA into rgba, 4 * size * size bytes. */
void view_render(const geometry_scene *scene, const view *camera, int size, unsigned char *rgba);

#endif
