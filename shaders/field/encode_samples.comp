#version 460
#extension GL_GOOGLE_include_directive : require
// Pass encode_samples: interpolates the hash grid's features at each sample, for field_forward and
// field_backward. Groups of levels are processed one after the other, so that a group's tables stay in
// cache.
//
//   buffer                shape                                                  access
//   STATE                 sample_count                                           read
//   RAYS, SAMPLES         [ray], [sample]                                        read
//   FIELD                 [sample] vec4: canonical position, with a deformation  read
//   PARAMS or F16_PARAMS  [level][entry][feature] f32 or f16                     read
//   FEATURES              [level][sample][feature] f32 or f16                    write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/grid.glsl"
#include "field/canonical.glsl"
#include "field/features.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };

#include "field/sample_rows.glsl"

const uint LEVELS_AT_ONCE = 4; // levels for which a sample's position is computed once
const uint LEVEL_GROUPS = (LEVELS + LEVELS_AT_ONCE - 1u) / LEVELS_AT_ONCE;

void main()
{
    uint count = sample_rows();
    uint tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    for (uint tile = gl_WorkGroupID.x; tile < tiles * LEVEL_GROUPS; tile += gl_NumWorkGroups.x) {
        uint i = tile % tiles * LOCAL_SIZE + gl_LocalInvocationID.x;
        if (i >= count)
            continue;
        vec3 unit = to_unit_cube(canonical_position(i));
        uint level = tile / tiles * LEVELS_AT_ONCE, end = min(level + LEVELS_AT_ONCE, LEVELS);
        for (; level < end; level++)
            put_level_features(level, i, interpolate(level, unit));
    }
}
