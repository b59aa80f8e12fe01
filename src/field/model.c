/* Builds models from encodings and layers, draws initial parameters, and selects passes. */
#include "field/internal.h"

#include <math.h>

/* ---- encodings ------------------------------------------------------------------------------- */

/* The vanilla model has frequency encodings, whatever its configuration says. */
enum vkn_position_encoding field_position(const struct vkn_config *config)
{
    return config_is_layered(config) ? config->field.position : VKN_POSITION_FREQUENCIES;
}

uint32_t field_position_octaves(const struct vkn_config *config)
{
    return field_position(config) == VKN_POSITION_FREQUENCIES ? config->mlp.position_octaves : 0;
}

enum vkn_direction_encoding field_direction(const struct vkn_config *config)
{
    return config_is_layered(config) ? config->field.direction : VKN_DIRECTION_FREQUENCIES;
}

uint32_t field_direction_octaves(const struct vkn_config *config)
{
    return field_direction(config) == VKN_DIRECTION_FREQUENCIES ? config->mlp.direction_octaves : 0;
}

bool field_is_deformed(const struct vkn_config *config)
{
    return config->model == VKN_MODEL_DYNAMIC;
}

uint32_t field_time_inputs(const struct vkn_config *config)
{
    bool used = field_is_deformed(config) && config->dynamic.time_features == VKN_SWITCH_ON;
    return used ? FIELD_TIME_INPUTS(config) : 0;
}

/* ---- passes ---------------------------------------------------------------------------------- */

unsigned field_pass_use(const struct field_model *model)
{
    return (model->levels > 0 ? PASS_GRID : PASS_NO_GRID) |
           (model->deformation_layers > 0 ? PASS_DEFORMED : PASS_NOT_DEFORMED) |
           (model->refined ? PASS_REFINED : 0);
}

size_t field_list_passes(const struct field_model *model, const struct pass_list *pass_list,
                         const struct pass *passes[FIELD_MAX_PASSES])
{
    unsigned missing = PASS_OF_FIELD & ~field_pass_use(model);
    size_t count = 0;
    for (size_t i = 0; i < pass_list->count; i++)
        if (!(pass_list->passes[i].use & missing))
            passes[count++] = &pass_list->passes[i];
    return count;
}

const struct pass *field_find_pass(const struct field_model *model,
                                   const struct pass_list *pass_list, enum field_variant variant)
{
    const struct pass *passes[FIELD_MAX_PASSES];
    size_t count = field_list_passes(model, pass_list, passes);
    for (size_t i = 0; i < count; i++)
        if (passes[i]->variant == variant)
            return passes[i];
    return NULL;
}

vkn_status field_check(bool good, const char *key, const char *message)
{
    return good ? VKN_OK : base_fail(VKN_BAD_INPUT, "config: %s: %s", key, message);
}

uint32_t field_first_unfused(const struct field_model *model)
{
    return model->fused < model->layer_count ? model->layers[model->fused].first
                                             : model->mlp_params;
}

uint32_t field_split_gradients(const struct field_model *model, uint32_t buckets,
                               struct Config *constants)
{
    uint32_t count = 0, levels = model->levels;
    constants->buckets[0] = (GradientBucket){0, model->mlp_params};
    for (uint32_t level = 1; level < levels; level++) {
        uint64_t end = model->level[level].first;
        if (end * buckets >= (count + 1ull) * model->param_count)
            constants->buckets[++count] = (GradientBucket){level, (uint32_t)end};
    }
    constants->buckets[++count] = (GradientBucket){levels, model->param_count};
    return count;
}

uint32_t field_transposed_index(const struct field_model *model, uint32_t weight)
{
    uint32_t i = model->layer_count - 1;
    while (i > 0 && weight < model->layers[i].first)
        i--;
    const struct field_layer *layer = &model->layers[i];
    weight -= layer->first;
    return layer->first + weight % layer->outputs * layer->inputs + weight / layer->outputs;
}

void field_size_buffers(const struct field_model *model, struct buffer_counts *counts)
{
    counts->params = model->param_count;
    counts->summed = model->mlp_params;
    counts->entries = groups_entry_count(model->groups, model->group_count);
    /* The deformation needs gradients of canonical positions. */
    if (model->deformation_layers > 0 || model->refined)
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

uint32_t field_gradient_outputs(const struct field_model *model, uint32_t layer)
{
    uint32_t also_read_by = model->layer_columns[layer].also_read_by;
    return model->layers[layer].outputs +
           (also_read_by > 0 ? model->layers[also_read_by].outputs : 0);
}

void field_place_panels(struct field_model *model, uint32_t number)
{
    const struct field_layer *layer = &model->layers[number];
    struct LayerColumns *io = &model->layer_columns[number];
    io->panels = model->panel_chunks;
    model->panel_chunks += layer->outputs / 16 * (layer->inputs / FIELD_COLUMNS + 1);
    io->transposed = model->panel_chunks;
    model->panel_chunks +=
        io->gradient_count / 16 * (field_gradient_outputs(model, number) / FIELD_COLUMNS);
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
    repeats->layers = repeats->first_deformation = field_first_deformation(model);
    repeats->deformation_layers = model->deformation_layers;
    repeats->first_unfused = model->fused;
    repeats->first_back = model->position_gradients ? 0 : 1;
    repeats->first_deformation_back = model->refined ? 0 : 1;
    while (repeats->density_layers < model->layer_count &&
           model->layers[repeats->density_layers].mlp == 0)
        repeats->density_layers++;
    repeats->chunk_rows = model->chunk_rows;
    if (repeats->buckets == 0)
        repeats->buckets = 1;
}

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
