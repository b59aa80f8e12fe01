#version 460
#extension GL_GOOGLE_include_directive : require
// Pass pack_occupancy: packs the occupancy bits of one 8x8x8 block of cells per invocation, and writes
// the block's own word. push.c: cascade, counted through all time bins. A cell is also occupied if the
// bits of the previous, finer cascade have an occupied cell inside the cell.
//
//   buffer          shape                                              access
//   STATE           threshold                                          read
//   OCCUPANCY       [time bin][cascade][cell] f32                      read
//   OCCUPANCY_BITS  [time bin][cascade][cell] 1 bit, then [block] u32  read, write
#include "shared/common.glsl"
#include "rays/occupancy.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(OCCUPANCY)) readonly buffer OccupancyBuffer { float occupancy[]; };
layout(std430, BINDING(OCCUPANCY_BITS)) buffer BitBuffer { uint bits[]; };

bool finer_occupied(uvec3 cell)
{
    uint cascade = push.c % CASCADES;
    // The finer cascade fills the middle half of this one.
    uvec3 inner = cell - RESOLUTION / 4u;
    if (cascade == 0u || cascade >= CUBE_CASCADES || any(greaterThanEqual(inner, uvec3(RESOLUTION / 2u))))
        return false;
    uint first = (push.c - 1u) * CELLS + morton_encode(2u * inner); // eight cells: one byte
    return (bits[first >> 5] >> (first & 31u) & 0xffu) != 0u;
}

void main()
{
    uint block = gl_GlobalInvocationID.x;
    if (block >= CELLS / BLOCK_CELLS)
        return;
    block += push.c * (CELLS / BLOCK_CELLS);
    uint any_bits = 0;
    for (uint word = 0; word < BLOCK_CELLS / 32u; word++) {
        uint packed = 0;
        for (uint k = 0; k < 32u; k++) {
            uint index = block * BLOCK_CELLS + word * 32u + k;
            bool is_occupied = occupancy[index] > state.threshold;
            if (!is_occupied && CASCADES > 1u)
                is_occupied = finer_occupied(morton_decode(index % CELLS));
            packed |= is_occupied ? 1u << k : 0u;
        }
        bits[block * (BLOCK_CELLS / 32u) + word] = packed;
        any_bits |= packed;
    }
    bits[BLOCK_BASE + block] = any_bits;
}
