// The density at a point that no pass has encoded.
#include "field/grid.glsl"
#include "field/output_activations.glsl"

#ifdef ADDRESSES
// A row's values are known by number only, and sixteen levels written out take CPU devices seconds to
// compile: each moves the row along instead.
void put_level(uint level, vec4 features)
{
    [[unroll]] for (uint i = FEATURES; i < LEVELS * FEATURES; i++)
        values[i - FEATURES] = values[i];
    [[unroll]] for (uint f = 0; f < FEATURES; f++)
        set_value((LEVELS - 1u) * FEATURES + f, features[f]);
}
#else
void put_level(uint level, vec4 features)
{
    [[unroll]] for (uint f = 0; f < FEATURES; f++)
        set_value(level * FEATURES + f, features[f]);
}
#endif

#if defined(TILED) || defined(ADDRESSES)
#define LEVEL_BY_LEVEL [[dont_unroll]]
#else
#define LEVEL_BY_LEVEL [[unroll]] // a row's values in registers are known by number only
#endif

void encode_position(vec3 position)
{
    vec3 unit = to_unit_cube(position);
    LEVEL_BY_LEVEL for (uint first = 0; first < LEVELS; first += INVOCATIONS_PER_ROW) {
        uint level = first + invocation_in_row();
        if (INVOCATIONS_PER_ROW > 1u && level >= LEVELS)
            break;
        put_level(level, interpolate(level, unit));
    }
    if (invocation_in_row() == 0u)
        [[unroll]] for (uint i = LEVELS * FEATURES; i < ENCODED; i++)
            set_value(i, 0.0);
}

// The raw output; whole workgroups, for all invocations of a row.
float raw_density(vec3 position)
{
    encode_position(position);
    density_forward();
    float found = get_value(AT_GEOMETRY);
    end_tile();
    return found;
}

float density(vec3 position)
{
    return density_of(raw_density(position));
}

float log_density(vec3 position)
{
    return log_density_of(raw_density(position));
}
