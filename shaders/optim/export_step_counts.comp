#version 460
#extension GL_GOOGLE_include_directive : require
// Pass export_step_counts (parameter averaging): stores the number of optimiser steps that this rank
// has taken with each entry since the last averaging. The host averages them over the ranks.
//
//   buffer         shape                                      access
//   STEP_COUNTS    [entry] u32                                read
//   SYNCED_COUNTS  [entry] u32: counts at the last averaging  read
//   STEPS          [entry] f32                                write
#include "shared/common.glsl"
#include "optim/parameter_averaging.glsl"

layout(std430, BINDING(STEP_COUNTS)) readonly buffer CountBuffer { uint counts[]; };
layout(std430, BINDING(SYNCED_COUNTS)) readonly buffer SyncedCountBuffer { uint synced_counts[]; };

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint n = gl_GlobalInvocationID.x; n < push.c; n += stride) {
        uint i = push.a + n;
        steps[i] = float(counts[i] - synced_counts[i]);
    }
}
