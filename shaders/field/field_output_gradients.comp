#version 460
#extension GL_GOOGLE_include_directive : require
// Pass field_output_gradients (layer-by-layer models): computes the gradients with respect to the raw
// outputs from the gradients with respect to rgb and density, for a chunk of live rows. Padding
// columns and rows get zeros.
//
//   buffer                  shape                         access
//   LIVE                    [live sample] u32             read
//   FIELD, FIELD_GRADIENTS  [sample] vec4                 read
//   FEATURES                [row] columns: raw density    read
//   SCRATCH                 [row] columns of the outputs  write
//   STATE                   underflow counts              write
#define BACKWARD
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"
#include "field/output_activations.glsl"

layout(std430, BINDING(FIELD)) readonly buffer FieldBuffer { vec4 field[]; };
layout(std430, BINDING(FIELD_GRADIENTS)) readonly buffer FieldGradientBuffer { vec4 field_gradients[]; };

void put_zeros(uint row, uint column, uint used)
{
    for (uint c = used; c < CHUNK_DEPTH; c++)
        put_gradient(row, column + c, STORAGE_T(0.0));
}

void main()
{
    uint count = row_count(), padded = padded_rows(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint row = gl_GlobalInvocationID.x; row < padded; row += stride) {
        uint index = row_sample(min(row, count - 1u));
        vec4 gradient = row < count ? field_gradients[index] : vec4(0.0);
        vec3 output_gradients = raw_color_gradient(field[index].rgb, gradient.rgb);
        for (uint c = 0; c < 3u; c++)
            put_gradient(row, config.color_output + c, round_gradient(output_gradients[c]));
        float density_gradient = raw_density_gradient(get_activation(row, config.first_output), gradient.w);
        put_gradient(row, config.first_output, round_gradient(density_gradient));
        put_zeros(row, config.color_output, 3u);
        put_zeros(row, config.first_output, 1u);
    }
    count_underflowed();
}
