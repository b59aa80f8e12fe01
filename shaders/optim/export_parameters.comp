#version 460
#extension GL_GOOGLE_include_directive : require
// Per entry: its numbers times this rank's share, in the place of gradients, of which there are none between two
// steps. Their mean over all ranks is the weighted one: nothing that devices may round differently comes behind it.
#include "shared/common.glsl"
#include "optim/parameter_averaging.glsl"

layout(constant_id = SPEC_ENTRY_SIZE) const uint ENTRY_SIZE = 2;

layout(std430, BINDING(PARAMS)) readonly buffer ParamBuffer { float params[]; };
layout(std430, BINDING(GRADIENTS)) writeonly buffer GradientBuffer { float gradients[]; };

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint n = gl_GlobalInvocationID.x; n < push.c; n += stride) {
        float share = steps[push.a + n];
        if (share <= 0.0) // as gradients are
            continue;
        uint first = push.d + n * push.e;
        [[unroll]] for (uint k = 0; k < ENTRY_SIZE; k++)
            if (k < push.e)
                gradients[first + k] = share * params[first + k];
    }
}
