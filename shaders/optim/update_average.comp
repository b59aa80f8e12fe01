#version 460
#extension GL_GOOGLE_include_directive : require
// Per parameter, once a period: the debiased moving average of the masters that inference uses. One
// update with the decay of all the steps passed stands for one in each step, at a sixteenth of the
// traffic.
// HALF_COPIES: and its f16 copy.
#ifdef HALF_COPIES
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(PARAMS)) readonly buffer ParamBuffer { float params[]; };
layout(std430, BINDING(AVERAGE)) buffer AverageBuffer { float average[]; };
#ifdef HALF_COPIES
layout(std430, BINDING(HALF_AVERAGE)) writeonly buffer HalfBuffer { float16_t halves[]; };

#include "optim/halves.glsl"
#endif

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint i = gl_GlobalInvocationID.x; i < config.param_count; i += stride) {
        float value = mix(average[i], params[i], state.average_weight);
        average[i] = value;
#ifdef HALF_COPIES
        put_half(i, value);
#endif
    }
}
