#version 460
#extension GL_GOOGLE_include_directive : require
// Per live sample: inputs and activations are computed again (nothing of the forward pass was
// stored but rgb and raw density), then gradients flow back. Weight gradients are summed over all
// tiles of a workgroup in FP32; reduce_gradients adds those up. The gradients of the grid's features
// go to scatter_gradients.
#define BACKWARD
#include "field/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "field/inputs.glsl"
#include "field/sample.glsl"

layout(std430, set = 0, binding = BIND_STATE) buffer StateBuffer { State state; };
layout(std430, set = 0, binding = BIND_FIELD) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, set = 0, binding = BIND_FEATURE_GRADIENTS) writeonly buffer FeatureBuffer { uint feature_gradients[]; };

#include "field/live.glsl"

void write_feature_gradients(uint i)
{
    for (uint level = 0; level < LEVELS; level++) {
        uint to = level * config.sample_capacity + i;
#if defined(FP16) || defined(COOPMAT)
        for (uint f = 0; f < FEATURES; f += 2u)
            feature_gradients[(to * FEATURES + f) / 2u] =
                packHalf2x16(vec2(get_gradient(level * FEATURES + f),
                                  get_gradient(level * FEATURES + f + 1u)));
#else
        for (uint f = 0; f < FEATURES; f++)
            feature_gradients[to * FEATURES + f] =
                floatBitsToUint(get_gradient(level * FEATURES + f));
#endif
    }
}

void main()
{
    uint mine = gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID;
    uint count = gradient_count();
    uint tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    uint tile_index = gl_WorkGroupID.x;
    begin_sums();
    if (tile_index < tiles)
        do {
            uint i = tile_index * LOCAL_SIZE + mine;
            bool inside = i < count;
            uint index = inside ? gradient_sample(i) : 0u;
            vec3 direction, position = sample_position(index, direction);
            vec4 gradient = inside ? field[index] : vec4(0.0);
            encode_position(position);
            mlp_forward(DENSITY_MLP);
            encode_direction(direction);
            mlp_forward(DENSITY_END, LAYERS - 1u);
            tile_backward(gradient);
            if (inside)
                write_feature_gradients(i);
            tile_index += gl_NumWorkGroups.x;
        } while (tile_index < tiles);
    end_sums();
#if defined(FP16) || defined(COOPMAT)
    uvec2 all_flushed = subgroupAdd(flushed);
    if (subgroupElect()) {
        atomicAdd(state.flushed, all_flushed.x);
        atomicAdd(state.rounded, all_flushed.y);
    }
#endif
}
