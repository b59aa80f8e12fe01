#version 460
#extension GL_GOOGLE_include_directive : require
// Per row of a chunk of live samples: the gradients of the grid's features, which are columns, to where
// scatter_gradients has them from, in the place of the features.
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/features.glsl"
#include "field/layers.glsl"

void main()
{
    uint count = row_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE, row = gl_GlobalInvocationID.x;
    if (row >= count) // not in front of each round: see field_forward.comp
        return;
    do {
        uint index = row_sample(row);
        for (uint level = 0; level < LEVELS; level++) {
            vec4 gradient = vec4(0.0);
            for (uint f = 0; f < FEATURES; f++)
                gradient[f] = get_gradient(row, level * FEATURES + f);
            put_level_features(level, index, gradient);
        }
        row += stride;
    } while (row < count);
}
