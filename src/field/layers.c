/* Defines the vanilla and the layered model, whose layers may be too wide for one pass, so that
 * each layer is its own pass. Encoded position -> density MLP (optional skip connection) -> density
 * and features; features and encoded direction -> colour MLP. The vanilla model (Mildenhall et al.,
 * NeRF, ECCV 2020, figure 7) has frequency encodings, the layered model any encodings. Parameters:
 * [density layers][colour layers][deformation layers], each with biases, then [grid levels]. */
#include "field/layers.h"

#include "field/deformation.h"
#include "field/ngp.h"

static uint32_t direction_inputs(const struct vkn_config *config)
{
    switch (field_direction(config)) {
    case VKN_DIRECTION_NONE:
        return 0;
    case VKN_DIRECTION_FREQUENCIES:
    case VKN_DIRECTION_IDENTITY:
        return LAYERS_FREQUENCIES(field_direction_octaves(config));
    default:
        return FIELD_NGP_DIRECTION;
    }
}

/* ---- layout ---------------------------------------------------------------------------------- */

static bool has_skip(const struct vkn_config *config)
{
    return config->mlp.skip_layer <= config->mlp.density_layers;
}

static vkn_status check_settings(const struct vkn_config *config, bool position_gradients)
{
    BASE_TRY(field_check(config->mlp.density_width % FIELD_COLUMNS == 0, "mlp.density_width",
                         "not a multiple of 32"));
    BASE_TRY(field_check(config->mlp.color_width % FIELD_COLUMNS == 0, "mlp.color_width",
                         "not a multiple of 32"));
    BASE_TRY(field_check(config->mlp.geometry % FIELD_COLUMNS == 0, "mlp.geometry",
                         "not a multiple of 32"));
    BASE_TRY(field_check(
        !position_gradients || config->mlp.skip_layer > 1, "mlp.skip_layer",
        "1: with a hash grid, a deformation or scene.refine the first layer cannot have the skip "
        "connection"));
    return field_check(config->mlp.density_layers + config->mlp.color_layers + 2 <= MAX_LAYERS,
                       "mlp.color_layers", "more than 14 hidden layers in both MLPs");
}

/* Decides which columns of a row's activations each layer reads and writes. A row holds the
 * encodings, then the outputs of the layers in order. */
static void place_columns(const struct vkn_config *config, struct field_model *model)
{
    uint32_t position = model->layers[0].inputs - model->layers[0].skip;
    uint32_t column = position + field_pad_columns(direction_inputs(config)), from = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct field_layer *layer = &model->layers[i];
        bool is_first = i == 0 || layer->mlp != model->layers[i - 1].mlp, is_color = layer->mlp > 0;
        bool is_read_twice = model->position_gradients && i == 0 && has_skip(config);
        struct LayerColumns *io = &model->layer_columns[i];
        bool reads_direction = is_first && is_color;
        uint32_t count = reads_direction ? config->mlp.geometry : layer->inputs - layer->skip;
        *io = (struct LayerColumns){
            .input_column = reads_direction ? model->first_output + FIELD_COLUMNS : from,
            .input_count = count,
            .second_column = is_color ? position : 0,
            .gradient_count = reads_direction && model->refined ? layer->inputs : count,
            .output_column = column,
            .activated = !layer->last,
            .input_activated = !is_first,
            .also_read_by = is_read_twice ? config->mlp.skip_layer - 1 : 0,
        };
        field_place_panels(model, i);
        if (layer->last)
            *(is_color ? &model->color_output : &model->first_output) = column;
        from = column;
        column += layer->outputs;
    }
    model->columns = column;
}

static vkn_status add_mlps(const struct vkn_config *config, uint32_t position, uint32_t direction,
                           struct field_model *model)
{
    /* The density has its own chunk of columns, so that the features begin at a chunk. */
    const struct field_mlp density = {
        .inputs = field_pad_columns(position),
        .used_inputs = position,
        .width = config->mlp.density_width,
        .hidden = config->mlp.density_layers,
        .outputs = FIELD_COLUMNS + config->mlp.geometry,
        .used_outputs = FIELD_COLUMNS + config->mlp.geometry,
        .skip_at = has_skip(config) ? config->mlp.skip_layer : 0,
        .biases = true,
    };
    const struct field_mlp color = {
        .inputs = config->mlp.geometry + field_pad_columns(direction),
        .used_inputs = config->mlp.geometry + direction,
        .width = config->mlp.color_width,
        .hidden = config->mlp.color_layers,
        .outputs = FIELD_COLUMNS,
        .used_outputs = 3,
        .biases = true,
    };
    BASE_TRY(field_add_mlp(model, &density));
    return field_add_mlp(model, &color);
}

static vkn_status create(const struct vkn_config *config, struct field_model *model)
{
    uint32_t position = LAYERS_FREQUENCIES(field_position_octaves(config));
    if (field_position(config) <= VKN_POSITION_HASH) {
        BASE_TRY(ngp_check_grid(config));
        model->levels = config->grid.levels;
        model->features = config->grid.features;
        position = model->inputs = model->levels * model->features;
        model->position_gradients = true;
    }
    BASE_TRY(check_settings(config, model->position_gradients));
    BASE_TRY(
        add_mlps(config, position + field_time_inputs(config), direction_inputs(config), model));
    place_columns(config, model);
    model->param_count = model->mlp_params;
    model->chunk_rows = config->batch.chunk;
    model->groups[model->group_count++] =
        (struct parameter_group){.count = model->param_count, .entry = 2, .rate = 1, .decay = 1};
    return VKN_OK;
}

static void configure(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization)
{
    (void)constants;
    uint32_t *values = specialization->values;
    bool harmonics = field_direction(config) == VKN_DIRECTION_HARMONICS;
    values[SPEC_FEATURES] = model->features;
    values[SPEC_LEVELS] = model->levels > 0 ? model->levels : field_position_octaves(config);
    values[SPEC_DIRECTION] = field_direction(config);
    values[SPEC_SH_DEGREE] = harmonics ? config->mlp.sh_degree : field_direction_octaves(config);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* clang-format off */
static const struct pass forward[] = {
    PACK(PASS_ALWAYS),
    FEATURES(SAMPLES),
    {"encode_inputs", .variant = FIELD_F16_ACTIVATIONS, SAMPLES, .cost = layers_cost_encode},
    {"layer_forward", .variant = FIELD_LAYER_PRODUCT, SAMPLES, .loop = LOOP_LAYERS,
     .cost = layers_cost_forward},
    {"field_values", .variant = FIELD_F16_ACTIVATIONS, SAMPLES, .cost = layers_cost_values},
};

static const struct pass densities[] = {
    PACK(PASS_ALWAYS),
    FEATURES(DENSITIES),
    {"encode_inputs", .variant = FIELD_F16_ACTIVATIONS, DENSITIES, .cost = layers_cost_encode},
    {"layer_forward", .label = "layer_densities", .variant = FIELD_LAYER_PRODUCT, DENSITIES,
     .loop = LOOP_DENSITY_LAYERS, .cost = layers_cost_forward},
    {"field_values", .label = "field_densities", .variant = FIELD_F16_ACTIVATIONS, DENSITIES,
     .cost = layers_cost_values},
};

/* If all live samples fit into one chunk, the backward pass reads the activations of these passes.
 * The hash grid's features remain from the density passes. */
static const struct pass colors[] = {
    DEFORM(PASS_DEFORMED, "_colors", LIVE),
    {"encode_inputs", .label = "encode_colors", .variant = FIELD_F16_ACTIVATIONS, LIVE,
     .cost = layers_cost_encode},
    {"layer_forward", .label = "layer_colors", .variant = FIELD_LAYER_PRODUCT, LIVE,
     .loop = LOOP_LAYERS, .cost = layers_cost_forward},
    {"field_values", .label = "field_colors", .variant = FIELD_F16_ACTIVATIONS, LIVE,
     .cost = layers_cost_values},
};

/* Recompute the activations of live samples, or gather kept ones, a chunk of rows at a time. */
static const struct pass backward[] = {
    DEFORM(PASS_DEFORMED | PASS_RECOMPUTES, "_live", LIVE_RECOMPUTED),
    {"encode_inputs", .label = "encode_live", .use = PASS_RECOMPUTES,
     .variant = FIELD_F16_ACTIVATIONS, LIVE_RECOMPUTED, .cost = layers_cost_encode},
    {"layer_forward", .label = "layer_forward_live", .use = PASS_RECOMPUTES,
     .variant = FIELD_LAYER_PRODUCT, LIVE_RECOMPUTED, .loop = LOOP_LAYERS,
     .cost = layers_cost_forward},
    {"gather_rows", .use = PASS_KEEPS_ACTIVATIONS, .variant = FIELD_F16_ACTIVATIONS, LIVE,
     .cost = layers_cost_gather},
    {"field_output_gradients", .variant = FIELD_F16_ACTIVATIONS, LIVE,
     .cost = layers_cost_output_gradients},
    {"layer_backward", .variant = FIELD_LAYER_PRODUCT, LIVE, .loop = LOOP_LAYERS_BACK,
     .cost = layers_cost_backward},
    {"feature_gradients", .use = PASS_GRID, .variant = FIELD_F16_ACTIVATIONS, LIVE,
     .cost = layers_cost_features},
    GRID_POSITION_GRADIENTS(PASS_DEFORMED | PASS_GRID),
    FREQUENCY_GRADIENTS(PASS_DEFORMED | PASS_NO_GRID),
    FREQUENCY_GRADIENTS(PASS_NOT_DEFORMED | PASS_NO_GRID | PASS_REFINED),
    {"direction_gradients", .use = PASS_REFINED, .variant = FIELD_F16_ACTIVATIONS, LIVE,
     .cost = layers_cost_directions},
    DEFORM_BACK(PASS_DEFORMED),
    LAYER_WEIGHTS(PASS_ALWAYS),
    {"scatter_gradients", .use = PASS_GRID, .variant = FIELD_SCATTER, .dispatch = DISPATCH_FORWARD,
     .by_bucket = true, .cost = ngp_cost_scatter},
    {"reduce_gradients", .variant = FIELD_REDUCE, .dispatch = DISPATCH_SUMMED,
     .gpu_dispatch = DISPATCH_FORWARD, .by_bucket = true, .place = PASS_AT_END,
     .cost = ngp_cost_reduce},
};

/* Evaluate a chunk of cells as samples at random positions; each sample has its own ray. */
static const struct pass occupancy[] = {
    PACK_AVERAGE(PASS_ALWAYS),
    {"begin_cells", CELLS, .cost = layers_cost_begin},
    {"pick_cells", CELLS, .cost = layers_cost_pick},
    DEFORM_CELLS(PASS_DEFORMED),
    {"deform_samples", .use = PASS_DEFORMED | PASS_GRID, CELLS, .variant = FIELD_F16_ACTIVATIONS,
     .cost = deformation_cost_move},
    {"encode_samples", .use = PASS_GRID, CELLS, .variant = FIELD_F16_PARAMS, .average = true,
     .cost = ngp_cost_encode},
    {"encode_inputs", CELLS, .variant = FIELD_F16_ACTIVATIONS, .cost = layers_cost_encode},
    {"layer_forward", CELLS, .variant = FIELD_LAYER_PRODUCT, .loop = LOOP_DENSITY_LAYERS,
     .average = true, .cost = layers_cost_forward},
    {"field_values", CELLS, .variant = FIELD_F16_ACTIVATIONS, .cost = layers_cost_values},
    {"store_cells", CELLS, .cost = layers_cost_store},
};

static const struct pass input_gradients[] = {
    {"input_gradients", .use = PASS_GRID | PASS_NOT_DEFORMED, .variant = FIELD_F16_PARAMS,
     .dispatch = DISPATCH_FORWARD, .cost = ngp_cost_input_gradients},
};

/* ---- the models ------------------------------------------------------------------------------ */

#define SHAPE                                                                                      \
    "mlp.density_width", "mlp.density_layers", "mlp.geometry", "mlp.color_width",                  \
    "mlp.color_layers", "mlp.skip_layer", "mlp.position_octaves", "mlp.direction_octaves"

static const char *const shape[] = {SHAPE, NULL};
static const char *const layered_shape[] = {"field.position", "field.direction", "field.activation",
                                           "mlp.sh_degree", NGP_GRID, SHAPE, NULL};

#define LAYERS(model, keys)                                                                        \
    {                                                                                              \
        .name = (model), .precisions = true, .shape = (keys), .create = create,                    \
        .configure = configure, .forward = PASS_LIST(forward), .densities = PASS_LIST(densities),  \
        .colors = PASS_LIST(colors), .backward = PASS_LIST(backward),                              \
        .occupancy = PASS_LIST(occupancy), .input_gradients = PASS_LIST(input_gradients),          \
    }
const struct field_kind field_vanilla = LAYERS(VKN_MODEL_VANILLA, shape);
const struct field_kind field_layered = LAYERS(VKN_MODEL_LAYERED, layered_shape);
/* clang-format on */
