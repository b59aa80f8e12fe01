/* Declares the cost formulas of unfused layers, and macros for the rows of their passes. */
#ifndef FIELD_LAYERS_H
#define FIELD_LAYERS_H

#include "field/internal.h"

/* Values of a frequency encoding of a vector: the vector, then sines and cosines of each octave. */
#define LAYERS_FREQUENCIES(octaves) (3 + 6 * (octaves))

/* Members of a struct pass that runs chunk by chunk. Its rows are, in the order of the macros: all
 * samples; all samples, for densities only; live samples; live samples whose activations are
 * recomputed; occupancy cells. */
/* clang-format off */
#define SAMPLES         .dispatch = DISPATCH_FORWARD, .by_chunk = true
#define DENSITIES       .dispatch = DISPATCH_FORWARD, .by_chunk = true, .rows = ROWS_DENSITIES
#define LIVE            .dispatch = DISPATCH_FORWARD, .by_chunk = true, .rows = ROWS_LIVE
#define LIVE_RECOMPUTED .dispatch = DISPATCH_FORWARD, .by_chunk = true, .rows = ROWS_RECOMPUTED
/* All passes over cells share a label, because hundreds of chunks would use too many timestamps. */
#define CELLS                                                                                      \
    .dispatch = DISPATCH_OCCUPANCY, .by_chunk = true, .rows = ROWS_CELLS, .label = "update_cells"
/* clang-format on */

/* Cost formulas; the pass in cost_counts determines the rows and the layers. */
cost_function layers_cost_pack, layers_cost_encode, layers_cost_gather, layers_cost_forward,
    layers_cost_values, layers_cost_output_gradients, layers_cost_backward, layers_cost_features,
    layers_cost_frequencies, layers_cost_directions, layers_cost_weights, layers_cost_begin,
    layers_cost_pick, layers_cost_store;

/* Operations of a sine and a cosine of the same angle. */
#define LAYERS_SIN_COS               40.0
/* Operations and values of the gradient of a vector from the gradients of its frequency encoding:
 * five per pair of a sine and a cosine; gradients, sines and cosines. */
#define LAYERS_SLOPE_FLOPS(octaves)  (5.0 * 3.0 * (octaves))
#define LAYERS_SLOPE_VALUES(octaves) (3.0 + 12.0 * (octaves))
/* Operations of the gradient of a position from the gradient of its point in the unit cube. */
#define LAYERS_POSITION_SLOPE        18.0
/* Returns the number of rows of the pass in a step. */
double layers_rows(const struct cost_model *m, const struct cost_counts *n);
/* Returns how many copies of each activation the pass stores: 2 for live rows (blocks and panels),
 * else 1. */
double layers_copies(const struct cost_counts *n);

#endif
