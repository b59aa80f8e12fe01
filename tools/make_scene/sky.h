/* Declares the sky of the outdoor scene. */
#ifndef MAKE_SCENE_SKY_H
#define MAKE_SCENE_SKY_H

#include "vec.h"

/* Has exact unit length without a rounded square root. */
#define SKY_SUN_DIRECTION {1.0 / 3.0, -2.0 / 3.0, 2.0 / 3.0}

/* Returns the colour of the sky in unit direction d, z up, as linear light up to 1: blue with
 * clouds and the sun; below the horizon the haze. */
vec3 sky_light(vec3 d);

#endif
