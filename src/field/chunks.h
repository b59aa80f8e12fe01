/* For lists of passes: which rows of samples a pass takes, a chunk at a time. */
#ifndef FIELD_CHUNKS_H
#define FIELD_CHUNKS_H

#include "field/internal.h"

/* clang-format off */
#define SAMPLES .dispatch = DISPATCH_FORWARD, .by_chunk = true
#define SOME    .dispatch = DISPATCH_FORWARD, .by_chunk = true, .rows = ROWS_DENSITIES
#define LIVE    .dispatch = DISPATCH_FORWARD, .by_chunk = true, .rows = ROWS_LIVE
#define AGAIN   .dispatch = DISPATCH_FORWARD, .by_chunk = true, .rows = ROWS_AGAIN, .use = PASS_RECOMPUTES
/* Timed as one: there may be hundreds of chunks. */
#define CELLS   .dispatch = DISPATCH_OCCUPANCY, .by_chunk = true, .rows = ROWS_CELLS, .label = "update_cells"
/* clang-format on */

#endif
