/* Reference field: hash grid -> density MLP -> (its outputs, spherical harmonics) -> colour MLP;
 * hidden layers end in a ReLU (Mueller et al. 2022, section 5.4). An activation, by default exp,
 * turns the density MLP's first output into density; colours are sigmoids of the colour MLP's first
 * three outputs. The vanilla model has frequencies instead of grid and harmonics, biases, a skip
 * layer, and padding between density and features. */
#include "reference/reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDEST 512
#define PI     3.14159265358979323846

/* Inputs and outputs of all layers for one sample: layer i reads values[i]. The colour MLP's
 * inputs, the density MLP's outputs and the direction, begin at values[density_layers]. */
struct trace {
    double values[FIELD_MAX_LAYERS + 1][WIDEST];
    double colors[3]; /* the first outputs of the colour MLP */
};

/* All columns count as used: padding of encodings is zero, and nothing reads padding of outputs. */
static void configure_vanilla(struct reference_field *field)
{
    field->features_from = 32;
    field->position_encoding = VKN_POSITION_FREQUENCIES;
    field->direction_encoding = VKN_DIRECTION_FREQUENCIES;
    for (uint32_t i = 0; i < field->layer_count; i++) {
        field->layers[i].used_inputs = field->layers[i].inputs;
        field->layers[i].used_outputs = field->layers[i].outputs;
    }
}

/* With a hash grid padding follows the features. */
static void configure_layered(const struct vkn_config *config, struct reference_field *field)
{
    configure_vanilla(field);
    field->hidden = config->field.activation;
    field->position_encoding = config->field.position;
    field->direction_encoding = config->field.direction;
    if (field->position_encoding == VKN_POSITION_IDENTITY)
        field->position_octaves = 0;
    if (field->direction_encoding == VKN_DIRECTION_IDENTITY)
        field->direction_octaves = 0;
}

static bool is_vanilla(const struct vkn_config *config)
{
    return config->model == VKN_MODEL_VANILLA ||
           (config->model == VKN_MODEL_DYNAMIC &&
            config->dynamic.canonical == VKN_CANONICAL_VANILLA);
}

static void configure_dynamic(const struct vkn_config *config, struct reference_field *field)
{
    field->layer_count = config->mlp.density_layers + config->mlp.color_layers + 2;
    field->deformation_layers = config->dynamic.layers + 1;
    field->deformation_octaves = config->dynamic.position_octaves;
    field->time_octaves = config->dynamic.time_octaves;
    if (config->dynamic.time_features == VKN_SWITCH_ON)
        field->time_inputs = 1 + 2 * field->time_octaves;
}

struct reference_field reference_field(const struct vkn_config *config,
                                       const struct field_model *model, const float *params)
{
    struct reference_field field = {
        .model = model,
        .density_layers = config->mlp.density_layers + 1,
        .geometry = config->mlp.geometry,
        .sh_degree = config->mlp.sh_degree,
        .activation = config->mlp.density_activation,
        .hidden = VKN_ACTIVATION_RELU,
        .position_encoding = VKN_POSITION_HASH,
        .direction_encoding = VKN_DIRECTION_HARMONICS,
        .position_octaves = config->mlp.position_octaves,
        .direction_octaves = config->mlp.direction_octaves,
        .space = reference_space(config),
        .params = base_alloc(model->param_count, sizeof(double)),
    };
    field.layer_count = model->layer_count;
    if (config->model == VKN_MODEL_DYNAMIC)
        configure_dynamic(config, &field);
    memcpy(field.layers, model->layers, sizeof field.layers);
    if (is_vanilla(config))
        configure_vanilla(&field);
    if (config->model == VKN_MODEL_LAYERED ||
        (config->model == VKN_MODEL_DYNAMIC && config->dynamic.canonical == VKN_CANONICAL_LAYERED))
        configure_layered(config, &field);
    for (uint32_t i = 0; i < model->param_count; i++)
        field.params[i] = params[i];
    return field;
}

void reference_field_destroy(struct reference_field *field)
{
    free(field->params);
    field->params = NULL;
}

static void round_stored(const struct reference_field *field, double *values, size_t count)
{
    for (size_t i = 0; field->f16 && i < count; i++)
        values[i] = reference_round_to_f16(values[i]);
}

void reference_field_round(struct reference_field *field)
{
    field->f16 = true;
    round_stored(field, field->params, field->model->param_count);
}

size_t reference_weight(const struct field_layer *layer, uint32_t input, uint32_t output)
{
    return layer->first + (size_t)input * layer->outputs + output;
}

static bool is_hidden(const struct reference_field *field, uint32_t layer)
{
    return layer + 1 != field->density_layers && layer + 1 != field->layer_count;
}

/* Inlined, unlike fmax(), because tests spend much time here; zeros that it leaves are skipped. */
static double relu(double x)
{
    return x > 0 ? x : 0;
}

/* Adds four inputs at a time, so that sums are read and written a quarter as often. */
static void layer_sums(const struct reference_field *field, uint32_t index, const double *input,
                       double *restrict output)
{
    const struct field_layer *layer = &field->layers[index];
    const uint32_t outputs = layer->used_outputs;
    const double *rows[WIDEST + 3];
    double values[WIDEST + 3];
    uint32_t count = 0;
    for (uint32_t o = 0; o < outputs; o++)
        output[o] = layer->biases ? field->params[reference_weight(layer, layer->inputs, o)] : 0;
    for (uint32_t i = 0; i < layer->used_inputs; i++) {
        values[count] = input[i];
        rows[count] = &field->params[reference_weight(layer, i, 0)];
        count += input[i] != 0;
    }
    for (; count % 4 != 0; count++) {
        values[count] = 0;
        rows[count] = rows[0];
    }
    for (uint32_t i = 0; i < count; i += 4) {
        const double *a = rows[i], *b = rows[i + 1], *c = rows[i + 2], *d = rows[i + 3];
        const double by_a = values[i], by_b = values[i + 1], by_c = values[i + 2],
                     by_d = values[i + 3];
        for (uint32_t o = 0; o < outputs; o++)
            output[o] += a[o] * by_a + b[o] * by_b + c[o] * by_c + d[o] * by_d;
    }
}

static double *inputs_of(const struct reference_field *field, struct trace *trace, uint32_t index)
{
    return trace->values[index] + (index == field->density_layers ? field->features_from : 0);
}

static void layer_forward(const struct reference_field *field, uint32_t index, struct trace *trace)
{
    const struct field_layer *layer = &field->layers[index];
    double *input = inputs_of(field, trace, index), *output = trace->values[index + 1];
    if (layer->skip)
        memcpy(input + layer->inputs - layer->skip, trace->values[0], layer->skip * sizeof *input);
    layer_sums(field, index, input, output);
    for (uint32_t o = 0; o < field->layers[index].used_outputs && is_hidden(field, index); o++)
        output[o] = reference_activation(field->hidden, output[o]);
    round_stored(field, output, layer->used_outputs);
}

/* `gradient` is of the outputs; replaces it by that of the inputs. */
static void layer_backward(const struct reference_field *field, uint32_t index, const double *input,
                           const double *output, double *gradient, double *gradients)
{
    const struct field_layer *layer = &field->layers[index];
    double below[WIDEST] = {0}, sums[WIDEST];
    bool curved = is_hidden(field, index) && field->hidden != VKN_ACTIVATION_RELU;
    if (curved)
        layer_sums(field, index, input, sums);
    for (uint32_t o = 0; o < layer->used_outputs; o++) {
        if (curved)
            gradient[o] *= reference_activation_slope(field->hidden, sums[o]);
        else if (is_hidden(field, index) && !(output[o] > 0))
            continue;
        for (uint32_t i = 0; i < layer->used_inputs; i++) {
            size_t weight = reference_weight(layer, i, o);
            gradients[weight] += input[i] * gradient[o];
            below[i] += field->params[weight] * gradient[o];
        }
        if (layer->biases)
            gradients[reference_weight(layer, layer->inputs, o)] += gradient[o];
    }
    round_stored(field, below, layer->used_inputs);
    memset(gradient, 0, sizeof below);
    size_t from = index == field->density_layers ? field->features_from : 0;
    memcpy(gradient + from, below, sizeof below - from * sizeof *below);
}

/* The time, then sine and cosine of 2^k pi times the time for each octave k. */
static void time_frequencies(const struct reference_field *field, double *values)
{
    values[0] = field->time;
    for (uint32_t k = 0; k < field->time_octaves; k++) {
        values[1 + 2 * k] = sin(ldexp(PI * field->time, (int)k));
        values[2 + 2 * k] = cos(ldexp(PI * field->time, (int)k));
    }
}

void reference_canonical(const struct reference_field *field, const double position[3],
                         double canonical[3])
{
    double values[2][WIDEST] = {0}, stretched[3];
    memcpy(canonical, position, 3 * sizeof *canonical);
    if (field->deformation_layers == 0)
        return;
    reference_stretched(&field->space, position, stretched);
    reference_frequencies(field->deformation_octaves, stretched, values[0]);
    time_frequencies(field, values[0] + 3 + 6 * field->deformation_octaves);
    for (uint32_t i = 0; i < field->deformation_layers; i++) {
        const struct field_layer *layer = &field->layers[field->layer_count + i];
        double *output = values[(i + 1) % 2];
        layer_sums(field, field->layer_count + i, values[i % 2], output);
        for (uint32_t o = 0; o < layer->used_outputs && i + 1 < field->deformation_layers; o++)
            output[o] = reference_activation(field->hidden, output[o]);
    }
    for (int i = 0; i < 3; i++)
        canonical[i] += field->space.side * values[field->deformation_layers % 2][i];
}

static void density_forward(const struct reference_field *field, const double position[3],
                            struct trace *trace)
{
    double stretched[3], canonical[3], *encoded = trace->values[0];
    uint32_t time_column = field->model->inputs; /* column of the time */
    reference_canonical(field, position, canonical);
    memset(encoded, 0, field->layers[0].inputs * sizeof *encoded);
    if (field->position_encoding != VKN_POSITION_HASH) {
        reference_stretched(&field->space, canonical, stretched);
        reference_frequencies(field->position_octaves, stretched, encoded);
        time_column = 3 + 6 * field->position_octaves;
    } else {
        reference_encode(field, canonical, encoded);
    }
    if (field->time_inputs)
        time_frequencies(field, encoded + time_column);
    round_stored(field, encoded, field->layers[0].inputs);
    for (uint32_t i = 0; i < field->density_layers; i++)
        layer_forward(field, i, trace);
}

static void forward(const struct reference_field *field, const double position[3],
                    const double direction[3], struct trace *trace)
{
    density_forward(field, position, trace);
    double *encoded = inputs_of(field, trace, field->density_layers) + field->geometry;
    memset(encoded, 0, 2 * REFERENCE_HARMONICS * sizeof *encoded);
    if (field->direction_encoding == VKN_DIRECTION_FREQUENCIES ||
        field->direction_encoding == VKN_DIRECTION_IDENTITY)
        reference_frequencies(field->direction_octaves, direction, encoded);
    else if (field->direction_encoding == VKN_DIRECTION_HARMONICS)
        reference_harmonics(field->sh_degree, direction, encoded);
    round_stored(field, encoded, REFERENCE_HARMONICS);
    for (uint32_t i = field->density_layers; i < field->layer_count; i++)
        layer_forward(field, i, trace);
    memcpy(trace->colors, trace->values[field->layer_count], sizeof trace->colors);
}

double reference_activation(enum vkn_activation activation, double x)
{
    switch (activation) {
    case VKN_ACTIVATION_LEAKY_RELU:
        return x > 0 ? x : x / 100;
    case VKN_ACTIVATION_SOFTPLUS:
        return fmax(x, 0) + log1p(exp(-fabs(x)));
    case VKN_ACTIVATION_SQUAREPLUS:
        return (x + sqrt(x * x + 4)) / 2;
    case VKN_ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-x));
    case VKN_ACTIVATION_TANH:
        return tanh(x);
    case VKN_ACTIVATION_NONE:
        return x;
    default:
        return relu(x);
    }
}

double reference_activation_slope(enum vkn_activation activation, double x)
{
    double bell = 1 / (2 + exp(x) + exp(-x)); /* the sigmoid's derivative */
    switch (activation) {
    case VKN_ACTIVATION_LEAKY_RELU:
        return x > 0 ? 1 : 0.01;
    case VKN_ACTIVATION_SOFTPLUS:
        return 1 / (1 + exp(-x));
    case VKN_ACTIVATION_SQUAREPLUS:
        return (1 + x / sqrt(x * x + 4)) / 2;
    case VKN_ACTIVATION_SIGMOID:
        return bell;
    case VKN_ACTIVATION_TANH:
        return 1 / (cosh(x) * cosh(x));
    case VKN_ACTIVATION_NONE:
        return 1;
    default:
        return x > 0;
    }
}

double reference_density_of(enum vkn_density_activation activation, double raw)
{
    switch (activation) { /* no default, as in reference_loss */
    case VKN_DENSITY_EXP:
        return exp(raw);
    case VKN_DENSITY_SOFTPLUS:
        return fmax(raw - 1, 0) + log1p(exp(-fabs(raw - 1)));
    case VKN_DENSITY_RELU:
        return fmax(raw, 0);
    case VKN_DENSITY_DEFAULT: /* not in an effective configuration */
        break;
    }
    return NAN;
}

double reference_density_slope(enum vkn_density_activation activation, double raw)
{
    if (activation == VKN_DENSITY_RELU)
        return raw > 0;
    return activation == VKN_DENSITY_SOFTPLUS ? 1 / (1 + exp(1 - raw))
                                              : exp(fmin(fmax(raw, -15), 15));
}

void reference_field_forward(const struct reference_field *field, const double position[3],
                             const double direction[3], double output[4])
{
    struct trace trace;
    forward(field, position, direction, &trace);
    for (int c = 0; c < 3; c++)
        output[c] = 1 / (1 + exp(-trace.colors[c]));
    output[3] = reference_density_of(field->activation, trace.values[field->density_layers][0]);
}

static void slopes_of(const struct reference_field *field, const struct trace *trace,
                      double slopes[4])
{
    for (int c = 0; c < 3; c++) {
        double color = 1 / (1 + exp(-trace->colors[c]));
        slopes[c] = color * (1 - color);
    }
    slopes[3] = reference_density_slope(field->activation, trace->values[field->density_layers][0]);
}

void reference_field_slopes(const struct reference_field *field, const double position[3],
                            const double direction[3], double slopes[4])
{
    struct trace trace;
    forward(field, position, direction, &trace);
    slopes_of(field, &trace, slopes);
}

double reference_field_kink(const struct reference_field *field, const double position[3],
                            const double direction[3])
{
    struct trace trace;
    double nearest = INFINITY;
    forward(field, position, direction, &trace);
    for (uint32_t i = 0; i < field->layer_count; i++) {
        double sums[WIDEST], squares = 0, smallest = INFINITY;
        uint32_t count = field->layers[i].used_outputs;
        layer_sums(field, i, inputs_of(field, &trace, i), sums);
        for (uint32_t o = 0; o < count; o++) {
            squares += sums[o] * sums[o];
            smallest = fmin(smallest, fabs(sums[o]));
        }
        if (i + 1 == field->density_layers && field->activation == VKN_DENSITY_RELU)
            nearest = fmin(nearest, fabs(sums[0]) / sqrt(squares / count));
        if (is_hidden(field, i))
            nearest = fmin(nearest, smallest / sqrt(squares / count));
    }
    return nearest;
}

static double raw_density(const struct reference_field *field, const double position[3])
{
    struct trace trace;
    density_forward(field, position, &trace);
    return trace.values[field->density_layers][0];
}

double reference_density(const struct reference_field *field, const double position[3])
{
    return reference_density_of(field->activation, raw_density(field, position));
}

double reference_log_density(const struct reference_field *field, const double position[3])
{
    if (field->activation == VKN_DENSITY_EXP)
        return raw_density(field, position);
    return log(fmax(reference_density(field, position), 1e-2));
}

void reference_field_backward(const struct reference_field *field, const double position[3],
                              const double direction[3], const double gradient[4],
                              double *gradients)
{
    struct trace trace;
    double flow[WIDEST] = {0}, slopes[4];
    forward(field, position, direction, &trace);
    slopes_of(field, &trace, slopes);
    for (int c = 0; c < 3; c++)
        flow[c] = gradient[c] * slopes[c];
    round_stored(field, flow, 3);
    for (uint32_t i = field->layer_count; i > 0; i--) {
        if (i == field->density_layers)
            flow[0] += gradient[3] * slopes[3];
        round_stored(field, flow, 1);
        layer_backward(field, i - 1, inputs_of(field, &trace, i - 1), trace.values[i], flow,
                       gradients);
    }
    reference_encode_backward(field, position, flow, gradients);
}

double reference_field_weighted(const struct reference_field *field, const double position[3],
                                const double direction[3], const double weights[4])
{
    double value[4], sum = 0;
    reference_field_forward(field, position, direction, value);
    for (int i = 0; i < 4; i++)
        sum += weights[i] * value[i];
    return sum;
}

/* Moves a direction by `reach` along an axis, and normalises it. */
static void turn(const double direction[3], int axis, double reach, double turned[3])
{
    double squared = 0;
    for (int i = 0; i < 3; i++) {
        turned[i] = direction[i] + (i == axis ? reach : 0);
        squared += turned[i] * turned[i];
    }
    for (int i = 0; i < 3; i++)
        turned[i] /= sqrt(squared);
}

void reference_field_input_gradients(const struct reference_field *field, const double position[3],
                                     const double direction[3], const double gradient[4],
                                     double reach, double by_position[3], double by_direction[3])
{
    const double angle = 1e-6;
    for (int i = 0; i < 3; i++) {
        double below[3], above[3];
        memcpy(below, position, sizeof below);
        memcpy(above, position, sizeof above);
        below[i] -= reach;
        above[i] += reach;
        by_position[i] = (reference_field_weighted(field, above, direction, gradient) -
                          reference_field_weighted(field, below, direction, gradient)) /
                         (above[i] - below[i]);
        turn(direction, i, -angle, below);
        turn(direction, i, angle, above);
        by_direction[i] = (reference_field_weighted(field, position, above, gradient) -
                           reference_field_weighted(field, position, below, gradient)) /
                          (2 * angle);
    }
}
