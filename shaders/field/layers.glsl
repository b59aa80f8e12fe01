// Addresses rows and columns of the activations of layer-by-layer models, in which every layer is a
// pass of its own. The passes run on one chunk of rows; push.c is the layer, push.d the chunk. push.e
// selects what rows are: samples (ROWS_SAMPLES, ROWS_DENSITIES), live samples in the order of the
// backward pass (ROWS_LIVE, ROWS_RECOMPUTED), or cells of the occupancy grid (ROWS_CELLS), whose
// samples exist only while their chunk is processed.
//
// Columns are the inputs, then the outputs of each layer. Values are STORAGE_T, in the blocks and
// panels of field/product.glsl:
//   buffer                     shape                            contents
//   FEATURES, after features   [row / 16][column][row % 16]     a chunk's activations
//     then                     [column / 16][row][column % 16]  activations of live rows again, for weight
//                                                               gradients, which are sums over rows
//     then, if kept_rows > 0   [row / 16][column][row % 16]     activations of all samples: gather_rows copies
//                                                               live rows from here instead of recomputing them
//   SCRATCH                    both forms                       gradients of a chunk's activations
//   F16_PARAMS, after weights  panels                           packed weights
// All passes of these models also read counts from STATE and, for live rows, LIVE [live sample].

layout(std430, BINDING(STATE)) buffer StateBuffer { State state; };
layout(std430, BINDING(FEATURES)) buffer ActivationBuffer { STORAGE_T activations[]; };
layout(std430, BINDING(SCRATCH)) buffer GradientBuffer { STORAGE_T gradients[]; };
layout(std430, BINDING(F16_PARAMS)) buffer WeightBuffer { STORAGE_T weights[]; };

#include "shared/rounding.glsl"
#include "field/live_samples.glsl"
#include "field/sample_rows.glsl"
#include "field/blocks.glsl"

layout(constant_id = SPEC_VISIBILITY) const uint VISIBILITY = 0;

#define LIVE_ROWS (push.e == ROWS_LIVE || push.e == ROWS_RECOMPUTED)

uint first_row()
{
    return push.e == ROWS_CELLS ? 0u : push.d * config.chunk_rows;
}

// Returns the number of rows of this chunk.
uint row_count()
{
    uint total = LIVE_ROWS ? gradient_count() : sample_rows();
    uint first = first_row();
    // The pass for colours has stored a single chunk's activations, which nothing has overwritten.
    if (VISIBILITY != 0u && push.e == ROWS_RECOMPUTED && total <= config.chunk_rows)
        return 0u;
    return min(max(total, first) - first, config.chunk_rows);
}

// Returns row_count() rounded up to a multiple of CHUNK_DEPTH. Padding rows have zero gradients.
uint padded_rows()
{
    return whole_chunks(row_count());
}

uint row_sample(uint row)
{
    uint i = first_row() + row;
    return LIVE_ROWS ? gradient_sample(i) : i;
}

// Returns the block in which the forward pass keeps a row's activations.
uint kept_block(uint row)
{
    return (2u * config.chunk_rows + row) / BLOCK_ROWS;
}

uint first_block()
{
#ifdef BACKWARD
    return 0u;
#else
    return push.e == ROWS_SAMPLES && config.kept_rows > 0u ? kept_block(first_row()) : 0u;
#endif
}

// Returns the index of a chunk's first activation, after any features of all samples.
uint first_activation()
{
    return (config.sample_capacity * config.row_features + CHUNK - 1u) / CHUNK * CHUNK;
}

// Return the index of a value among the activations or gradients of a chunk, in blocks or in panels.
uint in_block(uint row, uint column)
{
    return ((first_block() + row / BLOCK_ROWS) * config.columns + column) * BLOCK_ROWS + row % BLOCK_ROWS;
}

uint in_panel(uint row, uint column)
{
    return config.columns * config.chunk_rows +
           (column / BLOCK_ROWS * config.chunk_rows + row) * BLOCK_ROWS + column % BLOCK_ROWS;
}

void put_activation(uint row, uint column, float x)
{
    STORAGE_T stored = to_storage(ROUND_ACTIVATIONS, x);
    activations[first_activation() + in_block(row, column)] = stored;
    if (LIVE_ROWS)
        activations[first_activation() + in_panel(row, column)] = stored;
}

float get_activation(uint row, uint column)
{
    return float(activations[first_activation() + in_block(row, column)]);
}

float get_gradient(uint row, uint column)
{
    return float(gradients[in_block(row, column)]);
}

void put_gradient(uint row, uint column, STORAGE_T x)
{
    gradients[in_block(row, column)] = x;
    gradients[in_panel(row, column)] = x;
}

#ifdef BACKWARD
#include "field/round_gradient.glsl"
#endif
