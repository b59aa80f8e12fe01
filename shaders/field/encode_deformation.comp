#version 460
#extension GL_GOOGLE_include_directive : require
// Pass encode_deformation (deformation): writes the encoded position and time, the inputs of the
// deformation's layers.
//
//   buffer         shape                                    access
//   RAYS, SAMPLES  [ray], [sample]                          read
//   FEATURES       [row] columns from deformation_input on  write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/unit_cube.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/encode_columns.glsl"

void main()
{
    uint count = row_count(), padded = padded_rows(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    uint inputs = 4u + 6u * config.deformation_octaves + 2u * config.time_octaves;
    for (uint row = gl_GlobalInvocationID.x; row < padded; row += stride) {
        uint index = row_sample(min(row, count - 1u));
        vec3 direction, position = sample_position(index, direction);
        uint column = encode(row, config.deformation_input, 2.0 * to_unit_cube(position) - 1.0, 3u,
                             config.deformation_octaves);
        column = encode(row, column, vec3(sample_time(index), 0.0, 0.0), 1u, config.time_octaves);
        fill(row, column, config.deformation_input + whole_chunks(inputs));
    }
}
