// Models whose layers are passes of their own, chunk by chunk of rows; push.c is the layer, push.d the chunk.
// By push.e rows are samples (ROWS_SAMPLES, ROWS_DENSITIES), live ones in the order of the backward pass (ROWS_LIVE,
// ROWS_RECOMPUTED), or cells of the occupancy grid (ROWS_CELLS), of which a chunk's are all the samples that there are.
//
// A row's activations are columns of BIND_FEATURES, behind any features, in blocks (field/product.glsl): inputs,
// then what each layer makes of them. Live rows' are there a second time in panels, [column / 16][row][column % 16], for
// the weights' gradients add up over rows. Their gradients are in BIND_SCRATCH, in both forms as well.
// Where there is room for all of a step's samples (config.kept_rows), the forward pass leaves their blocks behind the
// chunk's, and live rows are gathered from there instead of being computed again.
// BIND_F16_PARAMS holds the weights in panels, in the precision that products take.

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

// Rows of this chunk, and the sample of one.
uint row_count()
{
    uint all = LIVE_ROWS ? gradient_count() : sample_rows();
    uint first = first_row();
    // Live samples have gone through the layers for their colours, and nothing has taken their place.
    if (VISIBILITY != 0u && push.e == ROWS_RECOMPUTED && all <= config.chunk_rows)
        return 0u;
    return min(max(all, first) - first, config.chunk_rows);
}

// With those that fill up chunks of panels: they hold numbers, whose gradients are zero.
uint padded_rows()
{
    return whole_chunks(row_count());
}

uint row_sample(uint row)
{
    uint i = first_row() + row;
    return LIVE_ROWS ? gradient_sample(i) : i;
}

// Of the chunk's rows, or of those kept.
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

// Where a chunk's activations begin: behind the features of all samples, where a model has both.
uint first_activation()
{
    return (config.sample_capacity * config.row_features + CHUNK - 1u) / CHUNK * CHUNK;
}

// Where a value lies among the activations or gradients of a chunk.
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
