/* Defines the ngp model (Mueller et al., Instant Neural Graphics Primitives, SIGGRAPH 2022): hash
 * grid -> density MLP -> (geometry features, spherical harmonics) -> colour MLP. Parameters:
 * [density layers][colour layers][grid levels]. */
#include "field/ngp.h"

#include "field/deformation.h"

#include <math.h>

/* Resolutions grow geometrically from coarsest to finest; a level whose grid points all fit into
 * the table is indexed directly (section 3 of the paper). */
static void place_levels(const struct vkn_config *config, struct field_model *model)
{
    uint32_t table = 1u << config->grid.log2_entries;
    double growth =
        config->grid.levels > 1
            ? log((double)config->grid.finest / config->grid.coarsest) / (config->grid.levels - 1)
            : 0.0;
    uint32_t first = model->mlp_params;
    for (uint32_t i = 0; i < config->grid.levels; i++) {
        double scale = config->grid.coarsest * exp(i * growth) - 1.0;
        uint32_t resolution = (uint32_t)ceil(scale - 1e-6) + 1;
        uint64_t points = (uint64_t)resolution * resolution * resolution;
        bool dense = points <= table;
        /* A multiple of 16 entries, so that each table is whole cache lines. */
        uint32_t entries = dense ? FIELD_PAD((uint32_t)points) : table;
        uint32_t count = entries * config->grid.features;
        model->level[i] = (struct Level){.first = first,
                                         .entries = entries,
                                         .resolution = resolution,
                                         .scale = (float)scale,
                                         .dense = dense,
                                         .decay = config->grid.decay / (float)count};
        first += count;
    }
    model->param_count = first;
}

vkn_status ngp_check_grid(const struct vkn_config *config)
{
    BASE_TRY(field_check(config->grid.features == 2 || config->grid.features == 4, "grid.features",
                         "not 2 or 4"));
    BASE_TRY(field_check(config->grid.levels <= MAX_LEVELS, "grid.levels", "more than 32"));
    BASE_TRY(field_check(config->grid.levels * config->grid.features <= 128, "grid.levels",
                         "more than 128 features in all levels"));
    return field_check(config->grid.finest >= config->grid.coarsest, "grid.finest",
                       "below grid.coarsest");
}

static vkn_status check_settings(const struct vkn_config *config)
{
    BASE_TRY(field_check(config->mlp.density_width % 16 == 0, "mlp.density_width",
                         "not a multiple of 16"));
    BASE_TRY(
        field_check(config->mlp.color_width % 16 == 0, "mlp.color_width", "not a multiple of 16"));
    BASE_TRY(field_check(config->mlp.geometry % 16 == 0, "mlp.geometry", "not a multiple of 16"));
    BASE_TRY(field_check(config->mlp.geometry <= 64, "mlp.geometry", "more than 64"));
    BASE_TRY(field_check(config->mlp.density_layers + config->mlp.color_layers + 2 <= MAX_LAYERS,
                         "mlp.color_layers", "more than 14 hidden layers in both MLPs"));
    return ngp_check_grid(config);
}

vkn_status ngp_create_density(const struct vkn_config *config, struct field_model *model)
{
    model->levels = config->grid.levels;
    model->features = config->grid.features;
    model->inputs = model->levels * model->features;
    model->encoded = FIELD_PAD(model->inputs + field_time_inputs(config));
    model->activations = model->encoded;
    const struct field_mlp density = {
        .inputs = model->encoded,
        .used_inputs = model->inputs + field_time_inputs(config),
        .width = config->mlp.density_width,
        .hidden = config->mlp.density_layers,
        .outputs = config->mlp.geometry,
        .used_outputs = config->mlp.geometry,
    };
    return field_add_mlp(model, &density);
}

void ngp_end_mlps(struct field_model *model)
{
    model->fused = model->layer_count;
    /* Every weight is updated in every step, so that the entry size does not matter. */
    model->groups[model->group_count++] = (struct parameter_group){
        .count = model->mlp_params, .entry = model->features, .rate = 1.0f, .decay = 1.0f};
}

vkn_status ngp_create(const struct vkn_config *config, struct field_model *model)
{
    BASE_TRY(check_settings(config));
    BASE_TRY(ngp_create_density(config, model));
    model->activations += FIELD_NGP_DIRECTION;
    const struct field_mlp color = {
        .inputs = config->mlp.geometry + FIELD_NGP_DIRECTION,
        .used_inputs = config->mlp.geometry + FIELD_NGP_DIRECTION,
        .width = config->mlp.color_width,
        .hidden = config->mlp.color_layers,
        .outputs = COLOR_OUTPUTS,
        .used_outputs = 3,
    };
    BASE_TRY(field_add_mlp(model, &color));
    ngp_end_mlps(model);
    return VKN_OK;
}

void ngp_place_grid(const struct vkn_config *config, struct field_model *model)
{
    place_levels(config, model);
    /* Without decay a step has gradients for few hash grid entries; the others stay unchanged. */
    model->groups[model->group_count++] =
        (struct parameter_group){.count = model->param_count - model->mlp_params,
                                 .entry = model->features,
                                 .sparse = config->grid.decay <= 0,
                                 .rate = 1.0f};
}

void ngp_configure(const struct vkn_config *config, const struct field_model *model,
                   struct Config *constants, struct gpu_constants *specialization)
{
    (void)model, (void)constants;
    uint32_t *values = specialization->values;
    values[SPEC_LEVELS] = config->grid.levels;
    values[SPEC_FEATURES] = config->grid.features;
    values[SPEC_DENSITY_WIDTH] = config->mlp.density_width;
    values[SPEC_DENSITY_LAYERS] = config->mlp.density_layers;
    values[SPEC_GEOMETRY] = config->mlp.geometry;
    values[SPEC_SH_DEGREE] = config->mlp.sh_degree;
    values[SPEC_COLOR_WIDTH] = config->mlp.color_width;
    values[SPEC_COLOR_LAYERS] = config->mlp.color_layers;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* clang-format off */
static const struct pass forward[] = {
    PACK(PASS_DEFORMED),
    FEATURES(SAMPLES),
    {"field_forward", .variant = FIELD_FORWARD, .dispatch = DISPATCH_FORWARD,
     .cost = ngp_cost_forward},
};

static const struct pass densities[] = {
    PACK(PASS_DEFORMED),
    FEATURES(SAMPLES),
    {"field_forward", .label = "field_densities", .variant = FIELD_FORWARD,
     .dispatch = DISPATCH_FORWARD, .rows = ROWS_DENSITIES, .cost = ngp_cost_densities},
};

/* Evaluates the density MLP again: storing and loading its outputs would cost as much. */
static const struct pass colors[] = {
    {"field_forward", .label = "field_colors", .variant = FIELD_FORWARD,
     .dispatch = DISPATCH_FORWARD, .rows = ROWS_LIVE, .cost = ngp_cost_colors},
};

/* After field_backward the deformation is evaluated again for live samples, a chunk at a time: the
 * gradients of its weights need activations, the hash grid's gradients need canonical positions. */
static const struct pass backward[] = {
    {"field_backward", .variant = FIELD_BACKWARD, .dispatch = DISPATCH_BACKWARD,
     .cost = ngp_cost_backward},
    DEFORM(PASS_DEFORMED, "_live", LIVE),
    GRID_POSITION_GRADIENTS(PASS_DEFORMED),
    DEFORM_BACK(PASS_DEFORMED),
    LAYER_WEIGHTS(PASS_DEFORMED),
    {"scatter_gradients", .variant = FIELD_SCATTER, .dispatch = DISPATCH_FORWARD, .by_bucket = true,
     .cost = ngp_cost_scatter},
    {"reduce_gradients", .variant = FIELD_REDUCE, .dispatch = DISPATCH_SUMMED,
     .gpu_dispatch = DISPATCH_FORWARD, .by_bucket = true, .place = PASS_AT_END,
     .cost = ngp_cost_reduce},
};

/* One pass picks cells, evaluates the density MLP and stores the cells. With a deformation, chunks
 * of cells are evaluated as samples, each at the time of a random training view. */
static const struct pass occupancy[] = {
    {"update_occupancy", .use = PASS_NOT_DEFORMED, .variant = FIELD_VALUES,
     .dispatch = DISPATCH_OCCUPANCY, .average = true, .cost = ngp_cost_occupancy},
    PACK_AVERAGE(PASS_DEFORMED),
    {"begin_cells", .use = PASS_DEFORMED, CELLS, .cost = layers_cost_begin},
    {"pick_cells", .use = PASS_DEFORMED, CELLS, .cost = layers_cost_pick},
    DEFORM_CELLS(PASS_DEFORMED),
    {"deform_samples", .use = PASS_DEFORMED, CELLS, .variant = FIELD_F16_ACTIVATIONS,
     .cost = deformation_cost_move},
    {"encode_samples", .use = PASS_DEFORMED, CELLS, .variant = FIELD_F16_PARAMS, .average = true,
     .cost = ngp_cost_encode},
    {"field_forward", .use = PASS_DEFORMED, CELLS, .variant = FIELD_FORWARD, .average = true,
     .cost = ngp_cost_densities},
    {"store_cells", .use = PASS_DEFORMED, CELLS, .cost = layers_cost_store},
};

/* A pass of pictures only, so it needs no cost formula. */
static const struct pass normals[] = {
    {"sample_normals", .use = PASS_NOT_DEFORMED, .variant = FIELD_FP32,
     .dispatch = DISPATCH_FORWARD},
};

static const struct pass input_gradients[] = {
    {"input_gradients", .use = PASS_NOT_DEFORMED, .variant = FIELD_F16_PARAMS,
     .dispatch = DISPATCH_FORWARD, .cost = ngp_cost_input_gradients},
};
/* clang-format on */

static const char *const shape[] = {NGP_SHAPE, NULL};

const struct field_kind field_ngp = {
    .name = VKN_MODEL_NGP,
    .precisions = true,
    .shape = shape,
    .create = ngp_create,
    .configure = ngp_configure,
    .forward = PASS_LIST(forward),
    .densities = PASS_LIST(densities),
    .colors = PASS_LIST(colors),
    .backward = PASS_LIST(backward),
    .occupancy = PASS_LIST(occupancy),
    .sums_cells = true,
    .normals = PASS_LIST(normals),
    .input_gradients = PASS_LIST(input_gradients),
};
