#version 460
#extension GL_GOOGLE_include_directive : require
// Pass feature_gradients (layer-by-layer models, with a hash grid): copies gradients with respect to
// the grid's features from the columns of a chunk's live rows to FEATURES, where scatter_gradients
// reads them.
//
//   buffer    shape                                   access
//   LIVE      [live sample] u32                       read
//   SCRATCH   [row] columns: gradients of the inputs  read
//   FEATURES  [level][sample][feature] f32 or f16     write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/features.glsl"
#include "field/layers.glsl"

void main()
{
    uint count = row_count(), stride = gl_NumWorkGroups.x * LOCAL_SIZE, row = gl_GlobalInvocationID.x;
    if (row >= count) // once, not before each iteration: see field_forward.comp
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
