#version 460
#extension GL_GOOGLE_include_directive : require
// Test of a device: each invocation adds push.b times to a pair of sums, one of push.a pairs in turn, as
// field/accumulate.glsl does. The values are small multiples of 1/4 of both signs: their sums are exact
// in any order.
//
//   buffer                     shape                                             access
//   STATE                      loss scale, ray count (read), nonfinite (write)   read, write
//   GRADIENTS or ACCUMULATORS  [pair][2]                                         read, write
#ifdef SUM_FLOAT
#extension GL_EXT_shader_atomic_float : require
#endif
#ifdef SUM_F16
#extension GL_NV_shader_atomic_fp16_vector : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "shared/common.glsl"
#include "shared/f16.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };

const uint FEATURES = 2u;
#include "field/accumulate.glsl"

void main()
{
    uint first = gl_GlobalInvocationID.x * push.b;
    for (uint i = first; i < first + push.b; i++) {
        uint pair = i % push.a;
        vec2 values = 0.25 * vec2(i % 3u == 0u ? -1.0 : float(i % 3u), i % 2u);
#if defined(SUM_F16) || defined(SUM_F16_CAS)
        add_gradients(pair, vec4(values, 0.0, 0.0));
#else
        add_gradient(2u * pair, values.x);
        add_gradient(2u * pair + 1u, values.y);
#endif
    }
}
