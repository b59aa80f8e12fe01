/* The vanilla model (Mildenhall et al., NeRF, ECCV 2020, figure 7): frequencies of the position ->
 * trunk, whose skip layer reads them again -> density and features; features and frequencies of the
 * direction -> colour. Layers are too wide to go through in one piece, so each is a pass of its
 * own. Parameters: [trunk's layers][colour's layers], each with biases. */
#include "field/internal.h"
#include "field/chunks.h"
#include "field/vanilla.h"

static vkn_status check_settings(const struct vkn_config *config)
{
    BASE_TRY(field_check(config->mlp.density_width % FIELD_COLUMNS == 0, "mlp.density_width",
                         "not a multiple of 32"));
    BASE_TRY(field_check(config->mlp.color_width % FIELD_COLUMNS == 0, "mlp.color_width",
                         "not a multiple of 32"));
    BASE_TRY(field_check(config->mlp.geometry % FIELD_COLUMNS == 0, "mlp.geometry",
                         "not a multiple of 32"));
    return field_check(config->mlp.density_layers + config->mlp.color_layers + 2 <= MAX_LAYERS,
                       "mlp.color_layers", "more than 14 hidden layers together");
}

static bool has_skip(const struct vkn_config *config)
{
    return config->mlp.skip_layer <= config->mlp.density_layers;
}

/* Which columns of a row's activations each layer reads and writes: encodings, then outputs of the
 * layers in their order. */
static void place_columns(const struct vkn_config *config, uint32_t direction, bool to_position,
                          struct field_model *model)
{
    uint32_t position = model->layers[0].inputs - model->layers[0].skip;
    uint32_t column = position + field_pad_columns(direction), before = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const struct field_layer *layer = &model->layers[i];
        bool first = i == 0 || layer->mlp != model->layers[i - 1].mlp, color = layer->mlp > 0;
        struct LayerFlow *flow = &model->flows[i];
        *flow = (struct LayerFlow){
            .from = first && color ? model->first_output + FIELD_COLUMNS : before,
            .own = first && color ? config->mlp.geometry : layer->inputs - layer->skip,
            .behind = color ? position : 0,
            .to = column,
            .rectified = !layer->last,
            .masked = !first,
            .again = to_position && i == 0 && has_skip(config) ? config->mlp.skip_layer - 1 : 0,
        };
        field_place_panels(model, i);
        if (layer->last)
            *(color ? &model->color_output : &model->first_output) = column;
        before = column;
        column += layer->outputs;
    }
    model->columns = column;
}

vkn_status vanilla_create_layers(const struct vkn_config *config, uint32_t position,
                                 uint32_t direction, bool to_position, struct field_model *model)
{
    BASE_TRY(check_settings(config));
    /* Density has a chunk of columns for itself, so that features begin with one. */
    const struct field_mlp trunk = {
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
    BASE_TRY(field_add_mlp(model, &trunk));
    BASE_TRY(field_add_mlp(model, &color));
    place_columns(config, direction, to_position, model);
    model->param_count = model->mlp_params;
    model->chunk_rows = config->batch.chunk;
    model->groups[model->group_count++] =
        (struct parameter_group){.count = model->param_count, .entry = 2, .rate = 1, .decay = 1};
    return VKN_OK;
}

vkn_status vanilla_create(const struct vkn_config *config, bool to_position,
                          struct field_model *model)
{
    uint32_t position = VANILLA_FREQUENCIES(config->mlp.position_octaves);
    uint32_t direction = VANILLA_FREQUENCIES(config->mlp.direction_octaves);
    return vanilla_create_layers(config, position + field_time_inputs(config), direction,
                                 to_position, model);
}

static vkn_status create(const struct vkn_config *config, struct field_model *model)
{
    return vanilla_create(config, false, model);
}

void vanilla_configure(const struct vkn_config *config, const struct field_model *model,
                       struct Config *constants, struct gpu_constants *specialization)
{
    (void)model, (void)constants;
    specialization->values[SPEC_LEVELS] = config->mlp.position_octaves;
    specialization->values[SPEC_SH_DEGREE] = config->mlp.direction_octaves;
    specialization->values[SPEC_TIME_INPUTS] = field_time_inputs(config);
}

void vanilla_initialize(const struct vkn_config *config, const struct field_model *model,
                        float *params)
{
    uint64_t state = field_random_begin(config);
    field_random_weights(model, &state, params);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* clang-format off */
static const struct pass forward[] = {
    {"pack_weights", .variant = FIELD_HALF, .dispatch = DISPATCH_FORWARD, .loop = LOOP_LAYERS,
     .cost = vanilla_cost_pack},
    {"encode_frequencies", .variant = FIELD_HALF, SAMPLES, .cost = vanilla_cost_encode},
    {"layer_forward", .variant = FIELD_PRODUCT, SAMPLES, .loop = LOOP_LAYERS,
     .cost = vanilla_cost_forward},
    {"field_values", .variant = FIELD_HALF, SAMPLES, .cost = vanilla_cost_values},
};

static const struct pass densities[] = {
    {"pack_weights", .variant = FIELD_HALF, .dispatch = DISPATCH_FORWARD, .loop = LOOP_LAYERS,
     .cost = vanilla_cost_pack},
    {"encode_frequencies", .variant = FIELD_HALF, SOME, .cost = vanilla_cost_encode},
    {"layer_forward", .label = "layer_densities", .variant = FIELD_PRODUCT, SOME,
     .loop = LOOP_DENSITY_LAYERS, .cost = vanilla_cost_densities},
    {"field_values", .label = "field_densities", .variant = FIELD_HALF, SOME,
     .cost = vanilla_cost_values},
};

/* Where all of the live samples are one chunk, the backward pass finds what this leaves. */
static const struct pass colors[] = {
    {"encode_frequencies", .label = "encode_colors", .variant = FIELD_HALF, LIVE,
     .cost = vanilla_cost_encode_live},
    {"layer_forward", .label = "layer_colors", .variant = FIELD_PRODUCT, LIVE, .loop = LOOP_LAYERS,
     .cost = vanilla_cost_forward_live},
    {"field_values", .label = "field_colors", .variant = FIELD_HALF, LIVE,
     .cost = vanilla_cost_colors},
};

/* Activations of live samples are computed again, or gathered where all were kept, a chunk of rows at a time. */
static const struct pass backward[] = {
    {"encode_frequencies", .label = "encode_live", .variant = FIELD_HALF, AGAIN,
     .cost = vanilla_cost_encode_again},
    {"layer_forward", .label = "layer_forward_live", .variant = FIELD_PRODUCT, AGAIN,
     .loop = LOOP_LAYERS, .cost = vanilla_cost_forward_again},
    {"gather_rows", .variant = FIELD_HALF, LIVE, .use = PASS_KEEPS, .cost = vanilla_cost_gather},
    {"field_seeds", .variant = FIELD_HALF, LIVE, .cost = vanilla_cost_seeds},
    {"layer_backward", .variant = FIELD_PRODUCT, LIVE, .loop = LOOP_LAYERS_BACK,
     .cost = vanilla_cost_backward},
    {"layer_weights", .variant = FIELD_PRODUCT_SUMS, LIVE, .loop = LOOP_LAYERS,
     .cost = vanilla_cost_weights},
    {"reduce_gradients", .variant = FIELD_REDUCE, .dispatch = DISPATCH_SUMMED,
     .shared_out = DISPATCH_FORWARD, .cost = vanilla_cost_reduce},
};

/* A chunk's cells are samples of their own, at places that no ray goes through. */
static const struct pass occupancy[] = {
    {"pack_weights", .label = "pack_average", .variant = FIELD_HALF, .dispatch = DISPATCH_OCCUPANCY,
     .loop = LOOP_LAYERS, .average = true, .cost = vanilla_cost_pack},
    {"begin_cells", CELLS, .cost = vanilla_cost_none},
    {"pick_cells", CELLS, .cost = vanilla_cost_pick},
    {"encode_frequencies", CELLS, .variant = FIELD_HALF, .cost = vanilla_cost_encode_cells},
    {"layer_forward", CELLS, .variant = FIELD_PRODUCT, .loop = LOOP_DENSITY_LAYERS, .average = true,
     .cost = vanilla_cost_density},
    {"field_values", CELLS, .variant = FIELD_HALF, .cost = vanilla_cost_cell_values},
    {"store_cells", CELLS, .cost = vanilla_cost_store},
};
/* clang-format on */

static const char *const shape[] = {VANILLA_SHAPE, NULL};

const struct field_kind field_vanilla = {
    .name = VKN_MODEL_VANILLA,
    .precisions = true,
    .shape = shape,
    .create = create,
    .configure = vanilla_configure,
    .initialize = vanilla_initialize,
    .forward = RECIPE(forward),
    .densities = RECIPE(densities),
    .colors = RECIPE(colors),
    .backward = RECIPE(backward),
    .occupancy = RECIPE(occupancy),
};
