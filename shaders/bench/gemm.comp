#version 460
#extension GL_GOOGLE_include_directive : require
// Measures C = A * B (vknerf bench): the rate of the matrix products of wide layers. A and C are in
// blocks, B is in panels (field/product.glsl).
//
//   buffer         shape                                       access
//   0: A (SOURCE)  [m / 16][k][m % 16] STORAGE_T from a_at on  read
//   1: B (PANEL)   [n / 16][k][n % 16] STORAGE_T from b_at on  read
//   2: C           [m / 16][n][m % 16] STORAGE_T from c_at on  write
#include "shared/precision.glsl"
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require

layout(local_size_x_id = 1) in;
layout(constant_id = 0) const uint SUBGROUP_SIZE = 32;
layout(constant_id = 1) const uint LOCAL_SIZE = 256;
layout(constant_id = 2) const uint CPU_KERNELS = 0;
layout(constant_id = 3) const uint M_BLOCKS = 1;
layout(constant_id = 4) const uint N_PANELS = 1;

layout(push_constant) uniform PushBlock { uint m, n, k, a_at, b_at, c_at; };

layout(std430, set = 0, binding = 2) writeonly buffer BufferC { STORAGE_T target[]; };
#define SOURCE 0
#define PANEL  1
#include "field/chunks.glsl"

#ifdef FP16
const bool PACKED_PRODUCTS = true;
#else
const bool PACKED_PRODUCTS = false;
#endif
const bool ROUNDS_SUMS = false;
float round_sum(float sum)
{
    return sum;
}

#include "field/product.glsl"

uint source_chunk(uint block, uint depth)
{
    return a_at / CHUNK + block * (k / CHUNK_DEPTH) + depth;
}

uint panel_chunk(uint panel, uint depth)
{
    return b_at / CHUNK + panel * (k / CHUNK_DEPTH) + depth;
}

uint target_at(uint row, uint column)
{
    return c_at + (row / BLOCK_ROWS * n + column) * BLOCK_ROWS + row % BLOCK_ROWS;
}

void finish(uint row, uint column, float sum)
{
    target[target_at(row, column)] = STORAGE_T(sum);
}

#if defined(COOPMAT) && !defined(STAGED)
void finish_matrix(inout MATRIX_SUM(ACCUM_T) sum, uint row, uint column)
{
    coopMatStore(MATRIX_SUM(float16_t)(sum), target, target_at(row, column), BLOCK_ROWS, COLUMN_MAJOR);
}
#endif

void main()
{
    begin_products();
    multiply_all(m / BLOCK_ROWS, n / BLOCK_ROWS, k / CHUNK_DEPTH, gl_WorkGroupID.x, gl_NumWorkGroups.x);
}
