#include "field/field.h"

#include <math.h>

#define PAD16(n) (((n) + 15u) / 16u * 16u)

/* Resolutions grow geometrically from coarsest to finest; a level whose grid points all fit into
 * the table is indexed directly (Mueller et al. 2022, section 3). */
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
        /* Tables of whole cache lines. */
        uint32_t entries = dense ? PAD16((uint32_t)points) : table;
        model->level[i] = (struct Level){.first = first,
                                         .entries = entries,
                                         .resolution = resolution,
                                         .scale = (float)scale,
                                         .dense = dense};
        first += entries * config->grid.features;
    }
    model->param_count = first;
}

uint32_t field_layers(const struct vkn_config *config, const struct field_model *model,
                      struct field_layer layers[FIELD_MAX_LAYERS])
{
    uint32_t count = 0, first = 0;
    uint32_t used_inputs = config->grid.levels * config->grid.features, inputs = model->encoded;
    for (int mlp = 0; mlp < 2; mlp++) {
        uint32_t hidden = mlp == 0 ? config->mlp.density_layers : config->mlp.color_layers;
        uint32_t width = mlp == 0 ? config->mlp.density_width : config->mlp.color_width;
        for (uint32_t i = 0; i <= hidden; i++) {
            bool last = i == hidden;
            uint32_t used = !last ? width : mlp == 0 ? config->mlp.geometry : 3;
            uint32_t outputs = !last ? width : mlp == 0 ? config->mlp.geometry : COLOR_OUTPUTS;
            layers[count++] = (struct field_layer){first, inputs, outputs, used_inputs, used};
            first += inputs * outputs;
            inputs = outputs;
            used_inputs = used;
        }
        inputs = used_inputs = config->mlp.geometry + 16;
    }
    return count;
}

static vkn_status check(bool good, const char *key, const char *message)
{
    return good ? VKN_OK : base_fail(VKN_BAD_INPUT, "config: %s: %s", key, message);
}

vkn_status field_model_create(const struct vkn_config *config, struct field_model *model)
{
    BASE_TRY(
        check(config->mlp.density_width % 16 == 0, "mlp.density_width", "not a multiple of 16"));
    BASE_TRY(check(config->mlp.color_width % 16 == 0, "mlp.color_width", "not a multiple of 16"));
    BASE_TRY(check(config->mlp.geometry % 16 == 0, "mlp.geometry", "not a multiple of 16"));
    BASE_TRY(check(config->grid.features == 2 || config->grid.features == 4, "grid.features",
                   "not 2 or 4"));
    BASE_TRY(check(config->grid.levels <= MAX_LEVELS, "grid.levels", "more than 32"));
    BASE_TRY(check(config->grid.levels * config->grid.features <= 128, "grid.levels",
                   "more than 128 features together"));
    BASE_TRY(check(config->mlp.density_layers + config->mlp.color_layers + 2 <= FIELD_MAX_LAYERS,
                   "mlp.color_layers", "more than 14 hidden layers together"));
    BASE_TRY(
        check(config->grid.finest >= config->grid.coarsest, "grid.finest", "below grid.coarsest"));

    *model = (struct field_model){.levels = config->grid.levels, .features = config->grid.features};
    model->encoded = PAD16(config->grid.levels * config->grid.features);
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t count = field_layers(config, model, layers);
    model->mlp_params =
        layers[count - 1].first + layers[count - 1].inputs * layers[count - 1].outputs;
    model->activations = model->encoded + 16;
    for (uint32_t i = 0; i < count; i++)
        model->activations += layers[i].outputs;
    place_levels(config, model);
    return VKN_OK;
}

void field_configure(const struct vkn_config *config, const struct field_model *model,
                     struct Config *constants, struct gpu_constants *specialization)
{
    constants->param_count = model->param_count;
    constants->summed_params = model->mlp_params;
    for (uint32_t i = 0; i < model->levels; i++)
        constants->levels[i] = model->level[i];
    uint32_t *values = specialization->values;
    values[SPEC_LEVELS - 2] = config->grid.levels;
    values[SPEC_FEATURES - 2] = config->grid.features;
    values[SPEC_DENSITY_WIDTH - 2] = config->mlp.density_width;
    values[SPEC_DENSITY_LAYERS - 2] = config->mlp.density_layers;
    values[SPEC_GEOMETRY - 2] = config->mlp.geometry;
    values[SPEC_SH_DEGREE - 2] = config->mlp.sh_degree;
    values[SPEC_COLOR_WIDTH - 2] = config->mlp.color_width;
    values[SPEC_COLOR_LAYERS - 2] = config->mlp.color_layers;
}

uint32_t field_groups(const struct field_model *model, struct optim_group groups[MAX_GROUPS])
{
    /* A step reaches few of the grid's entries, and takes the others nowhere. All of the MLPs'
     * weights take every step, so that any size of an entry would do. */
    groups[0] = (struct optim_group){
        .count = model->mlp_params, .entry = model->features, .rate = 1.0F, .decay = 1.0F};
    groups[1] = (struct optim_group){.count = model->param_count - model->mlp_params,
                                     .entry = model->features,
                                     .sparse = true,
                                     .rate = 1.0F};
    return 2;
}

/* splitmix64 (Steele, Lea and Flood 2014), to a float in [-1, 1). */
static float next_signed(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)(z >> 40) * (1.0f / 8388608.0f) - 1.0f;
}

void field_initialize(const struct vkn_config *config, const struct field_model *model,
                      float *params)
{
    uint64_t state = config->seed * 0x2545f4914f6cdd1du + 1;
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t count = field_layers(config, model, layers);
    for (uint32_t n = 0; n < count; n++) {
        const struct field_layer *layer = &layers[n];
        float bound = sqrtf(6.0f / (float)(layer->used_inputs + layer->used_outputs));
        for (uint32_t i = 0; i < layer->inputs; i++)
            for (uint32_t o = 0; o < layer->outputs; o++) {
                float value = bound * next_signed(&state);
                bool used = i < layer->used_inputs && o < layer->used_outputs;
                params[layer->first + i * layer->outputs + o] = used ? value : 0.0f;
            }
    }
    for (uint32_t i = model->mlp_params; i < model->param_count; i++)
        params[i] = 1e-4f * next_signed(&state);
}
