#version 460
#extension GL_GOOGLE_include_directive : require
// Pass sum_cells: computes per workgroup the sum of the innermost cascade's values in all time bins,
// for the mean that threshold_occupancy uses.
//
//   buffer     shape                             access
//   OCCUPANCY  [time bin][cascade][cell] f32     read
//   REDUCE     REDUCE_OCCUPANCY [workgroup] f32  write
#include "shared/common.glsl"
#include "rays/occupancy.glsl"

layout(std430, BINDING(OCCUPANCY)) readonly buffer OccupancyBuffer { float occupancy[]; };
layout(std430, BINDING(REDUCE)) writeonly buffer ReduceBuffer { float reduce[]; };

shared float sums[LOCAL_SIZE];

void main()
{
    float sum = 0.0;
    for (uint i = gl_GlobalInvocationID.x; i < TIME_BINS * CELLS; i += gl_NumWorkGroups.x * LOCAL_SIZE)
        sum += max(occupancy[i / CELLS * TIME_BIN_CELLS + i % CELLS], 0.0);
    sums[gl_LocalInvocationID.x] = sum;
    barrier();
    if (gl_LocalInvocationID.x != 0u)
        return;
    for (uint i = 1; i < LOCAL_SIZE; i++)
        sum += sums[i];
    reduce[REDUCE_OCCUPANCY + gl_WorkGroupID.x] = sum;
}
