#version 460
// Computes one product of cooperative matrices of a literal shape, by one subgroup, for the self-test
// (src/gpu/self_test_matrix.c).
//
//   buffer   shape                                 access
//   BufferA  [MATRIX_M][MATRIX_K] f16              read
//   BufferB  [MATRIX_N][MATRIX_K] f16: transposed  read
//   Sums     [MATRIX_M][MATRIX_N] ACCUM_T          read, write
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x_id = 1) in;

#define MATRIX_A coopmat<float16_t, gl_ScopeSubgroup, MATRIX_M, MATRIX_K, gl_MatrixUseA>
#define MATRIX_B coopmat<float16_t, gl_ScopeSubgroup, MATRIX_K, MATRIX_N, gl_MatrixUseB>
#define MATRIX_C coopmat<ACCUM_T, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>

layout(std430, set = 0, binding = 0) readonly buffer BufferA { float16_t a[]; };
layout(std430, set = 0, binding = 1) readonly buffer BufferB { float16_t b[]; };
layout(std430, set = 0, binding = 2) buffer Sums { ACCUM_T sums[]; };

void main()
{
    MATRIX_A left;
    MATRIX_B right;
    MATRIX_C sum;
    coopMatLoad(left, a, 0, MATRIX_K, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(right, b, 0, MATRIX_K, gl_CooperativeMatrixLayoutColumnMajor);
    coopMatLoad(sum, sums, 0, MATRIX_N, gl_CooperativeMatrixLayoutRowMajor);
    sum = coopMatMulAdd(left, right, sum);
    coopMatStore(sum, sums, 0, MATRIX_N, gl_CooperativeMatrixLayoutRowMajor);
}
