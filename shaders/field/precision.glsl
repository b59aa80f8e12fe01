// Extensions of the precision that a program is compiled for, before anything else:
//   FP16      16-bit weights and values, packed arithmetic
//   COOPMAT   the same in cooperative matrices of MATRIX_M x MATRIX_N x MATRIX_K
//   neither   FP32
// TILED: rows of values lie in tiles in shared memory, as GPUs want them and matrices everywhere; else
// in registers, or a CPU device's stack.
// With ADDRESSES, FP16 and FP32 read their weights by 64-bit addresses.
#extension GL_KHR_memory_scope_semantics : require
#if defined(FP16) || defined(COOPMAT)
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#endif
// What values are kept as.
#if defined(FP16) || defined(COOPMAT)
#define REAL float16_t
#define REAL2 f16vec2
#define REAL4 f16vec4
#else
#define REAL float
#define REAL2 vec2
#define REAL4 vec4
#endif
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
