// The occupancy grid: cascades of resolution^3 cells around (0.5, 0.5, 0.5), cascade c of side 2^c,
// cells in Morton order. Bits come 32 cells to a word; behind them one word for each block of
// OCCUPANCY_BLOCK^3 cells says whether any of its cells is occupied. When space is contracted a last
// cascade of as many cells covers all of contracted space, for what lies outside of the cube; its cells
// inside of that are never occupied. Of a scene that moves all of that may be there once for each slice of
// time, from 0 to 1.
#include "shared/contraction.glsl"

layout(constant_id = SPEC_RESOLUTION) const uint RESOLUTION = 128;
layout(constant_id = SPEC_CASCADES) const uint CASCADES = 1;
layout(constant_id = SPEC_TIME_BINS) const uint TIME_BINS = 1;

// Cascades that are cubes.
const uint CUBE_CASCADES = CONTRACTION == CONTRACTION_CUBE ? CASCADES - 1u : CASCADES;
const uint CELLS = RESOLUTION * RESOLUTION * RESOLUTION;
const uint BLOCK_CELLS = OCCUPANCY_BLOCK * OCCUPANCY_BLOCK * OCCUPANCY_BLOCK;
const uint TIME_BIN_CELLS = CASCADES * CELLS;
const uint BLOCK_BASE = TIME_BINS * TIME_BIN_CELLS / 32u;

// The slice that has a moment.
uint time_bin_of(float time)
{
    return TIME_BINS == 1u ? 0u : min(uint(max(time, 0.0) * float(TIME_BINS)), TIME_BINS - 1u);
}

uint morton_spread(uint v)
{
    v = (v | v << 16) & 0x030000ffu;
    v = (v | v << 8) & 0x0300f00fu;
    v = (v | v << 4) & 0x030c30c3u;
    return (v | v << 2) & 0x09249249u;
}

uint morton_gather(uint v)
{
    v &= 0x09249249u;
    v = (v | v >> 2) & 0x030c30c3u;
    v = (v | v >> 4) & 0x0300f00fu;
    v = (v | v >> 8) & 0x030000ffu;
    return (v | v >> 16) & 0x3ffu;
}

uint morton_encode(uvec3 cell)
{
    return morton_spread(cell.x) | morton_spread(cell.y) << 1 | morton_spread(cell.z) << 2;
}

uvec3 morton_decode(uint code)
{
    return uvec3(morton_gather(code), morton_gather(code >> 1), morton_gather(code >> 2));
}

// Position of a point given relative to a cell's corner (0..1), in training space.
vec3 cell_position(uint cascade, uvec3 cell, vec3 inside)
{
    vec3 unit = (vec3(cell) + inside) / float(RESOLUTION);
    if (CONTRACTION == CONTRACTION_CUBE && cascade == CUBE_CASCADES)
        return expand((unit - 0.5) * (2.0 * CONTRACTED)) * (0.5 * config.aabb_scale) + 0.5;
    return (unit - 0.5) * float(1u << cascade) + 0.5;
}

// Whether a cell of contracted space lies outside of the cube.
bool lies_outside(uvec3 cell)
{
    uvec3 inner = cell - RESOLUTION / 4u;
    return any(greaterThanEqual(inner, uvec3(RESOLUTION / 2u)));
}
