/* Defines 3-vectors in double precision. All functions use + - * / and sqrt in a fixed order, which
 * IEEE 754 rounds the same way everywhere, so that images are the same byte for byte. */
#ifndef MAKE_SCENE_VEC_H
#define MAKE_SCENE_VEC_H

#include <math.h>

typedef struct vec3 {
    double x, y, z;
} vec3;

/* clang-format off */
static inline vec3 vec(double x, double y, double z) { return (vec3){x, y, z}; }
static inline vec3 vec_add(vec3 a, vec3 b) { return vec(a.x + b.x, a.y + b.y, a.z + b.z); }
static inline vec3 vec_sub(vec3 a, vec3 b) { return vec(a.x - b.x, a.y - b.y, a.z - b.z); }
static inline vec3 vec_mul(vec3 a, vec3 b) { return vec(a.x * b.x, a.y * b.y, a.z * b.z); }
static inline vec3 vec_scale(vec3 a, double s) { return vec(a.x * s, a.y * s, a.z * s); }
static inline double vec_dot(vec3 a, vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline double vec_length(vec3 a) { return sqrt(vec_dot(a, a)); }
static inline vec3 vec_normalize(vec3 a) { return vec_scale(a, 1.0 / vec_length(a)); }
static inline vec3 vec_along(vec3 o, vec3 d, double t) { return vec_add(o, vec_scale(d, t)); }
/* clang-format on */

static inline vec3 vec_cross(vec3 a, vec3 b)
{
    return vec(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}

/* clang-format off */
static inline double min2(double a, double b) { return a < b ? a : b; }
static inline double max2(double a, double b) { return a > b ? a : b; }
static inline double clamp(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }
static inline double mix(double a, double b, double t) { return a + (b - a) * t; }
/* clang-format on */

static inline vec3 vec_mix(vec3 a, vec3 b, double t)
{
    return vec(mix(a.x, b.x, t), mix(a.y, b.y, t), mix(a.z, b.z, t));
}

#endif
