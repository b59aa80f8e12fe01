/* The files of the vanilla model. */
#ifndef FIELD_VANILLA_H
#define FIELD_VANILLA_H

#include "field/field.h"

/* What its passes cost. */
cost_function vanilla_cost_pack, vanilla_cost_encode, vanilla_cost_encode_live,
    vanilla_cost_encode_again, vanilla_cost_gather, vanilla_cost_forward, vanilla_cost_forward_live,
    vanilla_cost_forward_again, vanilla_cost_densities, vanilla_cost_colors, vanilla_cost_values,
    vanilla_cost_seeds, vanilla_cost_backward, vanilla_cost_weights, vanilla_cost_reduce,
    vanilla_cost_none, vanilla_cost_pick, vanilla_cost_encode_cells, vanilla_cost_density,
    vanilla_cost_cell_values, vanilla_cost_store;

#endif
