#version 460
#extension GL_GOOGLE_include_directive : require
// Per parameter, once a period: the debiased moving average of the masters that inference uses. One
// update with the decay of all the steps passed stands for one in each step, at a sixteenth of the
// traffic.
// FP16: and its f16 copy.
#include "shared/precision.glsl"
#include "shared/common.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
layout(std430, BINDING(PARAMS)) readonly buffer ParamBuffer { float params[]; };
layout(std430, BINDING(AVERAGE)) buffer AverageBuffer { float average[]; };
#ifdef FP16
layout(std430, BINDING(F16_AVERAGE)) writeonly buffer F16Buffer { float16_t f16_params[]; };

#include "optim/f16_params.glsl"
#endif

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint i = gl_GlobalInvocationID.x; i < config.param_count; i += stride) {
        float value = mix(average[i], params[i], state.average_weight);
        average[i] = value;
#ifdef FP16
        put_f16(i, value);
#endif
    }
}
