// Selects the types of the precision for which a shader is compiled. Shaders include this file first,
// because it enables extensions.
//   FP16     f16 storage, packed f16 arithmetic
//   COOPMAT  f16 storage, products in cooperative matrices of MATRIX_M x MATRIX_N x MATRIX_K
//   neither  f32
//
//   STORAGE_T  weights, activations and gradients of activations in memory
//   COMPUTE_T  sums of eight consecutive products
//   ACCUM_T    accumulators of cooperative matrices; shaders.txt defines it
//
// shared/rounding.glsl converts to these types and rounds to types that need no hardware support.
// With TILED, for GPUs and for matrices on all devices, rows of activations are in shared memory;
// otherwise in registers or on a CPU device's stack. With ADDRESSES weights are read by address.
#extension GL_KHR_memory_scope_semantics : require
#if defined(FP16) || defined(COOPMAT)
#define F16_STORAGE
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#define STORAGE_T  float16_t
#define STORAGE_T2 f16vec2
#define STORAGE_T4 f16vec4
#else
#define STORAGE_T  float
#define STORAGE_T2 vec2
#define STORAGE_T4 vec4
#endif
#define COMPUTE_T  STORAGE_T
#define COMPUTE_T2 STORAGE_T2
#define COMPUTE_T4 STORAGE_T4
#ifdef ADDRESSES
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#endif
#ifdef COOPMAT
#define TILED
#extension GL_KHR_cooperative_matrix : require
#endif
#ifdef CONVERSIONS
#extension GL_NV_cooperative_matrix2 : require
#endif
