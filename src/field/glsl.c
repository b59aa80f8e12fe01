/* Builds models from fields in GLSL: the ngp model with the user's encoding and its derivative
 * instead of the hash grid. Parameters: [density layers][colour layers][encoding]. */
#include "field/glsl.h"

#include "field/layers.h"
#include "field/ngp.h"

/* Returns the configuration of an ngp model that has as many features as the field, two per level,
 * and so the same layout of features. */
static struct vkn_config with_grid(const struct vkn_config *config, const struct glsl_field *field)
{
    struct vkn_config grid = *config;
    grid.model = VKN_MODEL_NGP;
    grid.grid.levels = field->pragmas.features / 2;
    grid.grid.features = 2;
    return grid;
}

struct vkn_config field_trial_config(const struct vkn_config *config)
{
    const struct glsl_field *field = glsl_find(config);
    return field ? with_grid(config, field) : *config;
}

static vkn_status create(const struct vkn_config *config, struct field_model *model)
{
    const struct glsl_field *field = glsl_find(config);
    const struct vkn_config grid = with_grid(config, field);
    BASE_TRY(ngp_create(&grid, model));
    model->levels = 0; /* there is no grid */
    model->groups[0].entry = field->pragmas.entry;
    /* The encoding's parameters are padded to whole entries and whole words of f16. */
    model->param_count = model->mlp_params + FIELD_PAD(field->pragmas.parameters);
    model->groups[model->group_count++] =
        (struct parameter_group){.count = model->param_count - model->mlp_params,
                                 .entry = field->pragmas.entry,
                                 .sparse = true,
                                 .rate = 1.0f};
    model->chunk_rows = UINT32_MAX; /* setup_create limits the cells of a chunk to the capacity */
    return VKN_OK;
}

static void configure(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization)
{
    const struct vkn_config grid = with_grid(config, glsl_find(config));
    ngp_configure(&grid, model, constants, specialization);
}

void glsl_initialize(const struct glsl_field *field, uint64_t seed, uint64_t *state, float *params)
{
    const struct glsl_pragmas *pragmas = &field->pragmas;
    if (field->initialize) {
        const char *forbidden_in = base_forbid_calls("vkn_field_register");
        field->initialize(field->context, seed, pragmas->parameters, params);
        base_forbid_calls(forbidden_in);
    }
    for (uint32_t i = 0; i < pragmas->parameters && !field->initialize; i++)
        params[i] = pragmas->initial * field_random(state);
}

static void initialize(const struct vkn_config *config, const struct field_model *model,
                       float *params)
{
    const struct glsl_field *field = glsl_find(config);
    uint64_t state = field_random_begin(config);
    field_random_weights(model, &state, params);
    for (uint32_t i = model->mlp_params; i < model->param_count; i++)
        params[i] = 0;
    glsl_initialize(field, config->seed, &state, params + model->mlp_params);
}

/* ---- cost ------------------------------------------------------------------------------------ */

/* Counts the bytes of positions and features; the operations of the user's code are unknown. */
static struct cost features_cost(const struct cost_model *m, double rows)
{
    return cost_streaming(0, rows * (FIELD_RAY_BYTES + sizeof(struct Sample) +
                                     m->model->inputs * field_value_bytes(m)));
}

static struct cost cost_encode(const struct cost_model *m, const struct cost_counts *n)
{
    return features_cost(m, n->marched);
}

static struct cost cost_scatter(const struct cost_model *m, const struct cost_counts *n)
{
    return features_cost(m, n->live);
}

static struct cost cost_sums(const struct cost_model *m, const struct cost_counts *n)
{
    (void)n;
    return cost_streaming((double)m->counts.cells, 4.0 * (double)m->counts.cells);
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* clang-format off */
static const struct pass colors[] = {
    {.name = "field_forward", .label = "field_colors", .variant = FIELD_FORWARD,
     .dispatch = DISPATCH_FORWARD, .rows = ROWS_LIVE, .cost = ngp_cost_colors},
};

static const char *const shape[] = {
    "glsl.source", "mlp.density_width", "mlp.density_layers", "mlp.geometry", "mlp.color_width",
    "mlp.color_layers", "mlp.sh_degree", NULL,
};

/* The user's shaders have generated names, and the labels of the passes that they replace. */
static void list_passes(struct glsl_field *field)
{
    const struct pass encode = {
        .name = field->encode, .label = "encode_samples", .variant = FIELD_F16_PARAMS,
        .dispatch = DISPATCH_FORWARD, .cost = cost_encode};
    field->forward[0] = field->densities[0] = encode;
    field->forward[1] = (struct pass){
        .name = "field_forward", .variant = FIELD_FORWARD, .dispatch = DISPATCH_FORWARD,
        .cost = ngp_cost_forward};
    field->densities[1] = (struct pass){
        .name = "field_forward", .label = "field_densities", .variant = FIELD_FORWARD,
        .dispatch = DISPATCH_FORWARD, .rows = ROWS_DENSITIES, .cost = ngp_cost_densities};
    field->backward[0] = (struct pass){
        .name = "field_backward", .variant = FIELD_BACKWARD, .dispatch = DISPATCH_BACKWARD,
        .cost = ngp_cost_backward};
    field->backward[1] = (struct pass){
        .name = field->scatter, .label = "scatter_gradients", .variant = FIELD_SCATTER,
        .dispatch = DISPATCH_FORWARD, .cost = cost_scatter};
    field->backward[2] = (struct pass){
        .name = "reduce_gradients", .variant = FIELD_REDUCE, .dispatch = DISPATCH_SUMMED,
        .gpu_dispatch = DISPATCH_FORWARD, .by_bucket = true, .place = PASS_AT_END,
        .cost = ngp_cost_reduce};
    const struct pass occupancy[] = {
        {"begin_cells", CELLS, .cost = layers_cost_begin},
        {"pick_cells", CELLS, .cost = layers_cost_pick},
        {field->encode, CELLS, .variant = FIELD_F16_PARAMS, .average = true, .cost = cost_encode},
        {"field_forward", CELLS, .variant = FIELD_FORWARD, .average = true,
         .cost = ngp_cost_densities},
        {"store_cells", CELLS, .cost = layers_cost_store},
        {"sum_groups", .dispatch = DISPATCH_OCCUPANCY, .cost = cost_sums},
    };
    for (size_t i = 0; i < BASE_COUNT(occupancy); i++)
        field->occupancy[i] = occupancy[i];
    field->kind = (struct field_kind){
        .name = VKN_MODEL_GLSL,
        .precisions = true,
        .shape = shape,
        .create = create,
        .configure = configure,
        .initialize = initialize,
        .forward = PASS_LIST(field->forward),
        .densities = PASS_LIST(field->densities),
        .colors = PASS_LIST(colors),
        .backward = PASS_LIST(field->backward),
        .occupancy = PASS_LIST(field->occupancy),
        .sums_cells = true,
    };
}
/* clang-format on */

/* ---- shaders --------------------------------------------------------------------------------- */

static vkn_status add_shader(const struct glsl_field *field, const char *name, const char *suffix,
                             const char *template, const char *define)
{
    char shader[2 * GLSL_SHADER_NAME], defines[128];
    snprintf(shader, sizeof shader, "%s%s", name, suffix);
    snprintf(defines, sizeof defines, "FIELD_PARAMETERS=%uu FIELD_FEATURES=%uu %s",
             field->pragmas.parameters, field->pragmas.features, define);
    return gpu_add_snippet(shader, template, defines, &field->snippet);
}

vkn_status glsl_make_kind(struct glsl_field *field)
{
    static const char scatter[] = "field/snippet_scatter.comp",
                      encode[] = "field/snippet_encode.comp";
    snprintf(field->encode, sizeof field->encode, "glsl_%08x_encode", field->number);
    snprintf(field->scatter, sizeof field->scatter, "glsl_%08x_scatter", field->number);
    snprintf(field->check, sizeof field->check, "glsl_%08x_check", field->number);
    list_passes(field);
    BASE_TRY(add_shader(field, field->encode, "", encode, ""));
    BASE_TRY(add_shader(field, field->encode, "_fp16", encode, "FP16"));
    BASE_TRY(add_shader(field, field->scatter, "_float", scatter, "SUM_FLOAT"));
    BASE_TRY(add_shader(field, field->scatter, "_fixed", scatter, "SUM_FIXED"));
    BASE_TRY(add_shader(field, field->scatter, "_cas", scatter, "SUM_CAS"));
    BASE_TRY(add_shader(field, field->scatter, "_f16", scatter, "SUM_F16"));
    BASE_TRY(add_shader(field, field->scatter, "_f16_cas", scatter, "SUM_F16_CAS"));
    return add_shader(field, field->check, "", "field/snippet_check.comp", "");
}
