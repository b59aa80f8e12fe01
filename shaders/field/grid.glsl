// Features of the hash grid at a point.
#include "field/place.glsl"

#if defined(FP16)
layout(std430, BINDING(HALVES)) readonly buffer PairBuffer { f16vec2 param_pairs[]; };
#elif !defined(COOPMAT) // with matrices, mlp.glsl declares the same
layout(std430, BINDING(PARAMS)) readonly buffer PairBuffer { vec2 param_pairs[]; };
#endif

vec2 interpolated[FEATURES / 2u];

// Trilinear: leaves one level's features in `interpolated`.
void interpolate(uint level, vec3 unit)
{
    vec3 inside;
    uvec3 cell = grid_cell(level, unit, inside);
    [[unroll]] for (uint f = 0; f < FEATURES / 2u; f++)
        interpolated[f] = vec2(0.0);
    [[unroll]] for (uint corner = 0; corner < 8u; corner++) {
        uint entry = grid_entry(level, cell + corner_offset(corner)) / 2u;
        float weight = corner_weight(corner, inside);
        [[unroll]] for (uint f = 0; f < FEATURES / 2u; f++)
            interpolated[f] += weight * vec2(param_pairs[entry + f]);
    }
}
