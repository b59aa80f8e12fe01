#version 460
#extension GL_GOOGLE_include_directive : require
// Per sample: position and direction encoded, density MLP, colour MLP -> rgb and raw density.
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "field/inputs.glsl"

layout(std430, set = 0, binding = BIND_STATE) readonly buffer StateBuffer { State state; };
layout(std430, set = 0, binding = BIND_RAYS) readonly buffer RayBuffer { Ray rays[]; };
layout(std430, set = 0, binding = BIND_SAMPLES) readonly buffer SampleBuffer { Sample samples[]; };
layout(std430, set = 0, binding = BIND_FIELD) writeonly buffer FieldBuffer { vec4 field[]; };

void main()
{
    uint count = min(state.sample_count, config.sample_capacity);
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    // All invocations stay: the MLPs broadcast between lanes. The test comes before the loop so
    // that a workgroup without samples skips all of it: some drivers run a loop's body once masked
    // off.
    uint first = gl_WorkGroupID.x * LOCAL_SIZE;
    if (first >= count)
        return;
    do {
        uint i = min(first + gl_LocalInvocationIndex, count - 1u);
        Ray ray = rays[samples[i].ray];
        vec3 direction = vec3(ray.direction[0], ray.direction[1], ray.direction[2]);
        vec3 origin = vec3(ray.origin[0], ray.origin[1], ray.origin[2]);
        encode_position(origin + samples[i].t * direction);
        mlp_forward(DENSITY_MLP);
        encode_direction(direction);
        mlp_forward(COLOR_MLP);
        vec3 raw = vec3(values[AT_RGB], values[AT_RGB + 1u], values[AT_RGB + 2u]);
        if (first + gl_LocalInvocationIndex < count)
            field[i] = vec4(1.0 / (1.0 + exp(-raw)), values[AT_GEOMETRY]);
        first += stride;
    } while (first < count);
}
