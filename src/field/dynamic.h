/* The files of the dynamic model. */
#ifndef FIELD_DYNAMIC_H
#define FIELD_DYNAMIC_H

#include "field/field.h"

/* What the passes of its deformation cost, of all samples, live ones, and cells. */
cost_function dynamic_cost_pack, dynamic_cost_encode, dynamic_cost_encode_live, dynamic_cost_pick,
    dynamic_cost_encode_cells, dynamic_cost_forward, dynamic_cost_forward_live,
    dynamic_cost_forward_cells, dynamic_cost_place, dynamic_cost_place_live,
    dynamic_cost_place_cells, dynamic_cost_seeds, dynamic_cost_backward, dynamic_cost_weights,
    dynamic_cost_reduce, dynamic_cost_features_cells, dynamic_cost_density_cells;

#endif
