#version 460
#extension GL_GOOGLE_include_directive : require
// Both MLPs forward and backward, as field_backward: rows of values and the gradients of their outputs
// in; the gradients of the values out, and those of the weights summed by workgroup.
#define BACKWARD
#include "field/precision.glsl"
#include "shared/common.glsl"
#include "field/encoding.glsl"
#include "field/mlp.glsl"
#include "bench/mlp_rows.glsl"

layout(std430, BINDING(FIELD)) readonly buffer GradientBuffer { vec4 row_gradients[]; };
layout(std430, BINDING(INPUT_GRADIENTS)) writeonly buffer InputGradientBuffer { uint input_gradients[]; };

void write_input_gradients(uint row)
{
    [[unroll]] for (uint pair = 0; pair < ENCODED / 2u; pair++) {
        vec2 two = vec2(get_gradient(2u * pair), get_gradient(2u * pair + 1u));
        uint at = pair_at(pair, row);
#if defined(FP16) || defined(COOPMAT)
        input_gradients[at] = packHalf2x16(two);
#else
        input_gradients[at] = floatBitsToUint(two.x);
        input_gradients[at + 1u] = floatBitsToUint(two.y);
#endif
    }
}

// Whole tiles. The direction's values are the same for all rows.
void main()
{
    uint mine = tile_row();
    uint tiles = ROW_COUNT / TILE_ROWS, tile_index = gl_WorkGroupID.x;
    begin_sums();
    if (tile_index < tiles)
        do {
            uint row = tile_index * TILE_ROWS + mine;
            begin_tile(tile_index);
            read_row(row);
            density_forward();
            if (row_part() == 0u)
                [[unroll]] for (uint i = 0; i < SH_SIZE; i++)
                    set_value(ROW_DIRECTION + i, 0.5);
            color_forward();
            tile_index += gl_NumWorkGroups.x;
            tile_backward(row_gradients[row], tile_index >= tiles);
            if (row_part() == 0u)
                write_input_gradients(row);
            end_tile();
        } while (tile_index < tiles);
    end_sums();
}
