#include "sky.h"

#include "exact.h"

/* The sun looks larger than the real one, so that small images show it. */
#define SUN_COSINE  0.9945 /* of 6 degrees */
#define HALO_COSINE 0.97

static double smooth(double lo, double hi, double x)
{
    double t = clamp((x - lo) / (hi - lo), 0.0, 1.0);
    return t * t * (3.0 - 2.0 * t);
}

/* Returns the share of a flat layer of clouds that hides the sky, fading to the horizon. */
static double clouds(vec3 d)
{
    double x = d.x / (d.z + 0.35), y = d.y / (d.z + 0.35);
    double wave = exact_sin(2.3 * x + 1.1 * exact_sin(1.7 * y + 0.4)) +
                  exact_sin(2.9 * y - 0.8 * exact_sin(2.1 * x)) +
                  0.5 * exact_sin(5.3 * x - 4.1 * y + 1.0);
    return 0.9 * smooth(0.5, 1.5, wave) * smooth(0.02, 0.25, d.z);
}

vec3 sky_light(vec3 d)
{
    const vec3 zenith = {0.06, 0.20, 0.55}, haze = {0.62, 0.70, 0.80}, white = {0.90, 0.90, 0.92};
    const vec3 sun = SKY_SUN_DIRECTION;
    double height = max2(d.z, 0.0), cosine = vec_dot(d, sun);
    vec3 color = vec_mix(haze, zenith, sqrt(height));
    color = vec_mix(color, white, clouds(vec(d.x, d.y, height)));
    color = vec_mix(color, vec(1.0, 0.93, 0.75), 0.5 * smooth(HALO_COSINE, SUN_COSINE, cosine));
    return vec_mix(color, vec(1.0, 1.0, 0.95), smooth(SUN_COSINE - 0.002, SUN_COSINE, cosine));
}
