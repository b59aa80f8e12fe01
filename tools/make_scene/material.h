/* Declares the materials of the scene's parts. */
#ifndef MAKE_SCENE_MATERIAL_H
#define MAKE_SCENE_MATERIAL_H

#include "geometry.h"

typedef struct material {
    vec3 albedo;        /* linear light */
    vec3 specular;      /* colour and strength of the highlight */
    unsigned shininess; /* Blinn-Phong exponent */
    double glow;        /* share of the albedo that is emitted */
} material;

/* Returns the material of an opaque part at surface point p with unit normal n. */
material material_at(geometry_part part, vec3 p, vec3 n);

#endif
