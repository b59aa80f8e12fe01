#version 460
#extension GL_GOOGLE_include_directive : require
// Pass frequency_gradients (layer-by-layer models without a grid, for deformations and scene.refine):
// computes the gradient with respect to the position, displaced if there is a deformation, from the
// gradients of its frequency encoding, for a chunk of live rows.
//
//   buffer           shape                                        access
//   LIVE             [live sample] u32                            read
//   RAYS, SAMPLES    [ray], [sample]                              read
//   FEATURES         [row] columns: frequencies, displacement     read
//   SCRATCH          [row] columns: gradients of the frequencies  read
//   INPUT_GRADIENTS  [sample] vec4: by position                   write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/unit_cube.glsl"
#include "field/unit_cube_gradient.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/displacement.glsl"
#include "field/frequency_slope.glsl"

layout(constant_id = SPEC_LEVELS) const uint POSITION_OCTAVES = 10;
layout(constant_id = SPEC_DEFORMED) const uint DEFORMED = 0;

layout(std430, BINDING(INPUT_GRADIENTS)) writeonly buffer InputGradientBuffer {
    vec4 input_gradients[]; // [sample][position, direction]
};

void main()
{
    uint count = row_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE, row = gl_GlobalInvocationID.x;
    if (row >= count) // once, not before each iteration: see field_forward.comp
        return;
    do {
        uint index = row_sample(row);
        vec3 direction, position = sample_position(index, direction);
        if (DEFORMED != 0u)
            position += displacement(row);
        vec3 slope = 2.0 * frequency_slope(row, 0u, POSITION_OCTAVES); // the encoded position is -1 .. 1
        input_gradients[2u * index] = vec4(to_training_gradient(position, to_unit_cube(position), slope), 0.0);
        row += stride;
    } while (row < count);
}
