/* Lists the kinds of fields, and creates, configures and initialises models. */
#include "field/deformation.h"
#include "field/glsl.h"
#include "field/ngp.h"

static const struct field_kind *const kinds[] = {&field_ngp, &field_vanilla, &field_layered,
                                                 &field_proposal, &field_external};
static const struct field_kind *added; /* by field_add_kind; NULL: none */

void field_add_kind(const struct field_kind *kind)
{
    added = kind;
}

/* Returns the model that the deformation precedes, or the model itself without a deformation. */
static enum vkn_model canonical_model(const struct vkn_config *config)
{
    if (!field_is_deformed(config))
        return config_model(config);
    switch (config->dynamic.canonical) {
    case VKN_CANONICAL_VANILLA:
        return VKN_MODEL_VANILLA;
    case VKN_CANONICAL_LAYERED:
        return VKN_MODEL_LAYERED;
    default:
        return VKN_MODEL_NGP;
    }
}

/* Returns the kind that the configuration names, or NULL. */
static const struct field_kind *kind_of(const struct vkn_config *config)
{
    if (config->model == VKN_MODEL_GLSL) {
        const struct glsl_field *field = glsl_find(config);
        return field ? &field->kind : NULL;
    }
    enum vkn_model model = canonical_model(config);
    for (size_t i = 0; i < BASE_COUNT(kinds); i++)
        if (kinds[i]->name == model)
            return kinds[i];
    return added && added->name == model ? added : NULL;
}

size_t field_shape_keys(const struct vkn_config *config, const char *keys[FIELD_MAX_KEYS])
{
    const struct field_kind *kind = kind_of(config);
    size_t count = 0;
    for (size_t i = 0; kind && kind->shape && kind->shape[i]; i++)
        keys[count++] = kind->shape[i];
    for (size_t i = 0; field_is_deformed(config) && deformation_shape[i]; i++)
        keys[count++] = deformation_shape[i];
    return count;
}

static vkn_status check_kind(const struct vkn_config *config, const struct field_kind *kind)
{
    if (!kind && config->model == VKN_MODEL_GLSL)
        return base_fail(
            VKN_BAD_INPUT,
            "config: glsl.source: no field of number %u is registered: pass --field FILE.glsl or "
            "call vkn_field_register",
            config->glsl.source);
    if (!kind)
        return base_fail(VKN_BAD_INPUT, "config: model: no model has number %u",
                         (unsigned)config->model);
    if (!kind->precisions && config->precision > VKN_PRECISION_FP32)
        return base_fail(VKN_BAD_INPUT, "config: precision: this model computes in fp32");
    return VKN_OK;
}

/* Lays out the parameters: [MLPs][deformation][hash grid]. */
static vkn_status create(const struct vkn_config *config, bool deformed, bool refined,
                         struct field_model *model)
{
    const struct field_kind *kind = kind_of(config);
    *model = (struct field_model){
        .kind = kind, .refined = refined, .position_gradients = deformed || refined};
    BASE_TRY(check_kind(config, kind));
    BASE_TRY(kind->create(config, model));
    if (deformed)
        BASE_TRY(deformation_add(config, model));
    if (model->levels > 0)
        ngp_place_grid(config, model);
    return VKN_OK;
}

vkn_status field_model_create(const struct vkn_config *config, struct field_model *model)
{
    return create(config, field_is_deformed(config), config->scene.refine > VKN_REFINEMENT_OFF,
                  model);
}

vkn_status field_model_create_canonical(const struct vkn_config *config, struct field_model *model)
{
    return create(config, false, false, model);
}

void field_configure(const struct vkn_config *config, const struct field_model *model,
                     struct Config *constants, struct gpu_constants *specialization)
{
    constants->param_count = model->param_count;
    specialization->values[SPEC_DENSITY_ACTIVATION] = config->mlp.density_activation;
    specialization->values[SPEC_ACTIVATION] = config->field.activation;
    constants->summed_params = model->mlp_params;
    constants->first_layered = field_first_unfused(model);
    for (uint32_t i = 0; i < MAX_LAYERS; i++) {
        const struct field_layer *layer = &model->layers[i];
        constants->layers[i] = i < model->layer_count
                                   ? (LayerWeights){layer->first, layer->inputs, layer->outputs}
                                   : (LayerWeights){UINT32_MAX, 0, 1};
    }
    (void)field_split_gradients(model, 1, constants);
    constants->columns = model->columns;
    constants->chunk_rows = model->chunk_rows;
    constants->first_output = model->first_output;
    constants->color_output = model->color_output;
    constants->row_features = model->columns > 0 ? model->inputs : 0;
    for (uint32_t i = 0; i < MAX_LAYERS; i++)
        constants->layer_columns[i] = model->layer_columns[i];
    for (uint32_t i = 0; i < model->levels; i++)
        constants->levels[i] = model->level[i];
    specialization->values[SPEC_GRID_DECAY] = config->grid.decay > 0 ? model->levels : 0;
    specialization->values[SPEC_TIME_INPUTS] = field_time_inputs(config);
    /* The canonical field can have time inputs without a deformation, in a self-test. */
    constants->time_octaves = config->dynamic.time_octaves;
    specialization->values[SPEC_DEFORMED] = model->deformation_layers > 0;
    specialization->values[SPEC_INPUT_GRADIENTS] = model->refined;
    if (model->deformation_layers > 0)
        deformation_configure(config, model, constants);
    model->kind->configure(config, model, constants, specialization);
}

void field_initialize(const struct vkn_config *config, const struct field_model *model,
                      float *params)
{
    if (model->kind->initialize) {
        model->kind->initialize(config, model, params);
        return;
    }
    uint64_t state = field_random_begin(config);
    field_random_weights(model, &state, params);
    for (uint32_t i = model->mlp_params; i < model->param_count; i++)
        params[i] = config->grid.initial * field_random(&state);
}
