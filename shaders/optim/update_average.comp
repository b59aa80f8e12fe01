#version 460
#extension GL_GOOGLE_include_directive : require
// Pass update_average: moves the debiased moving average of the parameters, which inference uses,
// towards the parameters; with FP16 also writes the average's f16 copy. The pass runs once per update
// interval, with the decay of all steps of the interval: as long as parameters change slowly, the
// result is the same as with an update in every step, at a sixteenth of the memory traffic.
//
//   buffer       shape                       access
//   STATE        average_weight              read
//   PARAMS       [parameter] f32             read
//   AVERAGE      [parameter] f32             read, write
//   F16_AVERAGE  [parameter] f16, with FP16  write
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
