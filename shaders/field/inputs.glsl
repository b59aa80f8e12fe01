// From a sample's place to the MLPs' inputs.
#include "field/place.glsl"

#ifdef FP16
layout(std430, set = 0, binding = BIND_HALVES) readonly buffer PairBuffer { f16vec2 param_pairs[]; };
#endif

// Two neighbouring grid parameters, the first of them even.
vec2 grid_features(uint index)
{
#if defined(FP16) || defined(COOPMAT)
    return vec2(param_pairs[index / 2u]);
#else
    return vec2(params[index], params[index + 1u]);
#endif
}

void encode_position(vec3 position)
{
    vec3 unit = to_unit_cube(position);
    for (uint level = 0; level < LEVELS; level++) {
        vec3 inside;
        uvec3 cell = grid_cell(level, unit, inside);
        vec2 feature[FEATURES / 2u];
        for (uint f = 0; f < FEATURES / 2u; f++)
            feature[f] = vec2(0.0);
        [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
            uint entry = grid_entry(level, cell + corner_offset(corner));
            float weight = corner_weight(corner, inside);
            for (uint f = 0; f < FEATURES / 2u; f++)
                feature[f] += weight * grid_features(entry + 2u * f);
        }
        for (uint f = 0; f < FEATURES / 2u; f++) {
            set_value(level * FEATURES + 2u * f, feature[f].x);
            set_value(level * FEATURES + 2u * f + 1u, feature[f].y);
        }
    }
    for (uint i = LEVELS * FEATURES; i < ENCODED; i++)
        set_value(i, 0.0);
}

void encode_direction(vec3 direction)
{
    float sh[SH_SIZE];
    spherical_harmonics(direction, sh);
    for (uint i = 0; i < SH_SIZE; i++)
        set_value(AT_DIRECTION + i, sh[i]);
}
