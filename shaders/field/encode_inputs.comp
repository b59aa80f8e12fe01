#version 460
#extension GL_GOOGLE_include_directive : require
// Pass encode_inputs (layer-by-layer models): writes the inputs of the layers for each row of a
// chunk. The inputs are the hash grid's features, or the frequency encoding of the (displaced)
// position; the frequency encoding of the time, if it is an input of the field; and the encoded
// direction.
//
//   buffer         shape                                    access
//   RAYS, SAMPLES  [ray], [sample]                          read
//   FEATURES       [level][sample][feature]: grid features  read
//   FEATURES       [row] columns: displacement              read
//   FEATURES       [row] columns: inputs                    write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/unit_cube.glsl"
#include "field/sample.glsl"
#include "field/features.glsl"
#include "field/layers.glsl"
#include "field/input_columns.glsl"
#include "field/encode_columns.glsl"
#include "field/displacement.glsl"

layout(constant_id = SPEC_DEFORMED) const uint DEFORMED = 0;

void encode_position(uint row, uint index, vec3 position)
{
    if (FEATURES == 0u) {
        if (DEFORMED != 0u)
            position += displacement(row);
        encode(row, 0u, 2.0 * to_unit_cube(position) - 1.0, 3u, LEVELS);
    }
    for (uint level = 0; FEATURES > 0u && level < LEVELS; level++) {
        vec4 features = get_level_features(level, index);
        for (uint f = 0; f < FEATURES; f++)
            put_activation(row, level * FEATURES + f, features[f]);
    }
}

void encode_direction(uint row, uint to, vec3 direction)
{
    float sh[SH_SIZE];
    if (DIRECTION != DIRECTION_HARMONICS) {
        encode(row, to, direction, 3u, SH_DEGREE);
        return;
    }
    spherical_harmonics(direction, sh);
    for (uint i = 0; i < SH_SIZE; i++)
        put_activation(row, to + i, sh[i]);
}

void main()
{
    uint count = row_count(), padded = padded_rows(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    uint direction_column = whole_chunks(DENSITY_INPUTS), row = gl_GlobalInvocationID.x;
    if (row >= padded) // once, not before each iteration: see field_forward.comp
        return;
    do {
        uint index = row_sample(min(row, count - 1u));
        vec3 direction, position = sample_position(index, direction);
        encode_position(row, index, position);
        if (TIME_INPUTS > 0u)
            encode(row, POSITION_INPUTS, vec3(sample_time(index), 0.0, 0.0), 1u, config.time_octaves);
        fill(row, DENSITY_INPUTS, direction_column);
        if (DIRECTION != DIRECTION_NONE)
            encode_direction(row, direction_column, direction);
        fill(row, direction_column + DIRECTION_INPUTS, direction_column + whole_chunks(DIRECTION_INPUTS));
        row += stride;
    } while (row < padded);
}
