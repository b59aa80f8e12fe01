#version 460
#extension GL_GOOGLE_include_directive : require
// Pass gather_rows (layer-by-layer models, without activation checkpointing): copies the activations
// of a chunk's live rows from the activations of all samples that the forward pass has kept.
//
//   buffer    shape                                   access
//   LIVE      [live sample] u32                       read
//   FEATURES  [sample] kept columns                   read
//   FEATURES  [row] columns, in blocks and in panels  write
#include "shared/precision.glsl"
#include "shared/common.glsl"
#include "field/layers.glsl"

void main()
{
    uint count = row_count(), padded = padded_rows(), stride = gl_NumWorkGroups.x * LOCAL_SIZE;
    for (uint row = gl_GlobalInvocationID.x; row < padded; row += stride) {
        uint index = row_sample(min(row, count - 1u)), first = first_activation();
        uint to = first + in_block(row, 0u);
        uint from = first + (kept_block(0u) + index / BLOCK_ROWS) * config.columns * BLOCK_ROWS +
                    index % BLOCK_ROWS;
        for (uint column = 0; column < config.columns; column++) {
            STORAGE_T x = activations[from + column * BLOCK_ROWS];
            activations[to + column * BLOCK_ROWS] = x;
            activations[first + in_panel(row, column)] = x;
        }
    }
}
