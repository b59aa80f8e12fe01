/* Declares what the ngp model shares with other models that have its MLPs or its hash grid. */
#ifndef FIELD_NGP_H
#define FIELD_NGP_H

#include "field/internal.h"

#define FIELD_NGP_DIRECTION 16u /* values of the direction's spherical harmonics */

/* Keys that determine the parameters of the hash grid, and of the ngp model. */
/* clang-format off */
#define NGP_GRID                                                                                   \
    "grid.levels", "grid.features", "grid.log2_entries", "grid.coarsest", "grid.finest"
#define NGP_SHAPE                                                                                  \
    NGP_GRID, "mlp.density_width", "mlp.density_layers", "mlp.geometry", "mlp.color_width",        \
    "mlp.color_layers", "mlp.sh_degree"
/* clang-format on */

/* Returns VKN_BAD_INPUT for an invalid setting of the group `grid`. */
vkn_status ngp_check_grid(const struct vkn_config *config);
/* Creates the model without the grid's parameters: density MLP and colour MLP. */
vkn_status ngp_create(const struct vkn_config *config, struct field_model *model);
/* Appends the density MLP only; ngp_end_mlps must follow. */
vkn_status ngp_create_density(const struct vkn_config *config, struct field_model *model);
/* Marks all layers so far as fused, and adds their parameter group. */
void ngp_end_mlps(struct field_model *model);
/* Appends the hash grid's parameters to the model. */
void ngp_place_grid(const struct vkn_config *config, struct field_model *model);
/* Sets the kind's constants of a run, see struct field_kind. */
void ngp_configure(const struct vkn_config *config, const struct field_model *model,
                   struct Config *constants, struct gpu_constants *specialization);

/* Operations of the derivatives of the harmonics, shaders/field/input_gradients.glsl. */
#define NGP_SH_DERIVATIVES 90
/* Cost formulas of the passes. */
cost_function ngp_cost_encode, ngp_cost_forward, ngp_cost_densities, ngp_cost_colors,
    ngp_cost_backward, ngp_cost_scatter, ngp_cost_reduce, ngp_cost_occupancy,
    ngp_cost_input_gradients;

#endif
