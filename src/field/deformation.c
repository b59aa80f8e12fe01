/* Adds a deformation to a field (Pumarola et al., D-NeRF, CVPR 2021): an MLP maps the frequency
 * encodings of position and time to a sample's displacement into the canonical scene, where the
 * field is evaluated. Its layers are unfused. */
#include "field/deformation.h"

#include <math.h>

#define LAST_LAYER 1e-4f /* bound of the layer's initial weights: displacements begin near 0 */

/* ---- layout ---------------------------------------------------------------------------------- */

/* Appends columns to a row's activations: encoded inputs, then each layer's outputs. */
static void place_columns(struct field_model *model)
{
    uint32_t first = field_first_deformation(model), from = model->columns;
    uint32_t column = from + model->layers[first].inputs;
    model->deformation_input = from;
    for (uint32_t i = first; i < model->layer_count; i++) {
        const struct field_layer *layer = &model->layers[i];
        model->layer_columns[i] = (struct LayerColumns){
            .input_column = from,
            .input_count = layer->inputs,
            .gradient_count = layer->inputs,
            .output_column = column,
            .activated = !layer->last,
            .input_activated = i > first,
        };
        field_place_panels(model, i);
        model->deformation_output = from = column;
        column += layer->outputs;
    }
    model->columns = column;
}

vkn_status deformation_add(const struct vkn_config *config, struct field_model *model)
{
    uint32_t canonical = model->mlp_params, activations = model->activations;
    model->deformation_layers = config->dynamic.layers + 1;
    BASE_TRY(field_check(model->layer_count + model->deformation_layers <= MAX_LAYERS,
                         "dynamic.layers",
                         "more than 16 layers, including the layers of the MLPs"));
    uint32_t inputs = LAYERS_FREQUENCIES(config->dynamic.position_octaves);
    inputs += FIELD_TIME_INPUTS(config);
    const struct field_mlp mlp = {
        .inputs = field_pad_columns(inputs),
        .used_inputs = inputs,
        .width = config->dynamic.width,
        .hidden = config->dynamic.layers,
        .outputs = FIELD_COLUMNS,
        .used_outputs = 3,
        .biases = true,
        .initial = LAST_LAYER,
    };
    BASE_TRY(field_add_mlp(model, &mlp));
    model->activations = activations; /* counts fused layers only */
    model->param_count = model->mlp_params;
    place_columns(model);
    model->chunk_rows = config->batch.chunk;
    model->groups[model->group_count++] =
        (struct parameter_group){.count = model->mlp_params - canonical,
                                 .entry = 2,
                                 .rate = config->dynamic.learning_rate_factor,
                                 .decay = 1};
    return VKN_OK;
}

void deformation_configure(const struct vkn_config *config, const struct field_model *model,
                           struct Config *constants)
{
    constants->deformation_input = model->deformation_input;
    constants->deformation_output = model->deformation_output;
    constants->deformation_octaves = config->dynamic.position_octaves;
    constants->curriculum = fmaxf(config->dynamic.curriculum, 0.0f);
}

const char *const deformation_shape[] = {"dynamic.canonical",
                                         "dynamic.width",
                                         "dynamic.layers",
                                         "dynamic.position_octaves",
                                         "dynamic.time_octaves",
                                         "dynamic.time_features",
                                         NULL};

/* ---- cost ------------------------------------------------------------------------------------ */

/* Operations per row, or per sine and cosine of an octave. */
#define MOVE      12 /* displaced position */
#define GRADIENTS 3  /* gradient of the displacement */

#define DISPLACEMENT 3 /* columns of the displacement */

struct cost deformation_cost_encode(const struct cost_model *m, const struct cost_counts *n)
{
    double columns = m->model->layers[field_first_deformation(m->model)].inputs;
    double octaves = 3.0 * m->config->dynamic.position_octaves + m->config->dynamic.time_octaves;
    double values = layers_copies(n) * columns, rows = layers_rows(m, n);
    return cost_streaming(
        LAYERS_SIN_COS * octaves * rows,
        rows * (sizeof(struct Sample) + FIELD_RAY_BYTES + 4 + values * field_value_bytes(m)));
}

struct cost deformation_cost_move(const struct cost_model *m, const struct cost_counts *n)
{
    double rows = layers_rows(m, n);
    return cost_streaming(MOVE * rows, rows * (sizeof(struct Sample) + FIELD_RAY_BYTES +
                                               DISPLACEMENT * (field_value_bytes(m) + 4)));
}

/* Reads gradients and activations of the position's columns, adds to the position's gradient. */
struct cost deformation_cost_input_gradients(const struct cost_model *m,
                                             const struct cost_counts *n)
{
    uint32_t octaves = m->config->dynamic.position_octaves;
    return cost_streaming(n->live * (LAYERS_SLOPE_FLOPS(octaves) + LAYERS_POSITION_SLOPE + 3),
                          n->live * (sizeof(struct Sample) + FIELD_RAY_BYTES + 12 + 16 +
                                     LAYERS_SLOPE_VALUES(octaves) * field_value_bytes(m)));
}

struct cost deformation_cost_output_gradients(const struct cost_model *m,
                                              const struct cost_counts *n)
{
    return cost_streaming(GRADIENTS * n->live, n->live * (12 + 2 * 32 * field_value_bytes(m)));
}
