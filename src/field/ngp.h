/* The files of the ngp model. */
#ifndef FIELD_NGP_H
#define FIELD_NGP_H

#include "field/internal.h"

#define FIELD_NGP_DIRECTION 16u /* values of the direction's spherical harmonics */

/* Keys that its shape follows from. */
/* clang-format off */
#define NGP_GRID                                                                                   \
    "grid.levels", "grid.features", "grid.log2_entries", "grid.coarsest", "grid.finest"
#define NGP_SHAPE                                                                                  \
    NGP_GRID, "mlp.density_width", "mlp.density_layers", "mlp.geometry", "mlp.color_width",            \
    "mlp.color_layers", "mlp.sh_degree"
/* clang-format on */

vkn_status ngp_check_grid(const struct vkn_config *config); /* settings of the group grid */
/* Appends the density MLP, and the colour MLP behind it; ngp_end_mlps comes behind the last. */
vkn_status ngp_create(const struct vkn_config *config, struct field_model *model);
vkn_status ngp_create_density(const struct vkn_config *config, struct field_model *model);
void ngp_end_mlps(struct field_model *model);
/* Places the grid behind all other parameters. */
void ngp_place_grid(const struct vkn_config *config, struct field_model *model);
/* See struct field_kind. */
void ngp_configure(const struct vkn_config *config, const struct field_model *model,
                   struct Config *constants, struct gpu_constants *specialization);

/* What its passes cost. */
cost_function ngp_cost_encode, ngp_cost_forward, ngp_cost_densities, ngp_cost_colors,
    ngp_cost_backward, ngp_cost_scatter, ngp_cost_reduce, ngp_cost_occupancy,
    ngp_cost_input_gradients;

#endif
