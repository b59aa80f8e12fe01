#version 460
#extension GL_GOOGLE_include_directive : require
// Pass export_parameters (parameter averaging): multiplies the values of each optimiser entry by this
// rank's share of the steps and stores the products in GRADIENTS, which are zero between two steps.
// The mean of the products over the ranks is the weighted average of the values. No arithmetic follows
// the all-reduce, so that devices cannot round differently.
//
//   buffer     shape                                                            access
//   PARAMS     [parameter] f32: parameters, or another buffer that is averaged  read
//              [parameter] u32: packed moments, with push.f                     read
//   STEPS      [entry] f32: the share                                           read
//   GRADIENTS  [parameter] f32                                                  write
#include "shared/common.glsl"
#include "optim/parameter_averaging.glsl"
#include "optim/moments.glsl"

layout(constant_id = SPEC_ENTRY_SIZE) const uint ENTRY_SIZE = 2;

layout(std430, BINDING(PARAMS)) readonly buffer ParamBuffer { uint params[]; };
layout(std430, BINDING(GRADIENTS)) writeonly buffer GradientBuffer { float gradients[]; };

float value_of(uint word)
{
    return push.f == PACKED_MOMENT1   ? unpack_moment1(word)
           : push.f == PACKED_MOMENT2 ? unpack_moment2(word)
                                      : uintBitsToFloat(word);
}

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint n = gl_GlobalInvocationID.x; n < push.c; n += stride) {
        float share = steps[push.a + n];
        if (share <= 0.0) // GRADIENTS already holds zero
            continue;
        uint first = push.d + n * push.e;
        [[unroll]] for (uint k = 0; k < ENTRY_SIZE; k++)
            if (k < push.e)
                gradients[first + k] = share * value_of(params[first + k]);
    }
}
