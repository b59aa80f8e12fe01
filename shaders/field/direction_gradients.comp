#version 460
#extension GL_GOOGLE_include_directive : require
// Pass direction_gradients (layer-by-layer models, with scene.refine): computes the gradient with
// respect to the direction from the gradients of its encoding, for a chunk of live rows.
//
//   buffer           shape                                                 access
//   LIVE             [live sample] u32                                     read
//   RAYS, SAMPLES    [ray], [sample]                                       read
//   FEATURES         [row] columns: frequencies of the direction           read
//   SCRATCH          [row] columns: gradients of the direction's encoding  read
//   INPUT_GRADIENTS  [sample] vec4: by direction                           write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/input_columns.glsl"
#include "field/frequency_slope.glsl"
#include "field/input_gradients.glsl"

vec3 slope_of(uint row, uint index)
{
    uint first = whole_chunks(DENSITY_INPUTS);
    if (DIRECTION == DIRECTION_NONE)
        return vec3(0.0);
    if (DIRECTION != DIRECTION_HARMONICS)
        return frequency_slope(row, first, SH_DEGREE);
    float gradient[SH_SIZE];
    for (uint i = 0; i < SH_SIZE; i++)
        gradient[i] = get_gradient(row, first + i);
    return direction_gradient(sample_direction(index), gradient);
}

void main()
{
    uint count = row_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE, row = gl_GlobalInvocationID.x;
    if (row >= count) // once, not before each iteration: see field_forward.comp
        return;
    do {
        uint index = row_sample(row);
        input_gradients[2u * index + 1u] = vec4(slope_of(row, index), 0.0);
        row += stride;
    } while (row < count);
}
