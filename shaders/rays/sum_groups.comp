#version 460
#extension GL_GOOGLE_include_directive : require
// Pass sum_groups: computes per workgroup the sum of the innermost cascade's values in the order of
// update_occupancy, so that the results are bit-identical: the rows of a workgroup process groups of
// four cells in turn. There is one time bin.
//
//   buffer     shape                             access
//   OCCUPANCY  [cascade][cell] f32               read
//   REDUCE     REDUCE_OCCUPANCY [workgroup] f32  write
#include "shared/common.glsl"
#include "rays/occupancy.glsl"

layout(constant_id = SPEC_TILE_ROWS) const uint TILE_ROWS = 64;

layout(std430, BINDING(OCCUPANCY)) readonly buffer OccupancyBuffer { float occupancy[]; };
layout(std430, BINDING(REDUCE)) writeonly buffer ReduceBuffer { float reduce[]; };

shared float sums[TILE_ROWS];

float sum_row(uint row)
{
    float sum = 0.0;
    for (uint group = gl_WorkGroupID.x * TILE_ROWS + row; group < CELLS / 4u;
         group += gl_NumWorkGroups.x * TILE_ROWS) {
        float added = 0.0;
        for (uint k = 0; k < 4u; k++)
            added += max(occupancy[4u * group + k], 0.0);
        sum += added;
    }
    return sum;
}

void main()
{
    for (uint row = gl_LocalInvocationID.x; row < TILE_ROWS; row += LOCAL_SIZE)
        sums[row] = sum_row(row);
    barrier();
    if (gl_LocalInvocationID.x != 0u)
        return;
    float sum = sums[0];
    for (uint i = 1; i < TILE_ROWS; i++)
        sum += sums[i];
    reduce[REDUCE_OCCUPANCY + gl_WorkGroupID.x] = sum;
}
