#version 460
#extension GL_GOOGLE_include_directive : require
// Pass deformation_input_gradients (deformation, with scene.refine): adds the gradient with respect to
// the position through the displacement to the gradient with respect to the canonical position, for a
// chunk of live rows.
//
//   buffer           shape                                                     access
//   LIVE             [live sample] u32                                         read
//   RAYS, SAMPLES    [ray], [sample]                                           read
//   FEATURES         [row] columns from deformation_input on                   read
//   SCRATCH          [row] columns from deformation_input on: their gradients  read
//   INPUT_GRADIENTS  [sample] vec4: by position                                read, write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/unit_cube.glsl"
#include "field/unit_cube_gradient.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/frequency_slope.glsl"

layout(std430, BINDING(INPUT_GRADIENTS)) buffer InputGradientBuffer {
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
        vec3 slope = 2.0 * frequency_slope(row, config.deformation_input, config.deformation_octaves);
        input_gradients[2u * index].xyz += to_training_gradient(position, to_unit_cube(position), slope);
        row += stride;
    } while (row < count);
}
