/* The files of the vanilla model. */
#ifndef FIELD_VANILLA_H
#define FIELD_VANILLA_H

#include "field/internal.h"

/* Keys that its shape follows from. */
/* clang-format off */
#define VANILLA_SHAPE                                                                              \
    "mlp.density_width", "mlp.density_layers", "mlp.geometry", "mlp.color_width",                  \
    "mlp.color_layers", "mlp.skip_layer", "mlp.position_octaves", "mlp.direction_octaves"
/* clang-format on */

/* Values of a point's frequencies: x, and sine and cosine of each octave. */
#define VANILLA_FREQUENCIES(octaves) (3 + 6 * (octaves))

/* Lays both MLPs' layers out, for a model with so many values of position and direction; whether
 * gradients go back to those of the position. */
vkn_status vanilla_create_layers(const struct vkn_config *config, uint32_t position,
                                 uint32_t direction, bool to_position, struct field_model *model);
/* Its parts, for a model that moves the position, which gradients go back to then. */
vkn_status vanilla_create(const struct vkn_config *config, bool to_position,
                          struct field_model *model);
/* See struct field_kind. */
void vanilla_configure(const struct vkn_config *config, const struct field_model *model,
                       struct Config *constants, struct gpu_constants *specialization);
void vanilla_initialize(const struct vkn_config *config, const struct field_model *model,
                        float *params);

/* What layers from one to another come to for a row: operations; columns read and written; weights
 * and biases. */
struct layer_sums {
    double flops, read, written, weights;
};
struct layer_sums vanilla_sum_layers(const struct cost_model *m, uint32_t from, uint32_t end);
/* Live rows that go through the layers once more, see ROWS_AGAIN. */
double vanilla_rows_again(const struct cost_model *m, const struct cost_counts *n);

/* What its passes cost. */
cost_function vanilla_cost_pack, vanilla_cost_encode, vanilla_cost_encode_live,
    vanilla_cost_encode_again, vanilla_cost_gather, vanilla_cost_forward, vanilla_cost_forward_live,
    vanilla_cost_forward_again, vanilla_cost_densities, vanilla_cost_colors, vanilla_cost_values,
    vanilla_cost_seeds, vanilla_cost_backward, vanilla_cost_weights, vanilla_cost_reduce,
    vanilla_cost_none, vanilla_cost_pick, vanilla_cost_encode_cells, vanilla_cost_density,
    vanilla_cost_cell_values, vanilla_cost_store;

#endif
