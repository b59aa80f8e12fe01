#version 460
#extension GL_GOOGLE_include_directive : require
// Per gradient: sum of squares by workgroup. An infinity or NaN anywhere makes the sum not finite.
#include "shared/common.glsl"
#include "optim/gradients.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(REDUCE)) writeonly buffer ReduceBuffer { float reduce[]; };

shared float sums[LOCAL_SIZE];

void main()
{
    // Unscaled before it is squared: a finite gradient must not overflow here.
    float unscale = 1.0 / state.loss_scale;
    // A stretch in a row for each workgroup: a CPU's prefetching follows it.
    uint rows = (config.param_count - 1u) / (gl_NumWorkGroups.x * LOCAL_SIZE) + 1u;
    uint first = gl_WorkGroupID.x * rows * LOCAL_SIZE;
    uint end = min(config.param_count, first + rows * LOCAL_SIZE);
    float sum = 0.0;
    for (uint i = first + gl_LocalInvocationIndex; i < end; i += LOCAL_SIZE) {
        float value = get_gradient(i) * unscale;
        sum += value * value;
    }
    sums[gl_LocalInvocationIndex] = sum;
    barrier();
    if (gl_LocalInvocationIndex == 0u) {
        for (uint i = 1; i < LOCAL_SIZE; i++)
            sum += sums[i];
        reduce[REDUCE_GRADIENT + gl_WorkGroupID.x] = sum;
    }
}
