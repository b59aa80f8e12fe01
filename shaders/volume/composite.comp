#version 460
#extension GL_GOOGLE_include_directive : require
// Per ray, FP32: transmittance, colour and depth front to back with early stop (Max, Optical Models
// for Direct Volume Rendering, 1995). When training, then the loss and the gradient of every live
// sample with respect to rgb and density, times the loss scale. NORMALS adds up the samples' normals as well.
#include "shared/common.glsl"
#include "shared/contraction.glsl"

layout(constant_id = SPEC_DETERMINISTIC) const uint DETERMINISTIC = 0;

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(RAYS)) buffer RayBuffer { Ray rays[]; };
layout(std430, BINDING(RESULTS)) buffer ResultBuffer { RayResult results[]; };
layout(std430, BINDING(SAMPLES)) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
#ifdef NORMALS
layout(std430, BINDING(NORMALS)) buffer NormalBuffer { vec4 normals[]; };
#endif

// Width of a sample in the density's unit: that is by training unit or, where space is contracted, by
// unit of contracted radius, d (2 - 1 / r) = d r / r^2. Then empty space takes equally little learning
// wherever it is, and no threshold of the occupancy grid depends on the distance.
float density_width(uint ray, float t, float width)
{
    if (CONTRACTION == CONTRACTION_NONE)
        return width;
    Ray r = rays[min(ray, config.ray_capacity - 1u)];
    vec3 position = vec3(r.origin[0], r.origin[1], r.origin[2]) +
                    t * vec3(r.direction[0], r.direction[1], r.direction[2]);
    float norm = max(maximum_norm(from_center(position)), 1.0);
    return width / (norm * norm);
}

#ifdef TRAIN
#include "volume/loss.glsl"

layout(std430, BINDING(FIELD_GRADIENTS)) writeonly buffer FieldGradientBuffer { vec4 field_gradients[]; };
layout(std430, BINDING(LIVE)) writeonly buffer LiveBuffer { uint live[]; };
layout(std430, BINDING(REDUCE)) buffer ReduceBuffer { float reduce[]; };

shared vec2 group_loss[LOCAL_SIZE];

// Of the live samples' rgb and density.
void write_gradients(uint ray, uint first, uint live_count, uint count, vec3 color_gradient,
                     vec3 prediction)
{
    uint slot = first;
    if (DETERMINISTIC == 0u) {
        uint before = subgroupExclusiveAdd(live_count);
        uint total = subgroupAdd(live_count);
        uint base = 0;
        if (subgroupElect())
            base = atomicAdd(state.live_count, total);
        slot = subgroupBroadcastFirst(base) + before;
    } else {
        atomicAdd(state.live_count, live_count);
    }
    float transmittance = 1.0;
    vec3 color = vec3(0.0);
    for (uint i = 0; i < live_count; i++) {
        vec4 value = field[first + i];
        float width = density_width(ray, samples[first + i].t, samples[first + i].width);
        float alpha = 1.0 - exp(-value.w * width);
        float weight = transmittance * alpha;
        color += weight * value.rgb;
        transmittance *= 1.0 - alpha;
        // d prediction / d density = width * (T rgb - what lies behind, background included).
        vec3 behind = prediction - color;
        float density_gradient =
            width * dot(color_gradient, transmittance * value.rgb - behind);
        field_gradients[first + i] = vec4(weight * color_gradient, density_gradient);
        if (DETERMINISTIC == 0u)
            live[slot + i] = first + i;
    }
    if (DETERMINISTIC != 0u)
        for (uint i = live_count; i < count; i++)
            field_gradients[first + i] = vec4(0.0);
}

// Deterministic mode goes through all samples up to the capacity: those behind the last ray that
// fitted are nobody's and have no gradient.
void clear_tail(uint ray)
{
    uint begin = config.sample_capacity, end = begin;
    if (DETERMINISTIC != 0u && ray < state.ray_count && rays[ray].last == -2.0)
        begin = results[ray].first;
    for (uint i = begin; i < end; i++)
        field_gradients[i] = vec4(0.0);
}
#endif

void main()
{
    uint ray = gl_GlobalInvocationID.x;
#ifdef TRAIN
    bool inside = ray < state.ray_count && rays[min(ray, state.ray_count - 1u)].last > -1.5;
#else
    bool inside = ray < push.b;
#endif
    uint first = 0, count = 0;
    if (inside) {
        first = results[ray].first;
        count = results[ray].count;
    }
    vec3 color = vec3(0.0);
    float transmittance = 1.0, depth = 0.0;
#ifndef TRAIN
    if (inside) {
        color = vec3(results[ray].color[0], results[ray].color[1], results[ray].color[2]);
        transmittance = results[ray].transmittance;
        depth = results[ray].depth;
    }
#endif
#ifdef NORMALS
    vec3 normal = vec3(0.0);
#endif
    uint live_count = 0;
    while (live_count < count && transmittance >= config.early_stop) {
        vec4 value = field[first + live_count];
        float t = samples[first + live_count].t, width = samples[first + live_count].width;
        float thickness = value.w * density_width(ray, t, width), alpha = 1.0 - exp(-thickness);
        color += transmittance * alpha * value.rgb;
#ifdef HITS
        // The distance at which half of the light is gone.
        if (transmittance > 0.5 && transmittance * (1.0 - alpha) <= 0.5)
            depth = t + width * (log(2.0 * transmittance) / thickness - 0.5);
#else
        depth += transmittance * alpha * t;
#endif
#ifdef NORMALS
        normal += transmittance * alpha * normals[first + live_count].xyz;
#endif
        transmittance *= 1.0 - alpha;
        live_count++;
    }
#ifdef TRAIN
    vec2 loss = vec2(0.0);
    vec3 color_gradient = vec3(0.0), prediction = vec3(0.0);
    if (inside) {
        vec3 background = vec3(rays[ray].background[0], rays[ray].background[1], rays[ray].background[2]);
        vec3 target = vec3(rays[ray].target[0], rays[ray].target[1], rays[ray].target[2]) +
                      (1.0 - rays[ray].target[3]) * background;
        prediction = color + transmittance * background;
        vec3 difference = prediction - target;
        for (int c = 0; c < 3; c++) {
            vec2 channel = channel_loss(difference[c]) / 3.0;
            loss += vec2(channel.x, difference[c] * difference[c] / 3.0);
            color_gradient[c] = channel.y;
        }
        color_gradient *= state.loss_scale / float(state.ray_count);
    }
    write_gradients(ray, first, live_count, count, color_gradient, prediction);
    clear_tail(ray);

    group_loss[gl_LocalInvocationIndex] = loss;
    barrier();
    if (gl_LocalInvocationIndex == 0u) {
        vec2 sum = vec2(0.0);
        for (uint i = 0; i < LOCAL_SIZE; i++)
            sum += group_loss[i];
        reduce[REDUCE_LOSS + 2u * gl_WorkGroupID.x] = sum.x;
        reduce[REDUCE_LOSS + 2u * gl_WorkGroupID.x + 1u] = sum.y;
    }
    uint used = subgroupAdd(inside ? 1u : 0u);
    if (subgroupElect())
        atomicAdd(state.live_rays, used);
#else
    if (inside) {
        results[ray].color = float[3](color.x, color.y, color.z);
        results[ray].transmittance = transmittance;
        results[ray].depth = depth;
#ifdef NORMALS
        normals[config.sample_capacity + ray].xyz += normal;
#endif
        if (transmittance < config.early_stop)
            rays[ray].last = -1.0; // marching has nothing left to do
    }
#endif
}
