/* The layered model: an encoding of the position -> density MLP, one of whose layers may read it
 * again -> density and features; features and an encoding of the direction -> colour MLP. Any of
 * the encodings with any number of layers, each a pass of its own as vanilla's are. Parameters:
 * [density layers][colour layers], each with biases, [grid levels] behind a hash grid. */
#include "field/layered.h"

#include "field/chunks.h"
#include "field/dynamic.h"
#include "field/ngp.h"
#include "field/vanilla.h"

static uint32_t direction_octaves(const struct vkn_config *config)
{
    return config->field.direction == VKN_DIRECTION_FREQUENCIES ? config->mlp.direction_octaves : 0;
}

static uint32_t direction_inputs(const struct vkn_config *config)
{
    switch (config->field.direction) {
    case VKN_DIRECTION_NONE:
        return 0;
    case VKN_DIRECTION_FREQUENCIES:
    case VKN_DIRECTION_IDENTITY:
        return VANILLA_FREQUENCIES(direction_octaves(config));
    default:
        return FIELD_NGP_DIRECTION;
    }
}

static uint32_t position_octaves(const struct vkn_config *config)
{
    return config->field.position == VKN_POSITION_FREQUENCIES ? config->mlp.position_octaves : 0;
}

static vkn_status create(const struct vkn_config *config, struct field_model *model)
{
    return vanilla_create_layers(config, VANILLA_FREQUENCIES(position_octaves(config)),
                                 direction_inputs(config), false, model);
}

static vkn_status create_hash(const struct vkn_config *config, struct field_model *model)
{
    BASE_TRY(ngp_check_grid(config));
    BASE_TRY(field_check(config->mlp.skip_layer > 1, "mlp.skip_layer",
                         "1: the first layer has no gradients by what it reads twice"));
    model->levels = config->grid.levels;
    model->features = config->grid.features;
    model->inputs = model->levels * model->features;
    BASE_TRY(vanilla_create_layers(config, model->inputs, direction_inputs(config), true, model));
    ngp_place_grid(config, model);
    return VKN_OK;
}

static void configure(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization)
{
    (void)model, (void)constants;
    uint32_t *values = specialization->values;
    bool harmonics = config->field.direction == VKN_DIRECTION_HARMONICS;
    values[SPEC_FEATURES] = 0;
    values[SPEC_LEVELS] = position_octaves(config);
    values[SPEC_DIRECTION] = config->field.direction;
    values[SPEC_SH_DEGREE] = harmonics ? config->mlp.sh_degree : direction_octaves(config);
    values[SPEC_TIME_INPUTS] = 0;
}

static void configure_hash(const struct vkn_config *config, const struct field_model *model,
                           struct Config *constants, struct gpu_constants *specialization)
{
    configure(config, model, constants, specialization);
    for (uint32_t i = 0; i < model->levels; i++)
        constants->levels[i] = model->level[i];
    specialization->values[SPEC_FEATURES] = model->features;
    specialization->values[SPEC_LEVELS] = model->levels;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* clang-format off */
/* Both kinds' lists; a hash grid's features are found before the layers, and their gradients go back
 * to it behind them. */
#define PACK                                                                                         \
    {"pack_weights", .variant = FIELD_HALF, .dispatch = DISPATCH_FORWARD, .loop = LOOP_LAYERS,       \
     .cost = vanilla_cost_pack}
#define FEATURES                                                                                     \
    {"encode_samples", .variant = FIELD_COPIES, .dispatch = DISPATCH_FORWARD, .cost = ngp_cost_encode}

#define FORWARD                                                                                      \
    {"encode_inputs", .variant = FIELD_HALF, SAMPLES, .cost = layered_cost_encode},                  \
    {"layer_forward", .variant = FIELD_PRODUCT, SAMPLES, .loop = LOOP_LAYERS,                        \
     .cost = vanilla_cost_forward},                                                                  \
    {"field_values", .variant = FIELD_HALF, SAMPLES, .cost = vanilla_cost_values}

#define DENSITIES                                                                                    \
    {"encode_inputs", .variant = FIELD_HALF, SOME, .cost = layered_cost_encode},                     \
    {"layer_forward", .label = "layer_densities", .variant = FIELD_PRODUCT, SOME,                    \
     .loop = LOOP_DENSITY_LAYERS, .cost = vanilla_cost_densities},                                   \
    {"field_values", .label = "field_densities", .variant = FIELD_HALF, SOME,                        \
     .cost = vanilla_cost_values}

#define SEEDS                                                                                        \
    {"encode_inputs", .label = "encode_live", .variant = FIELD_HALF, AGAIN,                          \
     .cost = layered_cost_encode_again},                                                             \
    {"layer_forward", .label = "layer_forward_live", .variant = FIELD_PRODUCT, AGAIN,                \
     .loop = LOOP_LAYERS, .cost = vanilla_cost_forward_again},                                       \
    {"gather_rows", .variant = FIELD_HALF, LIVE, .use = PASS_KEEPS, .cost = vanilla_cost_gather},    \
    {"field_seeds", .variant = FIELD_HALF, LIVE, .cost = vanilla_cost_seeds}

#define WEIGHTS                                                                                      \
    {"layer_weights", .variant = FIELD_PRODUCT_SUMS, LIVE, .loop = LOOP_LAYERS,                      \
     .cost = vanilla_cost_weights}

#define PICK                                                                                         \
    {"pack_weights", .label = "pack_average", .variant = FIELD_HALF, .dispatch = DISPATCH_OCCUPANCY, \
     .loop = LOOP_LAYERS, .average = true, .cost = vanilla_cost_pack},                               \
    {"begin_cells", CELLS, .cost = vanilla_cost_none},                                               \
    {"pick_cells", CELLS, .cost = vanilla_cost_pick}

#define STORE                                                                                        \
    {"encode_inputs", CELLS, .variant = FIELD_HALF, .cost = layered_cost_encode_cells},              \
    {"layer_forward", CELLS, .variant = FIELD_PRODUCT, .loop = LOOP_DENSITY_LAYERS, .average = true, \
     .cost = vanilla_cost_density},                                                                  \
    {"field_values", CELLS, .variant = FIELD_HALF, .cost = vanilla_cost_cell_values},                \
    {"store_cells", CELLS, .cost = vanilla_cost_store}

static const struct pass forward[] = {PACK, FORWARD};
static const struct pass forward_hash[] = {PACK, FEATURES, FORWARD};

static const struct pass densities[] = {PACK, DENSITIES};
static const struct pass densities_hash[] = {PACK, FEATURES, DENSITIES};

/* Features are there. */
static const struct pass colors[] = {
    {"encode_inputs", .label = "encode_colors", .variant = FIELD_HALF, LIVE,
     .cost = layered_cost_encode_live},
    {"layer_forward", .label = "layer_colors", .variant = FIELD_PRODUCT, LIVE, .loop = LOOP_LAYERS,
     .cost = vanilla_cost_forward_live},
    {"field_values", .label = "field_colors", .variant = FIELD_HALF, LIVE,
     .cost = vanilla_cost_colors},
};

static const struct pass backward[] = {
    SEEDS,
    {"layer_backward", .variant = FIELD_PRODUCT, LIVE, .loop = LOOP_LAYERS_BACK,
     .cost = vanilla_cost_backward},
    WEIGHTS,
    {"reduce_gradients", .variant = FIELD_REDUCE, .dispatch = DISPATCH_SUMMED,
     .shared_out = DISPATCH_FORWARD, .cost = vanilla_cost_reduce},
};

static const struct pass backward_hash[] = {
    SEEDS,
    {"layer_backward", .variant = FIELD_PRODUCT, LIVE, .loop = LOOP_LAYERS_DOWN,
     .cost = vanilla_cost_backward},
    {"feature_gradients", .variant = FIELD_HALF, LIVE, .cost = layered_cost_features},
    WEIGHTS,
    {"scatter_gradients", .variant = FIELD_SCATTER, .dispatch = DISPATCH_FORWARD, .by_piece = true,
     .cost = ngp_cost_scatter},
    {"reduce_gradients", .variant = FIELD_REDUCE, .dispatch = DISPATCH_SUMMED,
     .shared_out = DISPATCH_FORWARD, .by_piece = true, .cost = ngp_cost_reduce},
};

static const struct pass occupancy[] = {PICK, STORE};
static const struct pass occupancy_hash[] = {
    PICK,
    {"encode_samples", CELLS, .variant = FIELD_COPIES, .average = true,
     .cost = dynamic_cost_features_cells},
    STORE,
};

#define KEYS  "field.position", "field.direction", "field.activation", "mlp.sh_degree"
/* clang-format on */

static const char *const shape[] = {KEYS, VANILLA_SHAPE, NULL};
static const char *const shape_hash[] = {KEYS, NGP_GRID, VANILLA_SHAPE, NULL};

const struct field_kind field_layered_plain = {
    .name = VKN_MODEL_LAYERED,
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
};

const struct field_kind field_layered_hash = {
    .name = VKN_MODEL_LAYERED,
    .precisions = true,
    .shape = shape_hash,
    .create = create_hash,
    .configure = configure_hash,
    .initialize = ngp_initialize,
    .forward = RECIPE(forward_hash),
    .densities = RECIPE(densities_hash),
    .colors = RECIPE(colors),
    .backward = RECIPE(backward_hash),
    .occupancy = RECIPE(occupancy_hash),
};
