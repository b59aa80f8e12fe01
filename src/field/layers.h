/* Fields of layers, each a pass of its own, and what their passes cost. */
#ifndef FIELD_LAYERS_H
#define FIELD_LAYERS_H

#include "field/internal.h"

/* Values of a point's frequencies: the point itself, and a sine and a cosine for each octave. */
#define LAYERS_FREQUENCIES(octaves) (3 + 6 * (octaves))

/* Which rows a pass of layers takes, a chunk at a time. */
/* clang-format off */
#define SAMPLES .dispatch = DISPATCH_FORWARD, .by_chunk = true
#define DENSITIES    .dispatch = DISPATCH_FORWARD, .by_chunk = true, .rows = ROWS_DENSITIES
#define LIVE    .dispatch = DISPATCH_FORWARD, .by_chunk = true, .rows = ROWS_LIVE
#define LIVE_RECOMPUTED   .dispatch = DISPATCH_FORWARD, .by_chunk = true, .rows = ROWS_RECOMPUTED
/* One label, for there may be hundreds of chunks, each with timestamps. */
#define CELLS   .dispatch = DISPATCH_OCCUPANCY, .by_chunk = true, .rows = ROWS_CELLS, .label = "update_cells"
/* clang-format on */

/* What a field's passes cost. The pass says which rows and which layers it takes. */
cost_function layers_cost_pack, layers_cost_encode, layers_cost_gather, layers_cost_forward,
    layers_cost_values, layers_cost_output_gradients, layers_cost_backward, layers_cost_features,
    layers_cost_weights, layers_cost_begin, layers_cost_pick, layers_cost_store;

/* Operations of a sine and a cosine together. */
#define LAYERS_WAVES 40.0
/* Rows that the pass takes in a step, and copies that it makes of each activation: those of live
 * rows are stored in blocks and in panels. */
double layers_rows(const struct cost_model *m, const struct cost_counts *n);
double layers_copies(const struct cost_counts *n);

#endif
