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
    uint mine = tile_row();
    uint tiles = ROW_COUNT / TILE_ROWS;
    for (uint tile_index = gl_WorkGroupID.x; tile_index < tiles; tile_index += gl_NumWorkGroups.x) {
        uint row = tile_index * TILE_ROWS + mine;
        begin_tile(tile_index);
        read_row(row);
        density_forward();
        if (row_part() == 0u)
            outputs[row] = vec4(get_value(AT_GEOMETRY), get_value(AT_GEOMETRY + 1u),
                                get_value(AT_GEOMETRY + 2u), get_value(AT_GEOMETRY + 3u));
        end_tile();
    }
}
