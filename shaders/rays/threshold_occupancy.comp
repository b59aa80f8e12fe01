#version 460
#extension GL_GOOGLE_include_directive : require
// Pass threshold_occupancy (one workgroup): sets the threshold above which cells are occupied to
// min(configured threshold, mean of the innermost cascade over all time bins).
//
//   buffer  shape                             access
//   REDUCE  REDUCE_OCCUPANCY [workgroup] f32  read
//   STATE   threshold                         write
#include "shared/common.glsl"
#include "rays/occupancy.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(REDUCE)) readonly buffer ReduceBuffer { float reduce[]; };

shared float sums[LOCAL_SIZE];

void main()
{
    uint groups = state.dispatches[DISPATCH_OCCUPANCY].x;
    float sum = 0.0;
    for (uint i = gl_LocalInvocationID.x; i < groups; i += LOCAL_SIZE)
        sum += reduce[REDUCE_OCCUPANCY + i];
    sums[gl_LocalInvocationID.x] = sum;
    barrier();
    if (gl_LocalInvocationID.x == 0u) {
        for (uint i = 1; i < LOCAL_SIZE; i++)
            sum += sums[i];
        state.threshold = min(config.occupancy_threshold, sum / float(TIME_BINS * CELLS));
    }
}
