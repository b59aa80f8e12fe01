#version 460
// Measures multiply-adds in registers (vknerf bench), in independent chains sum = sum * x + y.
//   FP16  packed f16, two at a time; without FP16 f32
//
//   buffer  shape              access
//   Inputs  x, y, [chain] f32  read
//   Sums    [invocation] f32   write
#ifdef FP16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define STORAGE_T f16vec2
#define CHAINS 8u
#else
#define STORAGE_T float
#define CHAINS 12u
#endif
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 1) in;

layout(constant_id = 2) const uint STEPS = 32;

// src/bench/peak.c has the same number of chains.
layout(std430, set = 0, binding = 0) readonly buffer Inputs { float inputs[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Sums { float sums[]; };
layout(push_constant) uniform PushBlock { uint rounds; };

void main()
{
    STORAGE_T x = STORAGE_T(inputs[0]), y = STORAGE_T(inputs[1]), sum[CHAINS];
    // Start values differ between invocations, so that compilers cannot share a chain's result.
    [[unroll]] for (uint c = 0; c < CHAINS; c++)
        sum[c] = STORAGE_T(inputs[2u + c] + float(gl_LocalInvocationID.x & 7u));
    for (uint r = 0; r < rounds; r++)
        [[unroll]] for (uint s = 0; s < STEPS; s++)
            [[unroll]] for (uint c = 0; c < CHAINS; c++)
                sum[c] = sum[c] * x + y;
    float total = 0.0;
    [[unroll]] for (uint c = 0; c < CHAINS; c++)
#ifdef FP16
        total += float(sum[c].x) + float(sum[c].y);
#else
        total += sum[c];
#endif
    sums[gl_GlobalInvocationID.x] = total;
}
