// Defines the layout of the occupancy grid. Cascades of RESOLUTION^3 cells surround (0.5, 0.5, 0.5);
// cascade c has side 2^c; cells are in Morton order. Each word holds the bits of 32 cells. One word
// per block of OCCUPANCY_BLOCK^3 cells follows, which is 0 if the block is empty. In contracted space
// a last cascade covers all of contracted space, for points outside of the cube; cells of this
// cascade inside of the cube are never occupied. A dynamic scene may have the whole grid once per
// time bin.
// Passes: all of the occupancy grid; march_rays, mesh_points, begin_step.
#include "shared/contraction.glsl"

layout(constant_id = SPEC_RESOLUTION) const uint RESOLUTION = 128;
layout(constant_id = SPEC_CASCADES) const uint CASCADES = 1;
layout(constant_id = SPEC_TIME_BINS) const uint TIME_BINS = 1;

// Number of cascades that are not contracted.
const uint CUBE_CASCADES = CONTRACTION == CONTRACTION_CUBE ? CASCADES - 1u : CASCADES;
const uint CELLS = RESOLUTION * RESOLUTION * RESOLUTION;
const uint BLOCK_CELLS = OCCUPANCY_BLOCK * OCCUPANCY_BLOCK * OCCUPANCY_BLOCK;
const uint TIME_BIN_CELLS = CASCADES * CELLS;
const uint BLOCK_BASE = TIME_BINS * TIME_BIN_CELLS / 32u;

// Returns the time bin of a time from 0 to 1.
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

// Returns the position in training space of the point `inside` a cell, 0..1 per axis.
vec3 cell_position(uint cascade, uvec3 cell, vec3 inside)
{
    vec3 unit = (vec3(cell) + inside) / float(RESOLUTION);
    if (CONTRACTION == CONTRACTION_CUBE && cascade == CUBE_CASCADES)
        return expand((unit - 0.5) * (2.0 * CONTRACTED)) * (0.5 * config.aabb_scale) + 0.5;
    return (unit - 0.5) * float(1u << cascade) + 0.5;
}

// Returns whether a cell of the contracted cascade lies outside of the cube.
bool lies_outside(uvec3 cell)
{
    uvec3 inner = cell - RESOLUTION / 4u;
    return any(greaterThanEqual(inner, uvec3(RESOLUTION / 2u)));
}
