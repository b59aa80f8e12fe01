#version 460
#extension GL_GOOGLE_include_directive : require
// Pass encode_samples of a field in GLSL: computes the features at each sample. The features have the
// layout of a hash grid with two features per level.
//
//   buffer                shape                                          access
//   STATE                 sample_count                                   read
//   RAYS, SAMPLES         [ray], [sample]                                read
//   PARAMS or F16_PARAMS  [parameter] f32 or f16                         read
//   FEATURES              [feature / 2][sample][feature % 2] f32 or f16  write
#include "field/snippet.glsl"
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/unit_cube.glsl"
#include "field/sample.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };
#ifdef FP16
layout(std430, BINDING(F16_PARAMS)) readonly buffer ParameterBuffer { float16_t parameters[]; };
layout(std430, BINDING(F16_PARAMS)) readonly buffer ParameterPairBuffer { f16vec2 parameter_pairs[]; };
layout(std430, BINDING(FEATURES)) writeonly buffer FeatureBuffer { float16_t features[]; };
#else
layout(std430, BINDING(PARAMS)) readonly buffer ParameterBuffer { float parameters[]; };
layout(std430, BINDING(PARAMS)) readonly buffer ParameterPairBuffer { vec2 parameter_pairs[]; };
layout(std430, BINDING(FEATURES)) writeonly buffer FeatureBuffer { float features[]; };
#endif

#include "field/sample_rows.glsl"

uint current_sample;

float parameter(uint i)
{
    return float(parameters[min(i, config.param_count - 1u)]);
}

vec2 parameter_pair(uint i)
{
    return vec2(parameter_pairs[min(i, config.param_count - 1u) / 2u]);
}

void put_feature(uint i, float x)
{
    if (i < FIELD_FEATURES)
        features[(i / 2u * config.sample_capacity + current_sample) * 2u + i % 2u] = STORAGE_T(x);
}

float feature_gradient(uint i)
{
    return 0.0;
}

void add_gradient(uint i, float x)
{
}

void encode_samples()
{
    vec3 direction;
    uint count = max(sample_rows(), 1u), tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE, tile = gl_WorkGroupID.x;
    if (CPU_KERNELS == 0u && tile >= tiles)
        return;
    // Every invocation has a sample. Workgroups without a tile repeat the last tile, because lavapipe
    // crashes if no invocation is active in a loop of a snippet.
    tile = min(tile, tiles - 1u);
    do {
        current_sample = min(tile * LOCAL_SIZE + gl_LocalInvocationID.x, count - 1u);
        encode(to_unit_cube(sample_position(current_sample, direction)), config.summed_params);
        tile += gl_NumWorkGroups.x;
    } while (tile < tiles);
}

// The compiler initialises the snippet's global variables at the beginning of main.
void main()
{
    encode_samples();
}
