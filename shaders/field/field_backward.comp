#version 460
#extension GL_GOOGLE_include_directive : require
// Pass field_backward (ngp): recomputes the activations of live samples and propagates the gradients
// of rgb and density back through the MLPs. The forward pass stores only features, rgb and density.
// The pass sums weight gradients in FP32 over all tiles of a workgroup; reduce_gradients sums them
// over the workgroups.
//
//   buffer                  shape                                                     access
//   STATE                   live_count (read), underflow counts (write)               read, write
//   LIVE                    [live sample] u32                                         read
//   RAYS, SAMPLES           [ray], [sample]: direction, time                          read
//   FIELD, FIELD_GRADIENTS  [sample] vec4                                             read
//   PARAMS or F16_PARAMS    [parameter] f32 or f16                                    read
//   FEATURES                [level][sample][feature]: features, then their gradients  read, write
//   PARTIALS                [workgroup][summed parameter] f32                         read, write
//   SCRATCH                 [workgroup] tile or rows, if used                         read, write
//   INPUT_GRADIENTS         [sample] vec4: by direction, with SPEC_INPUT_GRADIENTS    write
#define BACKWARD
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
#include "field/mlp.glsl"
#include "field/features.glsl"
#include "field/sample.glsl"
#include "field/mlp_inputs.glsl"
#include "field/output_activations.glsl"
#include "field/input_gradients.glsl"

layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(FIELD_GRADIENTS)) readonly buffer FieldGradientBuffer { vec4 field_gradients[]; };

#include "field/live_samples.glsl"

void write_feature_gradients(uint sample_index)
{
    [[unroll]] for (uint first = 0; first < LEVELS; first += INVOCATIONS_PER_ROW) {
        uint level = first + invocation_in_row();
        if (INVOCATIONS_PER_ROW == 1u || level < LEVELS)
            [[unroll]] for (uint f = 0; f < FEATURES; f += 2u)
                put_features(level, sample_index, f / 2u,
                             vec2(get_gradient(level * FEATURES + f),
                                  get_gradient(level * FEATURES + f + 1u)));
    }
}

void write_direction_gradient(uint sample_index)
{
    float gradient[SH_SIZE];
    [[unroll]] for (uint i = 0; i < SH_SIZE; i++)
        gradient[i] = get_gradient(AT_DIRECTION + i);
    vec3 slope = direction_gradient(sample_direction(sample_index), gradient);
    input_gradients[2u * sample_index + 1u] = vec4(slope, 0.0);
}

// Returns the gradients with respect to raw rgb and raw density. Called after density_forward.
vec4 raw_gradient(uint sample_index)
{
    vec4 gradient = field_gradients[sample_index];
    return vec4(raw_color_gradient(field[sample_index].rgb, gradient.rgb),
                raw_density_gradient(get_value(AT_GEOMETRY), gradient.w));
}

void main()
{
    uint mine = tile_row();
    uint count = gradient_count();
    uint tiles = (count + TILE_ROWS - 1u) / TILE_ROWS;
    uint tile_index = gl_WorkGroupID.x;
    begin_sums();
    if (tile_index < tiles)
        do {
            uint i = tile_index * TILE_ROWS + mine;
            bool has_sample = i < count;
            uint index = has_sample ? gradient_sample(i) : 0u;
            begin_tile(tile_index);
            read_position(index);
            density_forward();
            if (COLORED) {
                encode_direction(sample_direction(index));
                color_forward();
            }
            bool leads_row = has_sample && invocation_in_row() == 0u;
            vec4 gradient = leads_row ? raw_gradient(index) : vec4(0.0);
            tile_index += gl_NumWorkGroups.x;
            tile_backward(gradient, tile_index >= tiles);
            if (has_sample)
                write_feature_gradients(index);
            if (INPUT_GRADIENTS != 0u && leads_row)
                write_direction_gradient(index);
            end_tile();
        } while (tile_index < tiles);
    end_sums();
    count_underflowed();
}
