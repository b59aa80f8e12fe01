#version 460
#extension GL_GOOGLE_include_directive : require
// Pass sum_sky, one ray per invocation: adds what the rays of a step saw behind the field to the sums of
// the sky's texels. That is the sky's colour along the ray, corrected by the difference between the
// photograph and the ray's pixel. Rays count by the square of their transmittance.
//
//   buffer   shape                                                     access
//   RAYS     [ray]                                                     read
//   RESULTS  [ray] colour, transmittance                               read
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

const float LEAST_TRANSMITTANCE = 0.03; // rays with less do not count

// Returns the difference between the photograph and the ray's pixel as one of the ray's colour. With an
// appearance this is a step of gradient descent that is not too long.
vec3 difference_of(uint ray, vec3 color)
{
    vec3 target = vec3(rays[ray].target[0], rays[ray].target[1], rays[ray].target[2]);
    if (APPEARANCE == 0u)
        return target - color;
    Photograph taken = photograph_of_ray(ray, color, 0.0);
    vec3 difference = target - taken.color;
    vec3 back = photograph_gradients(appearance_of(ray), IS_FULL, position_of(ray), taken, difference).scene;
    float square = dot(difference, difference);
    return square > 0.0 ? back / max(dot(back, back) / square, 1.0) : vec3(0.0);
}

void main()
{
    uint ray = gl_GlobalInvocationID.x;
    if (!is_active_ray(ray))
        return;
    float transmittance = results[ray].transmittance;
    if (!(transmittance > LEAST_TRANSMITTANCE) || !shows_sky(ray))
        return;
    vec3 color = vec3(results[ray].color[0], results[ray].color[1], results[ray].color[2]);
    vec3 sky = background_of(ray);
    vec3 seen = clamp(sky + difference_of(ray, color + transmittance * sky), 0.0, 1.0);
    float weight = transmittance * transmittance * gradient_weight(ray);
    vec3 direction = vec3(rays[ray].direction[0], rays[ray].direction[1], rays[ray].direction[2]);
    for (uint level = 0; level < SKY_LEVELS; level++) {
        uint cell = 4u * sky_texel(level, direction);
        add_gradient(cell, weight * seen.r);
        add_gradient(cell + 1u, weight * seen.g);
        add_gradient(cell + 2u, weight * seen.b);
        add_gradient(cell + 3u, weight);
    }
}
