#version 460
#extension GL_GOOGLE_include_directive : require
// The density MLP alone: rows of values in, four of its outputs out.
#include "field/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "bench/mlp_rows.glsl"

layout(std430, BINDING(FIELD)) writeonly buffer OutputBuffer { vec4 outputs[]; };

void main()
{
    uint mine = gl_SubgroupID * SUBGROUP_SIZE + gl_SubgroupInvocationID;
    uint tiles = ROW_COUNT / LOCAL_SIZE;
    for (uint tile_index = gl_WorkGroupID.x; tile_index < tiles; tile_index += gl_NumWorkGroups.x) {
        uint row = tile_index * LOCAL_SIZE + mine;
        read_row(row);
        mlp_forward(DENSITY_MLP);
        outputs[row] = vec4(get_value(AT_GEOMETRY), get_value(AT_GEOMETRY + 1u),
                            get_value(AT_GEOMETRY + 2u), get_value(AT_GEOMETRY + 3u));
    }
}
