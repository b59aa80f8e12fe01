#version 460
#extension GL_GOOGLE_include_directive : require
// Pass appearance_gradients: adds the gradients of a step with respect to the appearance of training
// views, summed over the rays, one ray per invocation. The gradients of a camera's parameters are added
// to the view's sums; update_appearance adds the sums of the views of a camera.
//
//   buffer   shape                                                     access
//   RAYS     [ray]                                                     read
//   RESULTS  [ray] colour, transmittance                               read
//   CAMERAS  [camera]                                                  read
//   STATE    ray count; [view] Appearance                              read
//   STATE    [view][APPEARANCE_PARAMETERS] ErrorCell                   read, write
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(RAYS)) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) readonly buffer ResultBuffer { RayResult results[]; };

#include "rays/gradient_sums.glsl"
#include "volume/active_ray.glsl"
#include "volume/loss.glsl"
#include "volume/ray_appearance.glsl"
#include "volume/ray_weight.glsl"

// One block of rays in so many adds to the sums of the many parameters that all views of a camera share
// or that change little. Blocks, so that all lanes of a subgroup take the same branch.
const uint BLOCKS_PER_SUM = 16u, RAYS_OF_BLOCK = 64u;

// The functions below add gradients to the sums from `sum` on.

void add_gains(uint sum, vec3 weights, vec3 by_weight)
{
    add_gradient(sum + 1u, LOG2 * weights.r * by_weight.r);
    add_gradient(sum + 2u, LOG2 * weights.b * by_weight.b);
}

// factor: the intensity of the light / that of the weights of its channels.
void add_primaries(uint sum, vec3 weights, float factor, PhotographGradients g)
{
    for (uint k = 0; k < channel_count(); k++) {
        float moved = PRIMARY_UNIT * factor * channel_of(weights, k);
        add_gradient(sum + 3u + 2u * k, moved * (g.balanced.r - g.balanced.b));
        add_gradient(sum + 4u + 2u * k, moved * (g.balanced.g - g.balanced.b));
    }
}

void add_vignetting(uint sum, uint first, vec2 position, Photograph p, PhotographGradients g)
{
    for (uint c = 0; c < channel_count(); c++) {
        Vignetting v = vignetting_at(first, c, position);
        float r2 = dot(v.offset, v.offset);
        float by_factor = v.in_range ? channel_of(g.lit * p.lit, c) / v.factor : 0.0;
        float by_r2 = by_factor * (v.coefficients.x + r2 * (2.0 * v.coefficients.y + 3.0 * r2 * v.coefficients.z));
        uint at = sum + APPEARANCE_VIGNETTING + 5u * c;
        add_gradient(at, by_r2 * -2.0 * CENTER_UNIT * v.offset.x);
        add_gradient(at + 1u, by_r2 * -2.0 * CENTER_UNIT * v.offset.y);
        add_gradient(at + 2u, by_factor * r2);
        add_gradient(at + 3u, by_factor * r2 * r2);
        add_gradient(at + 4u, by_factor * r2 * r2 * r2);
    }
}

void add_curve(uint sum, uint first, Photograph p, vec3 by_color)
{
    for (uint c = 0; c < channel_count(); c++) {
        vec4 by = channel_of(by_color, c) * curve_derivatives(response_curve(first, c), channel_of(p.encoded, c));
        uint at = sum + APPEARANCE_CURVE + 4u * c;
        add_gradient(at, by.x);
        add_gradient(at + 1u, by.y);
        add_gradient(at + 2u, by.z);
        add_gradient(at + 3u, by.w);
    }
}

void main()
{
    uint ray = gl_GlobalInvocationID.x;
    if (!is_active_ray(ray))
        return;
    vec3 color = vec3(results[ray].color[0], results[ray].color[1], results[ray].color[2]);
    vec3 background = background_of(ray);
    float transmittance = results[ray].transmittance;
    add_sky(ray, color, transmittance);
    Photograph p = photograph_of_ray(ray, color, transmittance);
    vec3 by_color = pixel_color(p, transmittance, background) - target_color(ray, background);
    for (int c = 0; c < 3; c++)
        by_color[c] = channel_loss(by_color[c]).y / 3.0;
    by_color *= photographed_share(transmittance) * gradient_weight(ray);
    uint first = appearance_of(ray);
    vec2 position = position_of(ray);
    PhotographGradients g = photograph_gradients(first, IS_FULL, position, p, by_color);
    uint sum = config.first_appearance_sum + cameras[rays[ray].view].view * APPEARANCE_PARAMETERS;
    atomicAdd(error_cells[sum].rays, 1u);
    add_gradient(sum, LOG2 * dot(g.lit, p.lit));
    if (!IS_FULL)
        return;
    vec3 weights = channel_gains(first) * p.lit, along = through_primaries(first, g.balanced);
    float weight = intensity(weights), factor = intensity(p.lit) / weight;
    add_gains(sum, weights, factor * (along - dot(along, weights) / weight));
    if ((config.first_ray + gl_WorkGroupID.x * LOCAL_SIZE) / RAYS_OF_BLOCK % BLOCKS_PER_SUM == 0u) {
        atomicAdd(error_cells[sum + APPEARANCE_IMAGE].rays, 1u);
        add_primaries(sum, weights, factor, g);
        add_vignetting(sum, first, position, p, g);
        add_curve(sum, first, p, by_color);
    }
}
