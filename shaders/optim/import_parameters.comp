#version 460
#extension GL_GOOGLE_include_directive : require
// Per entry: the means of all ranks' numbers, bit by bit, in the place of this rank's. There are no gradients again.
#include "shared/common.glsl"
#include "optim/parameter_averaging.glsl"

layout(constant_id = SPEC_ENTRY_SIZE) const uint ENTRY_SIZE = 2;

layout(std430, BINDING(PARAMS)) writeonly buffer ParamBuffer { uint params[]; };
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { uint gradients[]; };

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint n = gl_GlobalInvocationID.x; n < push.c; n += stride) {
        if (steps[push.a + n] == UNTOUCHED)
            continue;
        uint first = push.d + n * push.e;
        [[unroll]] for (uint k = 0; k < ENTRY_SIZE; k++)
            if (k < push.e) {
                params[first + k] = gradients[first + k];
                gradients[first + k] = 0u;
            }
    }
}
