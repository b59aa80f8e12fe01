#version 460
#extension GL_GOOGLE_include_directive : require
// Pass deformation_output_gradients (deformation): computes the gradients with respect to the
// deformation's outputs from the gradients with respect to canonical positions, for a chunk of live
// rows. Padding columns and rows get zeros.
//
//   buffer           shape                                     access
//   LIVE             [live sample] u32                         read
//   INPUT_GRADIENTS  [sample] vec4: by position                read
//   SCRATCH          [row] columns from deformation_output on  write
//   STATE            underflow counts                          write
#define BACKWARD
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"

layout(std430, BINDING(INPUT_GRADIENTS)) readonly buffer InputGradientBuffer {
    vec4 input_gradients[]; // [sample][position, direction]
};

void main()
{
    uint count = row_count(), padded = padded_rows(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint row = gl_GlobalInvocationID.x; row < padded; row += stride) {
        vec3 output_gradients = vec3(0.0);
        if (row < count)
            output_gradients = config.aabb_scale * input_gradients[2u * row_sample(row)].xyz;
        for (uint c = 0; c < CHUNK_DEPTH; c++)
            put_gradient(row, config.deformation_output + c,
                         c < 3u ? round_gradient(output_gradients[min(c, 2u)]) : STORAGE_T(0.0));
    }
    count_underflowed();
}
