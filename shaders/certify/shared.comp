#version 460
#extension GL_GOOGLE_include_directive : require
// Test of a device: the whole shared memory of a workgroup. In each of push.a rounds every invocation
// checks the words of another invocation, then writes the next round's words. A missing barrier makes
// some words wrong.
//
//   buffer     shape                                                          access
//   GRADIENTS  [workgroup] u32: number of words that are wrong at the end     write
#include "shared/common.glsl"

layout(std430, BINDING(GRADIENTS)) buffer ResultBuffer { uint results[]; };

// Words per invocation.
layout(constant_id = SPEC_RESOLUTION) const uint WORDS = 32;
shared uint words[WORDS * LOCAL_SIZE];

uint expected(uint word, uint round)
{
    return word * 2654435761u + round + gl_WorkGroupID.x;
}

void main()
{
    uint self = gl_LocalInvocationID.x, wrong = 0u;
    for (uint i = self; i < WORDS * LOCAL_SIZE; i += LOCAL_SIZE)
        words[i] = expected(i, 0u);
    for (uint round = 0u; round < push.a; round++) {
        barrier();
        // The words of the next invocation, of which each invocation has every LOCAL_SIZE-th.
        uint other = (self + 1u + round) % LOCAL_SIZE;
        for (uint i = other; i < WORDS * LOCAL_SIZE; i += LOCAL_SIZE)
            wrong += words[i] == expected(i, round) ? 0u : 1u;
        barrier();
        for (uint i = self; i < WORDS * LOCAL_SIZE; i += LOCAL_SIZE)
            words[i] = expected(i, round + 1u);
    }
    atomicAdd(results[gl_WorkGroupID.x], wrong);
}
