// Interpolates the hash grid's features at a point.
// Passes: encode_samples, input_gradients, update_occupancy, sample_normals. Reads F16_PARAMS or
// PARAMS [level][entry][feature].
#include "field/unit_cube.glsl"

// One load of up to 128 bits reads an entry. Other files declare the same buffer with other types.
#ifdef F16_STORAGE
layout(std430, BINDING(F16_PARAMS)) readonly buffer EntryPairBuffer { f16vec2 entry_pairs[]; };
layout(std430, BINDING(F16_PARAMS)) readonly buffer EntryFourBuffer { f16vec4 entry_fours[]; };
layout(std430, BINDING(F16_PARAMS)) readonly buffer EntryWordBuffer { uint entry_words[]; };
layout(std430, BINDING(F16_PARAMS)) readonly buffer EntryBlockBuffer { uvec4 entry_blocks[]; };
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

#ifdef F16_STORAGE
// Returns word i % 4 of a block, without an index, because compilers would move an indexed vector to
// memory.
uint word_of(uvec4 block, uint i)
{
    uvec2 half_block = (i & 2u) != 0u ? block.zw : block.xy;
    return (i & 1u) != 0u ? half_block.y : half_block.x;
}

// Gathers entries of two features for GPUs: one load of 128 bits gets four entries, among which are
// mostly both corners that are neighbours in x. So a subgroup loads from fewer cache lines, one of which
// takes a clock. A load of the second corner from another block follows without a branch, so that all
// loads can be in flight; lanes that do not need it load word 0.
void gather_blocks(Level table, uvec3 cell, out vec4 corners[8])
{
    uvec4 blocks[4];
    uint near[4], far[4], others[4];
    [[unroll]] for (uint i = 0; i < 4u; i++) {
        near[i] = grid_entry(table, cell + corner_offset(2u * i));
        far[i] = grid_entry(table, cell + corner_offset(2u * i + 1u));
        blocks[i] = entry_blocks[near[i] / 4u];
        others[i] = entry_words[near[i] / 4u == far[i] / 4u ? 0u : far[i]];
    }
    [[unroll]] for (uint i = 0; i < 4u; i++) {
        uint second = near[i] / 4u == far[i] / 4u ? word_of(blocks[i], far[i]) : others[i];
        corners[2u * i] = vec4(unpackHalf2x16(word_of(blocks[i], near[i])), 0.0, 0.0);
        corners[2u * i + 1u] = vec4(unpackHalf2x16(second), 0.0, 0.0);
    }
}
#endif

// Returns the features of the entries at a cell's corners.
void gather(uint level, uvec3 cell, out vec4 corners[8])
{
    Level table = config.levels[level];
#ifdef F16_STORAGE
    if (CPU_KERNELS == 0u && FEATURES == 2u) {
        gather_blocks(table, cell, corners);
        return;
    }
#endif
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
