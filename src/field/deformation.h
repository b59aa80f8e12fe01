/* A deformation in front of a field, and the passes that layers share with it. */
#ifndef FIELD_DEFORMATION_H
#define FIELD_DEFORMATION_H

#include "field/layers.h"

/* Lays the deformation's layers out behind the field's. */
vkn_status deformation_add(const struct vkn_config *config, struct field_model *model);
/* Fills its part of the run's constants. */
void deformation_configure(const struct vkn_config *config, const struct field_model *model,
                           struct Config *constants);
/* Keys that its shape follows from, then NULL. */
extern const char *const deformation_shape[];

/* What its passes cost besides those of its layers. */
cost_function deformation_cost_encode, deformation_cost_move, deformation_cost_frequencies,
    deformation_cost_output_gradients;

/* clang-format off */
/* Weights of all layers that are passes of their own, as products read them; also of their moving average. */
#define PACK(when)                                                                                   \
    {"pack_weights", .use = (when), .variant = FIELD_F16_ACTIVATIONS, .dispatch = DISPATCH_FORWARD,  \
     .loop = LOOP_UNFUSED_LAYERS, .cost = layers_cost_pack}
#define PACK_AVERAGE(when)                                                                           \
    {"pack_weights", .label = "pack_average", .use = (when), .variant = FIELD_F16_ACTIVATIONS,       \
     .dispatch = DISPATCH_OCCUPANCY, .loop = LOOP_UNFUSED_LAYERS, .average = true, .cost = layers_cost_pack}
#define LAYER_WEIGHTS(when)                                                                          \
    {"layer_weights", .use = (when), .variant = FIELD_LAYER_PRODUCT_F32, LIVE, .loop = LOOP_UNFUSED_LAYERS, \
     .cost = layers_cost_weights}

/* From samples and times to displacements, which are activations. */
#define DEFORM(when, suffix, ...)                                                                    \
    {"encode_deformation", .label = "encode_deformation" suffix, .use = (when), .variant = FIELD_F16_ACTIVATIONS, __VA_ARGS__, \
     .cost = deformation_cost_encode},                                                               \
    {"layer_forward", .label = "deformation_forward" suffix, .use = (when), .variant = FIELD_LAYER_PRODUCT, __VA_ARGS__,\
     .loop = LOOP_DEFORMATION, .cost = layers_cost_forward}
#define DEFORM_CELLS(when)                                                                           \
    {"encode_deformation", .use = (when), CELLS, .variant = FIELD_F16_ACTIVATIONS, .cost = deformation_cost_encode}, \
    {"layer_forward", .use = (when), CELLS, .variant = FIELD_LAYER_PRODUCT, .loop = LOOP_DEFORMATION, \
     .average = true, .cost = layers_cost_forward}

/* From samples, moved by a deformation, to a grid's features. */
#define FEATURES(...)                                                                                \
    DEFORM(PASS_DEFORMED, "", __VA_ARGS__),                                                          \
    {"deform_samples", .use = PASS_DEFORMED | PASS_GRID, .variant = FIELD_F16_ACTIVATIONS, __VA_ARGS__, \
     .cost = deformation_cost_move},                                                                 \
    {"encode_samples", .use = PASS_GRID, .variant = FIELD_F16_PARAMS, .dispatch = DISPATCH_FORWARD,  \
     .cost = ngp_cost_encode}

/* From gradients of a grid's features to those of the samples' canonical positions, which are found once
 * more: colours have taken their memory. */
#define GRID_POSITION_GRADIENTS(when)                                                                \
    {"deform_samples", .label = "deform_live", .use = (when), .variant = FIELD_F16_ACTIVATIONS, LIVE, \
     .cost = deformation_cost_move},                                                                 \
    {"input_gradients", .use = (when), .variant = FIELD_F16_PARAMS, LIVE,                            \
     .cost = ngp_cost_input_gradients}
/* From those to the gradients of the deformation's layers. */
#define DEFORM_BACK(when)                                                                            \
    {"deformation_output_gradients", .use = (when), .variant = FIELD_F16_ACTIVATIONS, LIVE,          \
     .cost = deformation_cost_output_gradients},                                                     \
    {"layer_backward", .label = "deformation_backward", .use = (when), .variant = FIELD_LAYER_PRODUCT, LIVE, \
     .loop = LOOP_DEFORMATION_BACK, .cost = layers_cost_backward}
/* clang-format on */

#endif
