#version 460
#extension GL_GOOGLE_include_directive : require
// The hash grid's features of samples, interpolated and written down: what field_forward gathers,
// without the MLPs. HALF: from 16-bit parameters, to 16-bit features.
#ifdef HALF
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_16bit_storage : require
#endif
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/sample.glsl"
#include "field/place.glsl"

#ifdef HALF
layout(std430, set = 0, binding = BIND_HALVES) readonly buffer ParamBuffer { f16vec2 param_pairs[]; };
layout(std430, set = 0, binding = BIND_FIELD) writeonly buffer FeatureBuffer { f16vec2 features[]; };
#define PAIR f16vec2
#else
layout(std430, set = 0, binding = BIND_PARAMS) readonly buffer ParamBuffer { vec2 param_pairs[]; };
layout(std430, set = 0, binding = BIND_FIELD) writeonly buffer FeatureBuffer { vec2 features[]; };
#define PAIR vec2
#endif

// [level][sample][pair of features], like gradients.
void gather(uint level, vec3 unit, uint i)
{
    vec3 inside;
    uvec3 cell = grid_cell(level, unit, inside);
    vec2 sum[FEATURES / 2u];
    for (uint f = 0; f < FEATURES / 2u; f++)
        sum[f] = vec2(0.0);
    [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
        uint entry = grid_entry(level, cell + corner_offset(corner));
        float weight = corner_weight(corner, inside);
        for (uint f = 0; f < FEATURES / 2u; f++)
            sum[f] += weight * vec2(param_pairs[entry / 2u + f]);
    }
    uint to = (level * config.sample_capacity + i) * (FEATURES / 2u);
    for (uint f = 0; f < FEATURES / 2u; f++)
        features[to + f] = PAIR(sum[f]);
}

void main()
{
    uint stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint i = gl_GlobalInvocationID.x; i < config.sample_capacity; i += stride) {
        vec3 direction, unit = to_unit_cube(sample_position(i, direction));
        for (uint level = 0; level < LEVELS; level++)
            gather(level, unit, i);
    }
}
