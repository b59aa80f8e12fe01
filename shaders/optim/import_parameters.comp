#version 460
#extension GL_GOOGLE_include_directive : require
// Pass import_parameters (parameter averaging): copies the average over all ranks from GRADIENTS back,
// unchanged, and sets GRADIENTS to zero again. Entries that no rank has updated keep their values.
//
//   buffer     shape                                                            access
//   STEPS      [entry] f32: the share, or UNTOUCHED                             read
//   GRADIENTS  [parameter] u32: averages                                        read, write
//   PARAMS     [parameter] u32: parameters, or another buffer that is averaged  write
//              [parameter] u32: packed moments, with push.f                     read, write
#include "shared/common.glsl"
#include "optim/parameter_averaging.glsl"
#include "optim/moments.glsl"

layout(constant_id = SPEC_ENTRY_SIZE) const uint ENTRY_SIZE = 2;

layout(std430, BINDING(PARAMS)) buffer ParamBuffer { uint params[]; };
layout(std430, BINDING(GRADIENTS)) buffer GradientBuffer { uint gradients[]; };

// Returns the word of parameter i with an average in it.
uint word_of(uint i, uint average)
{
    return push.f == PACKED_MOMENT1   ? params[i] & 0xffffu | round_moment1(uintBitsToFloat(average))
           : push.f == PACKED_MOMENT2 ? params[i] & 0xffff0000u | round_moment2(uintBitsToFloat(average))
                                      : average;
}

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint n = gl_GlobalInvocationID.x; n < push.c; n += stride) {
        if (steps[push.a + n] == UNTOUCHED)
            continue;
        uint first = push.d + n * push.e;
        [[unroll]] for (uint k = 0; k < ENTRY_SIZE; k++)
            if (k < push.e) {
                params[first + k] = word_of(first + k, gradients[first + k]);
                gradients[first + k] = 0u;
            }
    }
}
