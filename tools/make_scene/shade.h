/* Light: one warm sun with soft shadows, sky and ground light with ambient occlusion, a
 * block of coloured glass where the scene has it. */
#ifndef MAKE_SCENE_SHADE_H
#define MAKE_SCENE_SHADE_H

#include "geometry.h"

/* What one ray brings: sRGB-encoded colour already multiplied by alpha, and alpha. */
typedef struct radiance {
    vec3 color;
    double alpha;
} radiance;

/* Traces the ray from o in the unit direction d. */
radiance shade_ray(const geometry_scene *scene, vec3 o, vec3 d);

#endif
