#version 460
#extension GL_GOOGLE_include_directive : require
// Per parameter, once a period: the debiased moving average of the masters that inference uses. One
// update with the decay of all the steps passed stands for one in each step, at a sixteenth of the
// traffic.
#include "shared/common.glsl"

layout(std430, set = 0, binding = BIND_STATE) readonly buffer StateBuffer { State state; };
layout(std430, set = 0, binding = BIND_PARAMS) readonly buffer ParamBuffer { float params[]; };
layout(std430, set = 0, binding = BIND_AVERAGE) buffer AverageBuffer { float average[]; };

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint i = gl_GlobalInvocationID.x; i < config.param_count; i += stride)
        average[i] = mix(average[i], params[i], state.average_weight);
}
