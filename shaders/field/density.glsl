// Computes the density of the ngp field at any position, including the hash grid lookup.
// Passes: update_occupancy, sample_normals.
#include "field/grid.glsl"
#include "field/output_activations.glsl"

#ifdef ADDRESSES
// Stores a level's features at the row's end after shifting the row. Indices into the row must be
// constants, and sixteen unrolled levels would take CPU devices seconds to compile.
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
#define LEVEL_BY_LEVEL [[unroll]] // indices into a row in registers must be constants
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

// Returns the raw density. Called by whole workgroups, with one position per row.
float raw_density(vec3 position)
{
    encode_position(position);
    density_forward();
    float raw = get_value(AT_GEOMETRY);
    end_tile();
    return raw;
}

float density(vec3 position)
{
    return density_of(raw_density(position));
}

float log_density(vec3 position)
{
    return log_density_of(raw_density(position));
}
