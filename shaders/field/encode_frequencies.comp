#version 460
#extension GL_GOOGLE_include_directive : require
// Per row of a chunk: the encoded position and direction, the layers' inputs. The position is where a deformation
// has taken it, whose layers the row has gone through, and behind it may be the time.
#include "field/precision.glsl"
#include "shared/common.glsl"
#include "field/place.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/encode_columns.glsl"
#include "field/displacement.glsl"

layout(constant_id = SPEC_LEVELS) const uint POSITION_OCTAVES = 10;
layout(constant_id = SPEC_SH_DEGREE) const uint DIRECTION_OCTAVES = 4;
layout(constant_id = SPEC_WARPED) const uint WARPED = 0;
layout(constant_id = SPEC_TIME_INPUTS) const uint TIME_INPUTS = 0;

void main()
{
    uint count = row_count(), padded = padded_rows(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    uint directions = whole_chunks(3u + 6u * POSITION_OCTAVES + TIME_INPUTS);
    uint hidden = directions + whole_chunks(3u + 6u * DIRECTION_OCTAVES);
    for (uint row = gl_GlobalInvocationID.x; row < padded; row += stride) {
        uint index = row_sample(min(row, count - 1u));
        vec3 direction, position = sample_position(index, direction);
        if (WARPED != 0u)
            position += displacement(row);
        uint column = encode(row, 0u, 2.0 * to_unit_cube(position) - 1.0, 3u, POSITION_OCTAVES);
        if (TIME_INPUTS > 0u)
            column = encode(row, column, vec3(sample_time(index), 0.0, 0.0), 1u, config.time_octaves);
        fill(row, column, directions);
        fill(row, encode(row, directions, direction, 3u, DIRECTION_OCTAVES), hidden);
    }
}
