#version 460
#extension GL_GOOGLE_include_directive : require
// Pass import_step_counts (parameter averaging): computes for each entry this rank's share (the
// rank's steps divided by the ranks' mean) and the step count with which all ranks continue. A count
// never exceeds Control.min_updates, the updates of the rank with the fewest.
//
//   buffer         shape                                              access
//   CONTROL        min_updates                                        read
//   STEPS          [entry] f32: mean of the steps, then the share     read, write
//   STEP_COUNTS    [entry] u32                                        read, write
//   SYNCED_COUNTS  [entry] u32                                        read, write
#include "shared/common.glsl"
#include "optim/parameter_averaging.glsl"

layout(std430, BINDING(CONTROL)) readonly buffer ControlBuffer { Control control; };
layout(std430, BINDING(STEP_COUNTS)) buffer CountBuffer { uint counts[]; };
layout(std430, BINDING(SYNCED_COUNTS)) buffer SyncedCountBuffer { uint synced_counts[]; };

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint n = gl_GlobalInvocationID.x; n < push.c; n += stride) {
        uint i = push.a + n;
        float mean = steps[i];
        uint count = min(synced_counts[i] + uint(ceil(mean)), control.min_updates);
        steps[i] = mean > 0.0 ? float(counts[i] - synced_counts[i]) / mean : UNTOUCHED;
        counts[i] = count;
        synced_counts[i] = count;
    }
}
