#version 460
#extension GL_GOOGLE_include_directive : require
// Per row of a chunk: the encoded position and direction, the layers' inputs.
#include "field/precision.glsl"
#include "shared/common.glsl"
#include "field/place.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/encode_columns.glsl"

layout(constant_id = SPEC_LEVELS) const uint POSITION_OCTAVES = 10;
layout(constant_id = SPEC_SH_DEGREE) const uint DIRECTION_OCTAVES = 4;

void main()
{
    uint count = row_count(), padded = padded_rows(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    uint directions = whole_chunks(3u + 6u * POSITION_OCTAVES);
    uint hidden = directions + whole_chunks(3u + 6u * DIRECTION_OCTAVES);
    for (uint row = gl_GlobalInvocationID.x; row < padded; row += stride) {
        vec3 direction, position = sample_position(row_sample(min(row, count - 1u)), direction);
        uint column = encode(row, 0u, 2.0 * to_unit_cube(position) - 1.0, 3u, POSITION_OCTAVES);
        fill(row, column, directions);
        fill(row, encode(row, directions, direction, 3u, DIRECTION_OCTAVES), hidden);
    }
}
