#version 460
#extension GL_GOOGLE_include_directive : require
// Pass round_parameters: writes the f16 copies of parameters that do not come from update_weights:
// initial parameters, or parameters of a checkpoint.
//
//   buffer      shape                                             access
//   PARAMS      [parameter] f32                                   read
//   F16_PARAMS  [parameter] f16, then the transposed MLP weights  write
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#include "shared/common.glsl"

layout(std430, BINDING(PARAMS)) readonly buffer ParamBuffer { float params[]; };
layout(std430, BINDING(F16_PARAMS)) writeonly buffer F16Buffer { float16_t f16_params[]; };

#include "optim/f16_params.glsl"

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint i = gl_GlobalInvocationID.x; i < config.param_count; i += stride)
        put_f16(i, params[i]);
}
