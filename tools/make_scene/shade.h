/* Declares the renderer of a ray: one sun with soft shadows, light from sky and ground with ambient
 * occlusion, the coloured glass of the park, the table and the walls of the room. */
#ifndef MAKE_SCENE_SHADE_H
#define MAKE_SCENE_SHADE_H

#include "geometry.h"

/* Result of a ray: sRGB-encoded colour premultiplied by alpha, and alpha. */
typedef struct radiance {
    vec3 color;
    double alpha;
} radiance;

/* Returns the radiance of the ray from o in unit direction d. */
radiance shade_ray(const geometry_scene *scene, vec3 o, vec3 d);

#endif
