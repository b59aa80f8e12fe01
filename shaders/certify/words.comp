#version 460
#extension GL_GOOGLE_include_directive : require
// Test of a device: writes a word of each block of push.a words of a buffer, and counts invocations.
//
//   buffer     shape                                                access
//   GRADIENTS  [word] u32                                           write
//   STATE      good_steps: number of invocations                    read, write
#include "shared/common.glsl"

layout(std430, BINDING(GRADIENTS)) writeonly buffer ResultBuffer { uint results[]; };
layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };

void main()
{
    uint i = gl_GlobalInvocationID.x;
    atomicAdd(state.good_steps, 1u);
    if (i < push.b)
        results[i * push.a] = i * 2654435761u + 1u;
}
