#version 460
#extension GL_GOOGLE_include_directive : require
// Per entry: the steps that this rank has taken with it since all ranks were the same. The host makes them the
// mean over all ranks.
#include "shared/common.glsl"
#include "optim/parameter_averaging.glsl"

layout(std430, BINDING(STEP_COUNTS)) readonly buffer CountBuffer { uint counts[]; };
layout(std430, BINDING(SYNCED_COUNTS)) readonly buffer BeforeBuffer { uint before[]; };

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint n = gl_GlobalInvocationID.x; n < push.c; n += stride) {
        uint i = push.a + n;
        steps[i] = float(counts[i] - before[i]);
    }
}
