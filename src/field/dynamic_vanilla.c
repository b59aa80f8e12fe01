/* The dynamic model with vanilla's canonical field. All layers are passes, so that a chunk's rows
 * go through the deformation and, moved, on through the field; where they are moved to is known
 * from the activations, backwards as well. Parameters: [trunk's layers][colour's
 * layers][deformation's layers]. */
#include "field/chunks.h"
#include "field/dynamic.h"
#include "field/vanilla.h"

static vkn_status create(const struct vkn_config *config, struct field_model *model)
{
    BASE_TRY(field_check(config->mlp.skip_layer > 1, "mlp.skip_layer",
                         "1: the first layer has no gradients by what it reads twice"));
    BASE_TRY(vanilla_create(config, true, model));
    return dynamic_add_warp(config, model);
}

static void configure(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization)
{
    vanilla_configure(config, model, constants, specialization);
    dynamic_configure_warp(config, model, constants, specialization);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* clang-format off */
static const struct pass forward[] = {
    {"pack_weights", .variant = FIELD_HALF, .dispatch = DISPATCH_FORWARD, .loop = LOOP_ALL_LAYERS,
     .cost = vanilla_cost_pack},
    {"encode_warp", .variant = FIELD_HALF, SAMPLES, .cost = dynamic_cost_encode},
    {"layer_forward", .label = "warp_forward", .variant = FIELD_PRODUCT, SAMPLES, .loop = LOOP_WARP,
     .cost = dynamic_cost_forward},
    {"encode_frequencies", .variant = FIELD_HALF, SAMPLES, .cost = vanilla_cost_encode},
    {"layer_forward", .variant = FIELD_PRODUCT, SAMPLES, .loop = LOOP_LAYERS,
     .cost = vanilla_cost_forward},
    {"field_values", .variant = FIELD_HALF, SAMPLES, .cost = vanilla_cost_values},
};

static const struct pass densities[] = {
    {"pack_weights", .variant = FIELD_HALF, .dispatch = DISPATCH_FORWARD, .loop = LOOP_ALL_LAYERS,
     .cost = vanilla_cost_pack},
    {"encode_warp", .variant = FIELD_HALF, SOME, .cost = dynamic_cost_encode},
    {"layer_forward", .label = "warp_forward", .variant = FIELD_PRODUCT, SOME, .loop = LOOP_WARP,
     .cost = dynamic_cost_forward},
    {"encode_frequencies", .variant = FIELD_HALF, SOME, .cost = vanilla_cost_encode},
    {"layer_forward", .label = "layer_densities", .variant = FIELD_PRODUCT, SOME,
     .loop = LOOP_DENSITY_LAYERS, .cost = vanilla_cost_densities},
    {"field_values", .label = "field_densities", .variant = FIELD_HALF, SOME,
     .cost = vanilla_cost_values},
};

static const struct pass colors[] = {
    {"encode_warp", .label = "encode_warp_colors", .variant = FIELD_HALF, LIVE,
     .cost = dynamic_cost_encode_live},
    {"layer_forward", .label = "warp_colors", .variant = FIELD_PRODUCT, LIVE, .loop = LOOP_WARP,
     .cost = dynamic_cost_forward_live},
    {"encode_frequencies", .label = "encode_colors", .variant = FIELD_HALF, LIVE,
     .cost = vanilla_cost_encode_live},
    {"layer_forward", .label = "layer_colors", .variant = FIELD_PRODUCT, LIVE, .loop = LOOP_LAYERS,
     .cost = vanilla_cost_forward_live},
    {"field_values", .label = "field_colors", .variant = FIELD_HALF, LIVE,
     .cost = vanilla_cost_colors},
};

static const struct pass backward[] = {
    {"encode_warp", .label = "encode_warp_live", .variant = FIELD_HALF, AGAIN,
     .cost = dynamic_cost_encode_again},
    {"layer_forward", .label = "warp_forward_live", .variant = FIELD_PRODUCT, AGAIN,
     .loop = LOOP_WARP, .cost = dynamic_cost_forward_again},
    {"encode_frequencies", .label = "encode_live", .variant = FIELD_HALF, AGAIN,
     .cost = vanilla_cost_encode_again},
    {"layer_forward", .label = "layer_forward_live", .variant = FIELD_PRODUCT, AGAIN,
     .loop = LOOP_LAYERS, .cost = vanilla_cost_forward_again},
    {"gather_rows", .variant = FIELD_HALF, LIVE, .use = PASS_KEEPS, .cost = vanilla_cost_gather},
    {"field_seeds", .variant = FIELD_HALF, LIVE, .cost = vanilla_cost_seeds},
    {"layer_backward", .variant = FIELD_PRODUCT, LIVE, .loop = LOOP_LAYERS_DOWN,
     .cost = vanilla_cost_backward},
    {"frequency_gradients", .variant = FIELD_HALF, LIVE, .cost = dynamic_cost_frequencies},
    {"warp_seeds", .variant = FIELD_HALF, LIVE, .cost = dynamic_cost_seeds},
    {"layer_backward", .label = "warp_backward", .variant = FIELD_PRODUCT, LIVE,
     .loop = LOOP_WARP_BACK, .cost = dynamic_cost_backward},
    {"layer_weights", .variant = FIELD_PRODUCT_SUMS, LIVE, .loop = LOOP_ALL_LAYERS,
     .cost = vanilla_cost_weights},
    {"reduce_gradients", .variant = FIELD_REDUCE, .dispatch = DISPATCH_SUMMED,
     .shared_out = DISPATCH_FORWARD, .cost = vanilla_cost_reduce},
};

/* Cells are looked at when some training view was taken. */
static const struct pass occupancy[] = {
    {"pack_weights", .label = "pack_average", .variant = FIELD_HALF, .dispatch = DISPATCH_OCCUPANCY,
     .loop = LOOP_ALL_LAYERS, .average = true, .cost = vanilla_cost_pack},
    {"begin_cells", CELLS, .cost = vanilla_cost_none},
    {"pick_cells", CELLS, .cost = dynamic_cost_pick},
    {"encode_warp", CELLS, .variant = FIELD_HALF, .cost = dynamic_cost_encode_cells},
    {"layer_forward", CELLS, .variant = FIELD_PRODUCT, .loop = LOOP_WARP, .average = true,
     .cost = dynamic_cost_forward_cells},
    {"encode_frequencies", CELLS, .variant = FIELD_HALF, .cost = vanilla_cost_encode_cells},
    {"layer_forward", CELLS, .variant = FIELD_PRODUCT, .loop = LOOP_DENSITY_LAYERS, .average = true,
     .cost = vanilla_cost_density},
    {"field_values", CELLS, .variant = FIELD_HALF, .cost = vanilla_cost_cell_values},
    {"store_cells", CELLS, .cost = vanilla_cost_store},
};
/* clang-format on */

static const char *const shape[] = {VANILLA_SHAPE, DYNAMIC_SHAPE, NULL};

const struct field_kind field_dynamic_vanilla = {
    .name = VKN_MODEL_DYNAMIC,
    .precisions = true,
    .shape = shape,
    .create = create,
    .configure = configure,
    .initialize = vanilla_initialize,
    .forward = RECIPE(forward),
    .densities = RECIPE(densities),
    .colors = RECIPE(colors),
    .backward = RECIPE(backward),
    .occupancy = RECIPE(occupancy),
    .canonical = &field_vanilla,
};
