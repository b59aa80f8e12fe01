#version 460
#extension GL_GOOGLE_include_directive : require
// Measures matrix products in registers (vknerf bench), in chains of sum += a * b with two b in turn.
//
//   buffer  shape                                   access
//   Inputs  a, first, second: matrices of f16       read
//   Sums    [subgroup][MATRIX_M][MATRIX_N] ACCUM_T  write
#include "bench/matrix.glsl"

const uint CHAINS = 8; // as MATRIX_CHAINS and MATRIX_STEPS in src/bench/peak.c
const uint STEPS = 8;

layout(std430, set = 0, binding = 0) readonly buffer Inputs { float16_t inputs[]; };
layout(std430, set = 0, binding = 1) writeonly buffer Sums { ACCUM_T sums[]; };
// a_at, first_at, second_at: offsets of the matrices in inputs.
layout(push_constant) uniform PushBlock { uint rounds, a_at, first_at, second_at; };

void main()
{
    MATRIX_A a;
    MATRIX_B first, second;
    MATRIX_SUM sum[CHAINS];
    coopMatLoad(a, inputs, a_at, MATRIX_K, ROW_MAJOR);
    coopMatLoad(first, inputs, first_at, MATRIX_N, ROW_MAJOR);
    coopMatLoad(second, inputs, second_at, MATRIX_N, ROW_MAJOR);
    [[unroll]] for (uint c = 0; c < loop_bound(CHAINS); c++)
        sum[c] = MATRIX_SUM(float(c));
    for (uint r = 0; r < rounds; r++)
        [[unroll]] for (uint s = 0; s < loop_bound(STEPS); s++)
            [[unroll]] for (uint c = 0; c < loop_bound(CHAINS); c++) {
                sum[c] = coopMatMulAdd(a, first, sum[c]);
                sum[c] = coopMatMulAdd(a, second, sum[c]);
            }
    MATRIX_SUM total = sum[0];
    [[unroll]] for (uint c = 1; c < loop_bound(CHAINS); c++)
        total += sum[c];
    uint subgroup = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID;
    coopMatStore(total, sums, subgroup * MATRIX_M * MATRIX_N, MATRIX_N, ROW_MAJOR);
}
