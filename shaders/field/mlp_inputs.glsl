// Reads or computes the MLPs' inputs: encoded position, time and direction. The including file
// includes field/sample.glsl.
// Passes: field_forward, field_backward.
#include "field/frequencies.glsl"

// Returns value i of the encoded time, in the order of field/encode_columns.glsl.
float time_input(float time, uint i)
{
    vec2 waves = half_turns(time * float(1u << (max(i, 1u) - 1u) / 2u));
    return i == 0u ? time : (i & 1u) == 1u ? waves.x : waves.y;
}

// Loads the features that encode_samples stored; the invocations of a row share the levels.
void read_position(uint sample_index)
{
    [[unroll]] for (uint first = 0; first < LEVELS; first += INVOCATIONS_PER_ROW) {
        uint level = first + invocation_in_row();
        if (INVOCATIONS_PER_ROW == 1u || level < LEVELS)
            [[unroll]] for (uint f = 0; f < FEATURES / 2u; f++) {
                vec2 values = get_features(level, sample_index, f);
                set_value(level * FEATURES + 2u * f, values.x);
                set_value(level * FEATURES + 2u * f + 1u, values.y);
            }
    }
    if (invocation_in_row() == 0u)
        [[unroll]] for (uint i = LEVELS * FEATURES; i < ENCODED; i++) {
            uint k = i - LEVELS * FEATURES;
            set_value(i, k < TIME_INPUTS ? time_input(sample_time(sample_index), k) : 0.0);
        }
}

void encode_direction(vec3 direction)
{
    if (invocation_in_row() != 0u)
        return;
    float sh[SH_SIZE];
    spherical_harmonics(direction, sh);
    [[unroll]] for (uint i = 0; i < SH_SIZE; i++)
        set_value(ROW_DIRECTION + i, sh[i]);
}
