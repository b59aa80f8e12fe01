/* Declares the deformation that may precede a field, and macros for the passes of deformed and
 * layered models. */
#ifndef FIELD_DEFORMATION_H
#define FIELD_DEFORMATION_H

#include "field/layers.h"

/* Appends the deformation's layers to the field's. VKN_BAD_INPUT when there are too many layers. */
vkn_status deformation_add(const struct vkn_config *config, struct field_model *model);
/* Sets the deformation's constants of a run. */
void deformation_configure(const struct vkn_config *config, const struct field_model *model,
                           struct Config *constants);
/* Keys that determine the deformation's parameters, then NULL. */
extern const char *const deformation_shape[];

/* Cost formulas of the deformation's passes other than those of its layers. */
cost_function deformation_cost_encode, deformation_cost_move, deformation_cost_input_gradients,
    deformation_cost_output_gradients;

/* clang-format off */
/* Pack the weights of unfused layers, or the moving average of the weights, into panels. */
#define PACK(when)                                                                                \
    {"pack_weights", .use = (when), .variant = FIELD_F16_ACTIVATIONS,                             \
     .dispatch = DISPATCH_FORWARD, .loop = LOOP_UNFUSED_LAYERS, .cost = layers_cost_pack}
#define PACK_AVERAGE(when)                                                                        \
    {"pack_weights", .label = "pack_average", .use = (when), .variant = FIELD_F16_ACTIVATIONS,    \
     .dispatch = DISPATCH_OCCUPANCY, .loop = LOOP_UNFUSED_LAYERS, .average = true,                \
     .cost = layers_cost_pack}
/* Computes the weight gradients of unfused layers. */
#define LAYER_WEIGHTS(when)                                                                       \
    {"layer_weights", .use = (when), .variant = FIELD_LAYER_PRODUCT_F32, LIVE,                    \
     .loop = LOOP_UNFUSED_LAYERS, .cost = layers_cost_weights}

/* Compute displacements, which are columns of the activations, from positions and times. */
#define DEFORM(when, suffix, ...)                                                                 \
    {"encode_deformation", .label = "encode_deformation" suffix, .use = (when),                   \
     .variant = FIELD_F16_ACTIVATIONS, __VA_ARGS__, .cost = deformation_cost_encode},             \
    {"layer_forward", .label = "deformation_forward" suffix, .use = (when),                       \
     .variant = FIELD_LAYER_PRODUCT, __VA_ARGS__, .loop = LOOP_DEFORMATION,                       \
     .cost = layers_cost_forward}
#define DEFORM_CELLS(when)                                                                        \
    {"encode_deformation", .use = (when), CELLS, .variant = FIELD_F16_ACTIVATIONS,                \
     .cost = deformation_cost_encode},                                                            \
    {"layer_forward", .use = (when), CELLS, .variant = FIELD_LAYER_PRODUCT,                       \
     .loop = LOOP_DEFORMATION, .average = true, .cost = layers_cost_forward}

/* Computes hash grid features from samples, displaced by a deformation if there is one. */
#define FEATURES(...)                                                                             \
    DEFORM(PASS_DEFORMED, "", __VA_ARGS__),                                                       \
    {"deform_samples", .use = PASS_DEFORMED | PASS_GRID, .variant = FIELD_F16_ACTIVATIONS,        \
     __VA_ARGS__, .cost = deformation_cost_move},                                                 \
    {"encode_samples", .use = PASS_GRID, .variant = FIELD_F16_PARAMS,                             \
     .dispatch = DISPATCH_FORWARD, .cost = ngp_cost_encode}

/* Computes gradients of canonical positions from gradients of hash grid features. The positions are
 * recomputed, because colours have overwritten them. */
#define GRID_POSITION_GRADIENTS(when)                                                             \
    {"deform_samples", .label = "deform_live", .use = (when), .variant = FIELD_F16_ACTIVATIONS,   \
     LIVE, .cost = deformation_cost_move},                                                        \
    {"input_gradients", .use = (when), .variant = FIELD_F16_PARAMS, LIVE,                         \
     .cost = ngp_cost_input_gradients}
/* Computes gradients of canonical positions, or of positions, from gradients of frequencies. */
#define FREQUENCY_GRADIENTS(when)                                                                 \
    {"frequency_gradients", .use = (when), .variant = FIELD_F16_ACTIVATIONS, LIVE,                \
     .cost = layers_cost_frequencies}
/* Computes gradients of the deformation's activations from gradients of canonical positions and, to
 * refine cameras, gradients of positions. */
#define DEFORM_BACK(when)                                                                         \
    {"deformation_output_gradients", .use = (when), .variant = FIELD_F16_ACTIVATIONS, LIVE,       \
     .cost = deformation_cost_output_gradients},                                                  \
    {"layer_backward", .label = "deformation_backward", .use = (when),                            \
     .variant = FIELD_LAYER_PRODUCT, LIVE, .loop = LOOP_DEFORMATION_BACK,                         \
     .cost = layers_cost_backward},                                                               \
    {"deformation_input_gradients", .use = (when) | PASS_REFINED,                                 \
     .variant = FIELD_F16_ACTIVATIONS, LIVE, .cost = deformation_cost_input_gradients}
/* clang-format on */

#endif
