#version 460
#extension GL_GOOGLE_include_directive : require
// Pass sum_sky, one ray per invocation: adds the colours of a step's pixels to the sums of the texels of
// the sky. Pixels that differ from the sky weigh less, so that the sums give the mode of the pixels in a
// direction, and so do rays on which the field is opaque.
//
//   buffer   shape                                                     access
//   RAYS     [ray]                                                     read
//   RESULTS  [ray] transmittance                                       read
//   CAMERAS  [camera], with scene.appearance                           read
//   STATE    ray count; [view] Appearance                              read
//   STATE    [texel][red, green, blue, weight] ErrorCell               read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) readonly buffer ResultBuffer { RayResult results[]; };

#include "rays/gradient_sums.glsl"
#include "shared/sky.glsl"
#include "volume/active_ray.glsl"
#include "volume/ray_appearance.glsl"
#include "volume/ray_weight.glsl"

const float OPAQUE = 0.05;        // weight of a ray on which the field is opaque
const float LEAST_WEIGHT = 0.001; // rays with less do not count

// Returns the difference between the photograph and the sky, as one of the ray's colour. With an
// appearance this is a step of gradient descent that is not too long.
vec3 difference_of(uint ray, vec3 sky)
{
    vec3 target = vec3(rays[ray].target[0], rays[ray].target[1], rays[ray].target[2]);
    if (APPEARANCE == 0u)
        return target - sky;
    Photograph taken = photograph_of_ray(ray, sky, 0.0);
    vec3 difference = target - taken.color;
    vec3 back = photograph_gradients(appearance_of(ray), IS_FULL, position_of(ray), taken, difference).scene;
    float square = dot(difference, difference);
    return square > 0.0 ? back / max(dot(back, back) / square, 1.0) : vec3(0.0);
}

// Returns the weight of a ray in a mode: the derivative of Geman and McClure's estimator, divided by the
// difference, so that means from the first steps are soon forgotten.
float weight_of(float difference, float tolerance)
{
    float ratio = difference / tolerance;
    return SKY_TOLERANCE / (tolerance * (1.0 + ratio * ratio) * (1.0 + ratio * ratio));
}

void main()
{
    uint ray = gl_GlobalInvocationID.x;
    if (!is_active_ray(ray) || rays[ray].target[3] != 1.0)
        return;
    vec3 direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    if (!is_skyward(direction))
        return;
    vec3 sky = sky_color(direction), difference = difference_of(ray, sky);
    float transmittance = results[ray].transmittance;
    float weight = weight_of(largest(difference), sky_tolerance(state.step)) *
                   max(transmittance * transmittance, OPAQUE) * gradient_weight(ray);
    if (!(weight > LEAST_WEIGHT))
        return;
    vec3 seen = clamp(sky + difference, 0.0, 1.0);
    for (uint level = 0; level < SKY_LEVELS; level++) {
        uint cell = 4u * sky_texel(level, direction);
        add_gradient(cell, weight * seen.r);
        add_gradient(cell + 1u, weight * seen.g);
        add_gradient(cell + 2u, weight * seen.b);
        add_gradient(cell + 3u, weight);
    }
}
