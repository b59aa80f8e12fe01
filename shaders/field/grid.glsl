// Interpolates the hash grid's features at a point.
// Passes: encode_samples, input_gradients, update_occupancy, sample_normals. Reads F16_PARAMS or
// PARAMS [level][entry][feature].
#include "field/unit_cube.glsl"

// One load of up to 128 bits reads an entry. Other files declare the same buffer with other types.
#ifdef F16_STORAGE
layout(std430, BINDING(F16_PARAMS)) readonly buffer EntryPairBuffer { f16vec2 entry_pairs[]; };
layout(std430, BINDING(F16_PARAMS)) readonly buffer EntryFourBuffer { f16vec4 entry_fours[]; };
#else
layout(std430, BINDING(PARAMS)) readonly buffer EntryPairBuffer { vec2 entry_pairs[]; };
layout(std430, BINDING(PARAMS)) readonly buffer EntryFourBuffer { vec4 entry_fours[]; };
#endif

// Returns the features of an entry, followed by zeros.
vec4 entry_features(uint entry)
{
    if (FEATURES == 4u)
        return vec4(entry_fours[entry]);
    return vec4(entry_pairs[entry], 0.0, 0.0);
}

// Returns the features of the entries at a cell's corners.
void gather(uint level, uvec3 cell, out vec4 corners[8])
{
    Level table = config.levels[level];
    [[unroll]] for (uint i = 0; i < 8u; i++)
        corners[i] = entry_features(grid_entry(table, cell + corner_offset(i)));
}

// Returns the trilinear interpolation of a level's features.
vec4 interpolate(uint level, vec3 unit)
{
    vec3 inside;
    uvec3 cell = grid_cell(level, unit, inside);
    vec4 corners[8], sum = vec4(0.0);
    gather(level, cell, corners);
    [[unroll]] for (uint i = 0; i < 8u; i++)
        sum += corner_weight(i, inside) * corners[i];
    return sum;
}
