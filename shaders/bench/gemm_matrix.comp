#version 460
#extension GL_GOOGLE_include_directive : require
// C = A * B, row-major: a subgroup has M_TILES x N_TILES matrices of C.
#include "bench/matrix.glsl"

layout(constant_id = 3) const uint M_TILES = 2;
layout(constant_id = 4) const uint N_TILES = 2;

layout(std430, set = 0, binding = 0) readonly buffer BufferA { float16_t a[]; };
layout(std430, set = 0, binding = 1) readonly buffer BufferB { float16_t b[]; };
layout(std430, set = 0, binding = 2) writeonly buffer BufferC { ACCUMULATE c[]; };
layout(push_constant) uniform PushBlock { uint m, n, k, a_at, b_at, c_at; };

void multiply(uint row, uint column)
{
    MATRIX_SUM sum[M_TILES * N_TILES];
    [[unroll]] for (uint i = 0; i < times(M_TILES * N_TILES); i++)
        sum[i] = MATRIX_SUM(0.0);
    for (uint depth = 0; depth < k; depth += MATRIX_K) {
        MATRIX_A rows[M_TILES];
        [[unroll]] for (uint i = 0; i < times(M_TILES); i++)
            coopMatLoad(rows[i], a, a_at + (row + i * MATRIX_M) * k + depth, k, ROW_MAJOR);
        [[unroll]] for (uint j = 0; j < times(N_TILES); j++) {
            MATRIX_B columns;
            coopMatLoad(columns, b, b_at + depth * n + column + j * MATRIX_N, n, ROW_MAJOR);
            [[unroll]] for (uint i = 0; i < times(M_TILES); i++)
                sum[i * N_TILES + j] = coopMatMulAdd(rows[i], columns, sum[i * N_TILES + j]);
        }
    }
    [[unroll]] for (uint i = 0; i < times(M_TILES); i++)
        [[unroll]] for (uint j = 0; j < times(N_TILES); j++)
            coopMatStore(sum[i * N_TILES + j], c,
                         c_at + (row + i * MATRIX_M) * n + column + j * MATRIX_N, n, ROW_MAJOR);
}

void main()
{
    const uint height = M_TILES * MATRIX_M, width = N_TILES * MATRIX_N;
    uint columns = n / width, tiles = m / height * columns;
    uint first = gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID;
    for (uint tile = first; tile < tiles; tile += gl_NumWorkGroups.x * gl_NumSubgroups)
        multiply(tile / columns * height, tile % columns * width);
}
