#version 460
#extension GL_GOOGLE_include_directive : require
// Per row of a chunk: the encoded position and direction, the layers' inputs.
#include "field/precision.glsl"
#include "shared/common.glsl"
#include "field/place.glsl"
#include "field/sample.glsl"
#include "field/layers.glsl"
#include "field/frequencies.glsl"

layout(constant_id = SPEC_LEVELS) const uint POSITION_OCTAVES = 10;
layout(constant_id = SPEC_SH_DEGREE) const uint DIRECTION_OCTAVES = 4;

// Columns `to` up to and without `end`; behind the encoding, zeros.
void encode(uint row, uint to, uint end, vec3 x, uint octaves)
{
    for (uint axis = 0; axis < 3u; axis++)
        put_activation(row, to + axis, x[axis]);
    to += 3u;
    float scale = 1.0;
    for (uint octave = 0; octave < octaves; octave++, scale *= 2.0, to += 6u)
        for (uint axis = 0; axis < 3u; axis++) {
            vec2 waves = half_turns(x[axis] * scale);
            put_activation(row, to + axis, waves.x);
            put_activation(row, to + 3u + axis, waves.y);
        }
    for (; to < end; to++)
        put_activation(row, to, 0.0);
}

void main()
{
    uint count = row_count(), padded = padded_rows(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    uint directions = whole_chunks(3u + 6u * POSITION_OCTAVES);
    uint hidden = directions + whole_chunks(3u + 6u * DIRECTION_OCTAVES);
    for (uint row = gl_GlobalInvocationID.x; row < padded; row += stride) {
        vec3 direction, position = sample_position(row_sample(min(row, count - 1u)), direction);
        encode(row, 0u, directions, 2.0 * to_unit_cube(position) - 1.0, POSITION_OCTAVES);
        encode(row, directions, hidden, direction, DIRECTION_OCTAVES);
    }
}
