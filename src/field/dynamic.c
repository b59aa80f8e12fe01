/* The dynamic model (Pumarola et al., D-NeRF, CVPR 2021): an MLP makes of the
 * frequencies of position and time how far the sample is from its place in the canonical scene,
 * whose field is ngp's, or vanilla's (dynamic_vanilla.c). Layers of the deformation are passes of
 * their own. Parameters: [density layers][colour layers][deformation's layers][grid levels]. */
#include "field/dynamic.h"

#include <math.h>

#include "field/chunks.h"
#include "field/ngp.h"
#include "field/vanilla.h"

#define LAST_LAYER 1e-4f /* its weights' bound: nothing moves at first */

/* Columns of a row's activations, behind those that there are: what is encoded, then each layer's
 * outputs. */
static void place_columns(struct field_model *model)
{
    uint32_t first = field_first_warp(model), before = model->columns;
    uint32_t column = before + model->layers[first].inputs;
    model->warp_input = before;
    for (uint32_t i = first; i < model->layer_count; i++) {
        const struct field_layer *layer = &model->layers[i];
        model->flows[i] = (struct LayerFlow){
            .from = before,
            .own = layer->inputs,
            .to = column,
            .rectified = !layer->last,
            .masked = i > first,
        };
        field_place_panels(model, i);
        model->warp_output = before = column;
        column += layer->outputs;
    }
    model->columns = column;
}

vkn_status dynamic_add_warp(const struct vkn_config *config, struct field_model *model)
{
    uint32_t canonical = model->mlp_params, activations = model->activations;
    model->warp_layers = config->dynamic.layers + 1;
    BASE_TRY(field_check(model->layer_count + model->warp_layers <= MAX_LAYERS, "dynamic.layers",
                         "more than 16 layers with those of the MLPs"));
    uint32_t inputs = 3 + 6 * config->dynamic.position_octaves + FIELD_TIME_INPUTS(config);
    const struct field_mlp warp = {
        .inputs = field_pad_columns(inputs),
        .used_inputs = inputs,
        .width = config->dynamic.width,
        .hidden = config->dynamic.layers,
        .outputs = FIELD_COLUMNS,
        .used_outputs = 3,
        .biases = true,
        .initial = LAST_LAYER,
    };
    BASE_TRY(field_add_mlp(model, &warp));
    model->activations = activations; /* of fused layers alone */
    model->param_count = model->mlp_params;
    place_columns(model);
    model->chunk_rows = config->batch.chunk;
    model->groups[model->group_count++] =
        (struct parameter_group){.count = model->mlp_params - canonical,
                                 .entry = 2,
                                 .rate = config->dynamic.rate,
                                 .decay = 1};
    return VKN_OK;
}

void dynamic_configure_warp(const struct vkn_config *config, const struct field_model *model,
                            struct Config *constants, struct gpu_constants *specialization)
{
    specialization->values[SPEC_WARPED] = 1;
    constants->warp_input = model->warp_input;
    constants->warp_output = model->warp_output;
    constants->warp_octaves = config->dynamic.position_octaves;
    constants->time_octaves = config->dynamic.time_octaves;
    constants->curriculum = fmaxf(config->dynamic.curriculum, 0.0f);
}

static vkn_status create(const struct vkn_config *config, struct field_model *model)
{
    BASE_TRY(ngp_create(config, model));
    BASE_TRY(dynamic_add_warp(config, model));
    ngp_place_grid(config, model);
    return VKN_OK;
}

static void configure(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization)
{
    ngp_configure(config, model, constants, specialization);
    dynamic_configure_warp(config, model, constants, specialization);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* clang-format off */
/* From samples to their places in the canonical scene, and the features there. */
#define DEFORM                                                                                       \
    {"pack_weights", .variant = FIELD_HALF, .dispatch = DISPATCH_FORWARD, .loop = LOOP_WARP,         \
     .cost = dynamic_cost_pack},                                                                     \
    {"encode_warp", .variant = FIELD_HALF, SAMPLES, .cost = dynamic_cost_encode},                    \
    {"layer_forward", .variant = FIELD_PRODUCT, SAMPLES, .loop = LOOP_WARP,                          \
     .cost = dynamic_cost_forward},                                                                  \
    {"warp_samples", .variant = FIELD_HALF, SAMPLES, .cost = dynamic_cost_place},                    \
    {"encode_samples", .variant = FIELD_COPIES, .dispatch = DISPATCH_FORWARD, .cost = ngp_cost_encode}

static const struct pass forward[] = {
    DEFORM,
    {"field_forward", .variant = FIELD_FORWARD, .dispatch = DISPATCH_FORWARD,
     .cost = ngp_cost_forward},
};

static const struct pass densities[] = {
    DEFORM,
    {"field_forward", .label = "field_densities", .variant = FIELD_FORWARD,
     .dispatch = DISPATCH_FORWARD, .rows = ROWS_DENSITIES, .cost = ngp_cost_densities},
};

/* The features are there. */
static const struct pass colors[] = {
    {"field_forward", .label = "field_colors", .variant = FIELD_FORWARD,
     .dispatch = DISPATCH_FORWARD, .rows = ROWS_LIVE, .cost = ngp_cost_colors},
};

/* When colours are done with, live samples go through the deformation once more, a chunk at a time, for its
 * activations and for their places, which are what the grid's gradients are by as well. */
static const struct pass backward[] = {
    {"field_backward", .variant = FIELD_BACKWARD, .dispatch = DISPATCH_BACKWARD,
     .cost = ngp_cost_backward},
    {"encode_warp", .label = "encode_live", .variant = FIELD_HALF, LIVE,
     .cost = dynamic_cost_encode_live},
    {"layer_forward", .label = "layer_forward_live", .variant = FIELD_PRODUCT, LIVE,
     .loop = LOOP_WARP, .cost = dynamic_cost_forward_live},
    {"warp_samples", .label = "warp_live", .variant = FIELD_HALF, LIVE,
     .cost = dynamic_cost_place_live},
    {"input_gradients", .variant = FIELD_COPIES, LIVE, .cost = ngp_cost_input_gradients},
    {"warp_seeds", .variant = FIELD_HALF, LIVE, .cost = dynamic_cost_seeds},
    {"layer_backward", .variant = FIELD_PRODUCT, LIVE, .loop = LOOP_WARP_BACK,
     .cost = dynamic_cost_backward},
    {"layer_weights", .variant = FIELD_PRODUCT_SUMS, LIVE, .loop = LOOP_WARP,
     .cost = dynamic_cost_weights},
    {"scatter_gradients", .variant = FIELD_SCATTER, .dispatch = DISPATCH_FORWARD, .by_piece = true,
     .cost = ngp_cost_scatter},
    {"reduce_gradients", .variant = FIELD_REDUCE, .dispatch = DISPATCH_SUMMED,
     .shared_out = DISPATCH_FORWARD, .by_piece = true, .cost = dynamic_cost_reduce},
};

/* Cells are looked at when some training view was taken. */
static const struct pass occupancy[] = {
    {"pack_weights", .label = "pack_average", .variant = FIELD_HALF, .dispatch = DISPATCH_OCCUPANCY,
     .loop = LOOP_WARP, .average = true, .cost = dynamic_cost_pack},
    {"begin_cells", CELLS, .cost = vanilla_cost_none},
    {"pick_cells", CELLS, .cost = dynamic_cost_pick},
    {"encode_warp", CELLS, .variant = FIELD_HALF, .cost = dynamic_cost_encode_cells},
    {"layer_forward", CELLS, .variant = FIELD_PRODUCT, .loop = LOOP_WARP, .average = true,
     .cost = dynamic_cost_forward_cells},
    {"warp_samples", CELLS, .variant = FIELD_HALF, .cost = dynamic_cost_place_cells},
    {"encode_samples", CELLS, .variant = FIELD_COPIES, .average = true,
     .cost = dynamic_cost_features_cells},
    {"field_forward", CELLS, .variant = FIELD_FORWARD, .average = true,
     .cost = dynamic_cost_density_cells},
    {"store_cells", CELLS, .cost = vanilla_cost_store},
};
/* clang-format on */

static const char *const shape[] = {NGP_SHAPE, DYNAMIC_SHAPE, NULL};

const struct field_kind field_dynamic = {
    .name = VKN_MODEL_DYNAMIC,
    .precisions = true,
    .shape = shape,
    .create = create,
    .configure = configure,
    .initialize = ngp_initialize,
    .forward = RECIPE(forward),
    .densities = RECIPE(densities),
    .colors = RECIPE(colors),
    .backward = RECIPE(backward),
    .occupancy = RECIPE(occupancy),
    .canonical = &field_ngp,
};
