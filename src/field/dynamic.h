/* The files of the dynamic model. */
#ifndef FIELD_DYNAMIC_H
#define FIELD_DYNAMIC_H

#include "field/internal.h"

/* Keys that a deformation's shape follows from. */
/* clang-format off */
#define DYNAMIC_SHAPE                                                                              \
    "dynamic.canonical", "dynamic.width", "dynamic.layers", "dynamic.position_octaves",            \
    "dynamic.time_octaves", "dynamic.time_features"
/* clang-format on */

/* Lays the deformation's layers out behind those of the canonical field. */
vkn_status dynamic_add_warp(const struct vkn_config *config, struct field_model *model);
/* Its part of the run's constants. */
void dynamic_configure_warp(const struct vkn_config *config, const struct field_model *model,
                            struct Config *constants, struct gpu_constants *specialization);

/* What the passes of its deformation cost, of all samples, live ones, and cells. */
cost_function dynamic_cost_pack, dynamic_cost_encode, dynamic_cost_encode_live,
    dynamic_cost_encode_again, dynamic_cost_pick, dynamic_cost_encode_cells, dynamic_cost_forward,
    dynamic_cost_forward_live, dynamic_cost_forward_again, dynamic_cost_forward_cells,
    dynamic_cost_place, dynamic_cost_place_live, dynamic_cost_place_cells, dynamic_cost_frequencies,
    dynamic_cost_seeds, dynamic_cost_backward, dynamic_cost_weights, dynamic_cost_reduce,
    dynamic_cost_features_cells, dynamic_cost_density_cells;

#endif
