#version 460
#extension GL_GOOGLE_include_directive : require
// Per sample and group of levels: the position's features, interpolated in the hash grid. One group
// of levels after the other, so that its tables stay in cache; field_forward and field_backward both
// read what is found here.
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/grid.glsl"
#include "field/canonical.glsl"
#include "field/features.glsl"

layout(std430, BINDING(STATE)) readonly buffer StateBuffer { State state; };

#include "field/sample_rows.glsl"

const uint LEVELS_AT_ONCE = 4; // levels for which a sample's place is computed once
const uint GROUPS = (LEVELS + LEVELS_AT_ONCE - 1u) / LEVELS_AT_ONCE;

void main()
{
    uint count = sample_rows();
    uint tiles = (count + LOCAL_SIZE - 1u) / LOCAL_SIZE;
    for (uint tile = gl_WorkGroupID.x; tile < tiles * GROUPS; tile += gl_NumWorkGroups.x) {
        uint i = tile % tiles * LOCAL_SIZE + gl_LocalInvocationID.x;
        if (i >= count)
            continue;
        vec3 unit = to_unit_cube(canonical_position(i));
        uint level = tile / tiles * LEVELS_AT_ONCE, end = min(level + LEVELS_AT_ONCE, LEVELS);
        for (; level < end; level++)
            put_level_features(level, i, interpolate(level, unit));
    }
}
