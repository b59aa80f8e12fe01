/* Models: the kinds there are, and what all of them have. */
#include "field/deformation.h"
#include "field/glsl.h"
#include "field/ngp.h"

#include <math.h>

#include "config/config.h"

/* ---- kinds ----------------------------------------------------------------------------------- */

static const struct field_kind *const kinds[] = {&field_ngp, &field_vanilla, &field_layered,
                                                 &field_proposal, &field_external};
static const struct field_kind *added; /* by field_add_kind */

void field_add_kind(const struct field_kind *kind)
{
    added = kind;
}

static bool is_deformed(const struct vkn_config *config)
{
    return config->model == VKN_MODEL_DYNAMIC;
}

/* A deformation may be in front of any field. */
static enum vkn_model canonical_model(const struct vkn_config *config)
{
    if (!is_deformed(config))
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

const struct field_kind *field_kind_of(const struct vkn_config *config)
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

size_t field_shape(const struct vkn_config *config, const char *keys[FIELD_MAX_KEYS])
{
    const struct field_kind *kind = field_kind_of(config);
    size_t count = 0;
    for (size_t i = 0; kind && kind->shape && kind->shape[i]; i++)
        keys[count++] = kind->shape[i];
    for (size_t i = 0; is_deformed(config) && deformation_shape[i]; i++)
        keys[count++] = deformation_shape[i];
    return count;
}

unsigned field_use(const struct field_model *model)
{
    return (model->levels > 0 ? PASS_GRID : PASS_NO_GRID) |
           (model->warp_layers > 0 ? PASS_DEFORMED : PASS_NOT_DEFORMED);
}

size_t field_list(const struct field_model *model, const struct recipe *recipe,
                  const struct pass *passes[FIELD_MAX_PASSES])
{
    unsigned missing = PASS_OF_FIELD & ~field_use(model);
    size_t count = 0;
    for (size_t i = 0; i < recipe->count; i++)
        if (!(recipe->passes[i].use & missing))
            passes[count++] = &recipe->passes[i];
    return count;
}

const struct pass *field_pass(const struct field_model *model, const struct recipe *recipe,
                              enum field_variant variant)
{
    const struct pass *passes[FIELD_MAX_PASSES];
    size_t count = field_list(model, recipe, passes);
    for (size_t i = 0; i < count; i++)
        if (passes[i]->variant == variant)
            return passes[i];
    return NULL;
}

vkn_status field_check(bool good, const char *key, const char *message)
{
    return good ? VKN_OK : base_fail(VKN_BAD_INPUT, "config: %s: %s", key, message);
}

static vkn_status check_kind(const struct vkn_config *config, const struct field_kind *kind)
{
    if (!kind && config->model == VKN_MODEL_GLSL)
        return base_fail(
            VKN_BAD_INPUT,
            "config: glsl.source: no field of number %u is known: --field FILE.glsl or "
            "vkn_field_register gives it",
            config->glsl.source);
    if (!kind)
        return base_fail(VKN_BAD_INPUT, "config: model: there is none of number %u",
                         (unsigned)config->model);
    if (!kind->precisions && config->precision > VKN_PRECISION_FP32)
        return base_fail(VKN_BAD_INPUT, "config: precision: this model computes in fp32");
    return VKN_OK;
}

/* Parameters are those of the MLPs, of the deformation and of the grid, in this order. */
static vkn_status create(const struct vkn_config *config, bool deformed, struct field_model *model)
{
    const struct field_kind *kind = field_kind_of(config);
    *model = (struct field_model){.kind = kind, .to_position = deformed};
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
    return create(config, is_deformed(config), model);
}

vkn_status field_model_create_canonical(const struct vkn_config *config, struct field_model *model)
{
    return create(config, false, model);
}

uint32_t field_time_inputs(const struct vkn_config *config)
{
    bool used = is_deformed(config) && config->dynamic.time_features == VKN_SWITCH_ON;
    return used ? FIELD_TIME_INPUTS(config) : 0;
}

uint32_t field_first_own(const struct field_model *model)
{
    return model->fused < model->layer_count ? model->layers[model->fused].first
                                             : model->mlp_params;
}

uint32_t field_cut_gradients(const struct field_model *model, uint32_t pieces,
                             struct Config *constants)
{
    uint32_t count = 0, levels = model->levels;
    constants->pieces[0] = (Piece){0, model->mlp_params};
    for (uint32_t level = 1; level < levels; level++) {
        uint64_t end = model->level[level].first;
        if (end * pieces >= (count + 1ull) * model->param_count)
            constants->pieces[++count] = (Piece){level, (uint32_t)end};
    }
    constants->pieces[++count] = (Piece){levels, model->param_count};
    return count;
}

void field_configure(const struct vkn_config *config, const struct field_model *model,
                     struct Config *constants, struct gpu_constants *specialization)
{
    constants->param_count = model->param_count;
    specialization->values[SPEC_DENSITY_ACTIVATION] = config->mlp.density_activation;
    specialization->values[SPEC_ACTIVATION] = config->field.activation;
    constants->summed_params = model->mlp_params;
    constants->first_layered = field_first_own(model);
    for (uint32_t i = 0; i < MAX_LAYERS; i++) {
        const struct field_layer *layer = &model->layers[i];
        constants->layers[i] = i < model->layer_count
                                   ? (LayerPlace){layer->first, layer->inputs, layer->outputs}
                                   : (LayerPlace){UINT32_MAX, 0, 1};
    }
    (void)field_cut_gradients(model, 1, constants);
    constants->columns = model->columns;
    constants->chunk_rows = model->chunk_rows;
    constants->first_output = model->first_output;
    constants->color_output = model->color_output;
    constants->row_features = model->columns > 0 ? model->inputs : 0;
    for (uint32_t i = 0; i < MAX_LAYERS; i++)
        constants->flows[i] = model->flows[i];
    for (uint32_t i = 0; i < model->levels; i++)
        constants->levels[i] = model->level[i];
    specialization->values[SPEC_TIME_INPUTS] = field_time_inputs(config);
    specialization->values[SPEC_WARPED] = model->warp_layers > 0;
    if (model->warp_layers > 0)
        deformation_configure(config, model, constants);
    model->kind->configure(config, model, constants, specialization);
}

uint32_t field_transposed_place(const struct field_model *model, uint32_t weight)
{
    uint32_t i = model->layer_count - 1;
    while (i > 0 && weight < model->layers[i].first)
        i--;
    const struct field_layer *layer = &model->layers[i];
    weight -= layer->first;
    return layer->first + weight % layer->outputs * layer->inputs + weight / layer->outputs;
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

void field_count(const struct field_model *model, struct buffer_counts *counts)
{
    counts->params = model->param_count;
    counts->summed = model->mlp_params;
    counts->entries = recipe_entries(model->groups, model->group_count);
    if (model->warp_layers > 0) /* by canonical position, for the deformation */
        counts->input_gradients = counts->samples;
}

/* ---- layers ---------------------------------------------------------------------------------- */

vkn_status field_add_mlp(struct field_model *model, const struct field_mlp *mlp)
{
    uint32_t number = model->layer_count ? model->layers[model->layer_count - 1].mlp + 1 : 0;
    uint32_t inputs = mlp->inputs, used_inputs = mlp->used_inputs;
    for (uint32_t i = 0; i <= mlp->hidden; i++) {
        bool last = i == mlp->hidden, skips = mlp->skip_at > 0 && i + 1 == mlp->skip_at;
        struct field_layer layer = {
            .first = model->mlp_params,
            .inputs = inputs + (skips ? mlp->inputs : 0),
            .used_inputs = used_inputs + (skips ? mlp->used_inputs : 0),
            .outputs = last ? mlp->outputs : mlp->width,
            .used_outputs = last ? mlp->used_outputs : mlp->width,
            .mlp = number,
            .skip = skips ? mlp->inputs : 0,
            .last = last,
            .biases = mlp->biases,
            .initial = last ? mlp->initial : 0,
        };
        if (model->layer_count == FIELD_MAX_LAYERS || (!last && layer.outputs > FIELD_MAX_WIDTH))
            return base_fail(VKN_BAD_INPUT, "config: mlp: more than %u layers or wider than %u",
                             FIELD_MAX_LAYERS, FIELD_MAX_WIDTH);
        model->layers[model->layer_count++] = layer;
        model->mlp_params += (layer.inputs + layer.biases) * layer.outputs;
        model->activations += layer.outputs;
        inputs = layer.outputs;
        used_inputs = layer.used_outputs;
    }
    return VKN_OK;
}

uint32_t field_pad_columns(uint32_t columns)
{
    return (columns + FIELD_COLUMNS - 1) / FIELD_COLUMNS * FIELD_COLUMNS;
}

uint32_t field_outputs_behind(const struct field_model *model, uint32_t layer)
{
    uint32_t again = model->flows[layer].again;
    return model->layers[layer].outputs + (again > 0 ? model->layers[again].outputs : 0);
}

void field_place_panels(struct field_model *model, uint32_t number)
{
    const struct field_layer *layer = &model->layers[number];
    struct LayerFlow *flow = &model->flows[number];
    flow->panels = model->panel_chunks;
    model->panel_chunks += layer->outputs / 16 * (layer->inputs / FIELD_COLUMNS + 1);
    flow->transposed = model->panel_chunks;
    model->panel_chunks += flow->own / 16 * (field_outputs_behind(model, number) / FIELD_COLUMNS);
}

/* ---- random parameters ----------------------------------------------------------------------- */

uint64_t field_random_begin(const struct vkn_config *config)
{
    return config->seed * 0x2545f4914f6cdd1du + 1;
}

/* splitmix64 (Steele, Lea and Flood 2014). */
float field_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)(z >> 40) * (1.0f / 8388608.0f) - 1.0f;
}

void field_repeats(const struct field_model *model, struct repeats *repeats)
{
    repeats->layers = repeats->first_warp = field_first_warp(model);
    repeats->warp_layers = model->warp_layers;
    repeats->first_own = model->fused;
    repeats->first_back = model->to_position ? 0 : 1;
    while (repeats->density_layers < model->layer_count &&
           model->layers[repeats->density_layers].mlp == 0)
        repeats->density_layers++;
    repeats->chunk_rows = model->chunk_rows;
    if (repeats->pieces == 0)
        repeats->pieces = 1;
}

/* Biases begin as zero. */
void field_random_weights(const struct field_model *model, uint64_t *state, float *params)
{
    for (uint32_t n = 0; n < model->layer_count; n++) {
        const struct field_layer *layer = &model->layers[n];
        float bound = layer->initial > 0
                          ? layer->initial
                          : sqrtf(6.0f / (float)(layer->used_inputs + layer->used_outputs));
        for (uint32_t i = 0; i < layer->inputs; i++)
            for (uint32_t o = 0; o < layer->outputs; o++) {
                float value = bound * field_random(state);
                bool used = i < layer->used_inputs && o < layer->used_outputs;
                params[layer->first + i * layer->outputs + o] = used ? value : 0.0f;
            }
        for (uint32_t o = 0; layer->biases && o < layer->outputs; o++)
            params[layer->first + layer->inputs * layer->outputs + o] = 0.0f;
    }
}
