#version 460
// Adds f32 numbers from many invocations at once for the self-test (src/gpu/self_test_sums.c), with the
// code that sums gradients: SUM_FLOAT or SUM_CAS of field/accumulate.glsl.
//
//   buffer  shape      access
//   Sums    [sum] f32  read, write
#ifdef SUM_FLOAT
#extension GL_EXT_shader_atomic_float : require
#endif

layout(local_size_x_id = 1) in;

#define BINDING(NAME) set = 0, binding = 0
#include "field/accumulate.glsl"

// Each invocation adds `rounds` times to one of `sums` sums, which begin at `first`.
layout(push_constant) uniform PushBlock { uint first, sums, rounds; };

void main()
{
    uint invocation = gl_GlobalInvocationID.x;
    // Quarters of small integers, whose sums are exact in any order.
    for (uint r = 0u; r < rounds; r++)
        add_gradient(first + invocation % sums, 0.25 * float(invocation + r & 7u));
}
