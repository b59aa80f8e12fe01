// Declares the types of cooperative matrices of MATRIX_M x MATRIX_N x MATRIX_K for shaders of vknerf
// bench; sums are of type ACCUM_T.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 1) in;
layout(constant_id = 2) const uint ROLL_LOOPS = 0;

#define MATRIX_A coopmat<float16_t, gl_ScopeSubgroup, MATRIX_M, MATRIX_K, gl_MatrixUseA>
#define MATRIX_B coopmat<float16_t, gl_ScopeSubgroup, MATRIX_K, MATRIX_N, gl_MatrixUseB>
#define MATRIX_SUM coopmat<ACCUM_T, gl_ScopeSubgroup, MATRIX_M, MATRIX_N, gl_MatrixUseAccumulator>
#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor

// Returns `count` as loop_bound() of field/unrolling.glsl does.
uint loop_bound(uint count)
{
    return ROLL_LOOPS != 0u ? count + gl_NumWorkGroups.z - 1u : count;
}
