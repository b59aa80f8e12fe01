#version 460
#extension GL_GOOGLE_include_directive : require
// Pass scatter_gradients of a field in GLSL: computes the gradients of the parameters from the
// gradients of the features at each live sample, and accumulates them as in field/accumulate.glsl.
//
//   buffer                     shape                                                      access
//   STATE                      live_count, loss scale (read), nonfinite (write)           read, write
//   LIVE                       [live sample] u32                                          read
//   RAYS, SAMPLES              [ray], [sample]                                            read
//   PARAMS                     [parameter] f32                                            read
//   FEATURES                   [feature / 2][sample][feature % 2]: gradients of features  read
//   GRADIENTS or ACCUMULATORS  [parameter]                                                read, write
#include "field/snippet.glsl"
#ifdef SUM_FLOAT
#extension GL_EXT_shader_atomic_float : require
#endif
#ifdef SUM_F16
#extension GL_NV_shader_atomic_fp16_vector : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "shared/common.glsl"
#include "field/unit_cube.glsl"
#include "field/sample.glsl"
#include "shared/f16.glsl"
#include "shared/finite.glsl"

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(PARAMS)) readonly buffer ParameterBuffer { float parameters[]; };
layout(std430, BINDING(PARAMS)) readonly buffer ParameterPairBuffer { vec2 parameter_pairs[]; };

#include "field/live_samples.glsl"

#define FEATURES 2u // per level
#define add_gradient add_sum
#include "field/features.glsl"
#include "field/accumulate.glsl"
#undef add_gradient
#undef FEATURES

uint current_sample;
bool adds; // whether this invocation's gradients are added

float parameter(uint i)
{
    return parameters[min(i, config.param_count - 1u)];
}

vec2 parameter_pair(uint i)
{
    return parameter_pairs[min(i, config.param_count - 1u) / 2u];
}

void put_feature(uint i, float x)
{
}

float feature_gradient(uint i)
{
    return i < FIELD_FEATURES ? get_features(i / 2u, current_sample, 0u)[i % 2u] : 0.0;
}

void add_gradient(uint i, float x)
{
    // The optimiser skips entries without a gradient, so zeros need no addition. NaN is not equal to
    // 0.
    if (!adds || i - config.summed_params >= FIELD_PARAMETERS || x == 0.0)
        return;
    if (overflows(x))
        state.nonfinite = 1u;
#if defined(SUM_F16) || defined(SUM_F16_CAS)
    add_gradients(i / 2u, i % 2u == 0u ? vec4(x, 0.0, 0.0, 0.0) : vec4(0.0, x, 0.0, 0.0));
#else
    add_sum(i, x);
#endif
}

void scatter_gradients()
{
    vec3 direction;
    uint count = gradient_count(), tiles = (max(count, 1u) + LOCAL_SIZE - 1u) / LOCAL_SIZE, tile = gl_WorkGroupID.x;
    if (CPU_KERNELS == 0u && tile >= tiles)
        return;
    // Every invocation has a sample: see snippet_encode.comp.
    bool has_tile = tile < tiles;
    tile = min(tile, tiles - 1u);
    do {
        uint i = tile * LOCAL_SIZE + gl_LocalInvocationID.x;
        adds = has_tile && i < count;
        current_sample = gradient_sample(min(i, max(count, 1u) - 1u));
        encode_backward(to_unit_cube(sample_position(current_sample, direction)),
                        config.summed_params);
        tile += gl_NumWorkGroups.x;
    } while (tile < tiles);
}

// The compiler initialises the snippet's global variables at the beginning of main.
void main()
{
    scatter_gradients();
}
