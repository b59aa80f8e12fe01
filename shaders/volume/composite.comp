#version 460
#extension GL_GOOGLE_include_directive : require
// Pass composite: composites each ray front to back in FP32, with early stop (Max, Optical Models for
// Direct Volume Rendering, 1995), into colour, transmittance and depth. In training the pass also
// computes the loss and, times the loss scale, its gradients with respect to live samples' rgb and
// density. With batch.keep below 1 the list has live samples only of rays that keep_weight chooses.
//   TRAIN         computes loss and gradients; without TRAIN continues push.b rays of a view from their RESULTS
//   NORMALS       also sums the samples' normals
//   MEDIAN_DEPTH  depth is the distance at which the transmittance falls to 0.5 (median depth)
//
//   buffer           shape                                                        access
//   RAYS             [ray]                                                        read; write without TRAIN
//   SAMPLES          [sample]                                                     read
//   FIELD            [sample] vec4: rgb, density                                  read
//   RESULTS          [ray]          read; write without TRAIN, or with scene.appearance or scene.sky
//   STATE            ray count, loss scale, keep_gain, mean_loss (read),
//                    live_count, live_rays, reached_count, kept_rays (write)      read, write
//   STATE            [view][cell] ErrorCell: sums of losses, TRAIN, by error
//                    or with loss.robust                                          read, write
//   STATE            [view] Appearance, TRAIN with scene.appearance               read
//   CAMERAS          [camera], TRAIN with scene.appearance                        read
//   FIELD_GRADIENTS  [sample] vec4, TRAIN                                         write
//   LIVE             [live sample] u32, TRAIN                                     write
//   REDUCE           REDUCE_LOSS [workgroup][loss, squared error] f32, TRAIN      write
//   REDUCE           REDUCE_DISTORTION [workgroup] f32, TRAIN with distortion     write
//   NORMALS          [sample], then [ray] vec4, NORMALS                           read, write
#extension GL_KHR_shader_subgroup_shuffle : require
#include "shared/common.glsl"

layout(constant_id = SPEC_DETERMINISTIC) const uint DETERMINISTIC = 0;
layout(constant_id = SPEC_VISIBILITY) const uint VISIBILITY = 0;

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; ErrorCell error_cells[]; };
layout(std430, BINDING(RAYS)) buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
#ifdef NORMALS
layout(std430, BINDING(NORMALS)) buffer NormalBuffer { vec4 normals[]; };
#endif

#include "volume/opacity.glsl"

#ifdef TRAIN
#include "volume/distortion.glsl"
#include "volume/loss.glsl"
#include "volume/ray_weight.glsl"
#include "volume/keep.glsl"
#include "volume/ray_appearance.glsl"
#include "volume/known_depth.glsl"

layout(std430, BINDING(FIELD_GRADIENTS)) writeonly buffer FieldGradientBuffer { vec4 field_gradients[]; };
layout(std430, BINDING(LIVE)) writeonly buffer LiveBuffer { uint live[]; };
layout(std430, BINDING(REDUCE)) buffer ReduceBuffer { float reduce[]; };

// The pass lists live samples unless find_visible has listed them. Without a list (deterministic
// mode), or with find_visible's list, which may differ from this pass's samples by a rounding, every
// sample of a ray gets a gradient, possibly zero.
const bool LISTS_LIVE = DETERMINISTIC == 0u && VISIBILITY == 0u;
const bool COUNTS_LIVE = DETERMINISTIC != 0u && VISIBILITY == 0u;

shared vec4 group_loss[LOCAL_SIZE]; // loss of colours, squared error, distortion loss, live rays

#include "volume/active_ray.glsl"

// Adds a ray's loss to the ray's cell of the error map; a subgroup that shares the ray adds it once.
void record_error(uint ray, float loss)
{
    bool is_recorded = (BY_ERROR != 0u || ROBUST != 0u) && push.e != COMPOSITE_COARSE;
    if (!is_recorded || CPU_KERNELS == 0u && gl_SubgroupInvocationID != 0u)
        return;
    uint cell = rays[ray].cell, units = uint((loss < 100.0 ? loss : 100.0) * ERROR_UNITS + 0.5);
    uint before = atomicAdd(error_cells[cell].low, units);
    if (before + units < before)
        atomicAdd(error_cells[cell].high, 1u);
    atomicAdd(error_cells[cell].rays, 1u);
}

// Turns the gradient with respect to a pixel's colour into the gradient with respect to the ray's
// colour. density_gradient assumes that the background adds transmittance * background to this colour:
// `prediction` becomes the colour for which the gradient with respect to the transmittance is right.
void through_appearance(uint ray, Photograph taken, vec3 color, float transmittance, vec3 background,
                        inout vec3 prediction, inout vec3 color_gradient)
{
    vec3 by_color =
        photograph_gradients(appearance_of(ray), IS_FULL, position_of(ray), taken, color_gradient).scene;
    float by_transmittance = dot(color_gradient, background - taken.color) + dot(by_color, taken.scene);
    if (!shows_sky(ray))
        prediction = color + by_color * (transmittance * by_transmittance / max(dot(by_color, by_color), 1e-36));
    color_gradient = by_color;
}

// Returns the loss of a ray's colour and its squared error; `color_gradient` becomes d loss / d colour.
// Records the loss in the error map.
vec2 ray_loss(uint ray, vec3 color, float transmittance, out vec3 prediction, out vec3 color_gradient)
{
    vec2 loss = vec2(0.0);
    vec3 background = background_of(ray);
    prediction = color + transmittance * background;
    bool has_appearance = APPEARANCE != 0u && push.e != COMPOSITE_COARSE;
    Photograph taken;
    vec3 pixel = prediction;
    if ((APPEARANCE != 0u || SKY != 0u) && push.e != COMPOSITE_COARSE) {
        results[ray].color = float[3](color.x, color.y, color.z);
        results[ray].transmittance = transmittance;
    }
    if (has_appearance) {
        vec3 scene = color;
        float unseen = transmittance;
        add_sky(ray, scene, unseen);
        taken = photograph_of_ray(ray, scene, unseen);
        pixel = pixel_color(taken, unseen, background);
    }
    vec3 difference = pixel - target_color(ray, background);
    for (int c = 0; c < 3; c++) {
        vec2 channel = channel_loss(difference[c]) / 3.0;
        loss += vec2(channel.x, difference[c] * difference[c] / 3.0);
        color_gradient[c] = channel.y;
    }
    record_error(ray, loss.x);
    color_gradient *= state.loss_scale / float(state.ray_count) * gradient_weight(ray);
    if (has_appearance)
        through_appearance(ray, taken, color, transmittance, background, prediction, color_gradient);
    return loss * loss_weight(ray);
}

// Returns d loss / d density: the dot product of the colour gradient and width * (T rgb - colour of
// everything behind, including the background). T: transmittance behind the sample.
float density_gradient(float width, float transmittance, vec3 rgb, vec3 behind, vec3 color_gradient)
{
    return width * dot(color_gradient, transmittance * rgb - behind);
}

// Returns the weight of losses of a ray's densities: 0 for coarse samples of hierarchical sampling,
// because they only determine where the fine samples are.
float density_loss_weight()
{
    return push.e == COMPOSITE_COARSE ? 0.0 : 1.0;
}

// Returns the distortion loss of a ray with these sums, times its weights.
float distortion_loss(uint ray, DistortionSums sums)
{
    return density_loss_weight() * config.loss_distortion * sums.loss * loss_weight(ray);
}

// Returns d loss / d losses of a ray's densities, scaled as all gradients are. `weight`: see keep_weight.
float density_loss_gradient(uint ray, float weight)
{
    return density_loss_weight() * state.loss_scale / float(state.ray_count) * gradient_weight(ray) * weight;
}

// Returns the derivative, by optical thickness, of the loss of density near the camera, which is the
// weight loss_near times the sum of (1 - t / near_start) thickness over the samples with t < near_start
// (the occlusion regularisation of Yang et al., FreeNeRF, 2023, but by distance and fading out). It
// removes density in front of one camera that explains what only this camera's pixels differ by.
float near_derivative(float t)
{
    return config.loss_near * max(1.0 - t / config.near_start, 0.0);
}

// Returns the derivative, by optical thickness, of all losses of density. On rays whose pixels may show the
// sky this includes SKY_LOSS, which removes walls of the sky's colour from before the sky was found.
float thickness_derivative(uint ray, float t)
{
    return near_derivative(t) + (shows_sky(ray) ? SKY_LOSS : 0.0);
}

// For a ray whose samples did not fit, returns the first sample that belongs to no ray; otherwise the
// capacity. Deterministic mode also processes the samples that belong to no ray, with gradient 0.
uint tail_begin(uint ray)
{
    uint begin = config.sample_capacity;
    if (DETERMINISTIC != 0u && ray < state.ray_count && rays[ray].last == -2.0)
        begin = results[ray].first;
    return begin;
}

// Stores the workgroup's losses and squared error and counts its live rays: sums of the first `count`
// elements of group_loss. One atomic for all rays of a workgroup, because all of them have one address.
void store_losses(uint count)
{
    barrier();
    if (gl_LocalInvocationID.x != 0u)
        return;
    vec4 sum = vec4(0.0);
    for (uint i = 0; i < count; i++)
        sum += group_loss[i];
    if (sum.w > 0.0)
        atomicAdd(state.live_rays, uint(sum.w));
    reduce[REDUCE_LOSS + 2u * gl_WorkGroupID.x] = sum.x;
    reduce[REDUCE_LOSS + 2u * gl_WorkGroupID.x + 1u] = sum.y;
    if (DISTORTION != 0u)
        reduce[REDUCE_DISTORTION + gl_WorkGroupID.x] = sum.z;
}
#else
bool is_active_ray(uint ray)
{
    return ray < push.b;
}
#endif

// Running sums over a ray's samples. In training `depth` is the sum of weight * agreement of a ray with
// a known depth.
struct Accumulated {
    vec3 color;
    float transmittance, depth;
    vec3 normal;
};

Accumulated accumulated_before(uint ray, bool is_active)
{
    Accumulated accumulated = Accumulated(vec3(0.0), 1.0, 0.0, vec3(0.0));
#ifndef TRAIN
    if (is_active) {
        accumulated.color = vec3(results[ray].color[0], results[ray].color[1], results[ray].color[2]);
        accumulated.transmittance = results[ray].transmittance;
        accumulated.depth = results[ray].depth;
    }
#endif
    return accumulated;
}

#ifndef TRAIN
void store_result(uint ray, Accumulated accumulated)
{
    results[ray].color = float[3](accumulated.color.x, accumulated.color.y, accumulated.color.z);
    results[ray].transmittance = accumulated.transmittance;
    results[ray].depth = accumulated.depth;
#ifdef NORMALS
    normals[config.sample_capacity + ray].xyz += accumulated.normal;
#endif
    if (accumulated.transmittance < config.early_stop)
        rays[ray].last = -1.0; // no more samples
}
#endif

// Returns the distance along the ray at which the transmittance falls to 0.5 in a sample.
// `transmittance`: in front of the sample.
float median_distance(float t, float width, float transmittance, float thickness)
{
    return t + width * (log(2.0 * transmittance) / thickness - 0.5);
}

// Returns what a sample adds to Accumulated.depth, by weight.
float depth_of(uint ray, float t, float width)
{
#ifdef TRAIN
    return DEPTH != 0u ? depth_agreement(ray, t, width) : 0.0;
#else
    return t;
#endif
}

#include "volume/composite_per_invocation.glsl"
#include "volume/composite_per_subgroup.glsl"

void main()
{
    if (CPU_KERNELS != 0u)
        composite_per_invocation();
    else
        composite_per_subgroup();
}
