/* Computes the field's MLPs in double precision: colours and densities from features, and gradients
 * with respect to weights and features. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suites.h"

#define MOST_VALUES 2048u /* values of a row over all layers */
#define HARMONICS   16u   /* spherical harmonics of a direction */
#define PI          3.14159265358979323846

/* Values and gradients of one row; at[i] is the first input of layer i. The colour MLP's inputs are
 * the density MLP's outputs followed by the encoded direction. */
struct row {
    double value[MOST_VALUES], gradient[MOST_VALUES];
    uint32_t at[FIELD_MAX_LAYERS + 1];
};

static void set_offsets(const struct mlp_model *mlp, struct row *row)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i <= mlp->model.layer_count; i++) {
        row->at[i] = at;
        at += i < mlp->model.layer_count ? mlp->model.layers[i].inputs : COLOR_OUTPUTS;
    }
}

static void forward(const struct mlp_model *mlp, uint32_t layer, struct row *row)
{
    const struct field_layer *l = &mlp->model.layers[layer];
    const double *from = row->value + row->at[layer];
    double *to = row->value + row->at[layer + 1];
    for (uint32_t o = 0; o < l->outputs; o++)
        to[o] = 0;
    for (uint32_t i = 0; i < l->inputs; i++)
        for (uint32_t o = 0; o < l->outputs; o++)
            to[o] += from[i] * (double)mlp->weights[l->first + i * l->outputs + o];
    for (uint32_t o = 0; o < l->outputs && !l->last; o++)
        to[o] = fmax(to[o], 0);
}

static void backward(struct mlp_model *mlp, uint32_t layer, struct row *row)
{
    const struct field_layer *l = &mlp->model.layers[layer];
    const double *input = row->value + row->at[layer],
                 *output_gradient = row->gradient + row->at[layer + 1];
    double *gradient = row->gradient + row->at[layer];
    bool rectified = layer > 0 && !l[-1].last;
    for (uint32_t i = 0; i < l->inputs; i++) {
        double sum = 0;
        for (uint32_t o = 0; o < l->outputs; o++) {
            uint32_t weight = l->first + i * l->outputs + o;
            sum += output_gradient[o] * (double)mlp->weights[weight];
            mlp->weight_gradients[weight] += input[i] * output_gradient[o];
        }
        gradient[i] = rectified && input[i] <= 0 ? 0 : sum;
    }
}

/* Evaluates the real spherical harmonics Y(l, m), 0 <= l < 4, -l <= m <= l, with the
 * Condon-Shortley phase. */
static void encode_direction(const float direction[3], double harmonics[HARMONICS])
{
    double x = (double)direction[0], y = (double)direction[1], z = (double)direction[2];
    double cosine = 1, sine = 0; /* (x + i y)^m */
    for (int m = 0; m < 4; m++) {
        /* Associated Legendre functions P(l, m) / (1 - z^2)^(m/2), by recurrence over l. */
        double previous = 0, legendre = m == 0 ? 1 : m == 1 ? -1 : m == 2 ? 3 : -15;
        for (int l = m; l < 4; l++) {
            double factorials = m ? 2 : 1; /* times (l - m)! / (l + m)! */
            for (int i = l - m + 1; i <= l + m; i++)
                factorials /= i;
            double scale = sqrt((2 * l + 1) / (4 * PI) * factorials) * legendre;
            harmonics[l * l + l + m] = scale * cosine;
            if (m > 0)
                harmonics[l * l + l - m] = scale * sine;
            double next = ((2 * l + 1) * z * legendre - (l + m) * previous) / (l - m + 1);
            previous = legendre;
            legendre = next;
        }
        double rotated = cosine * x - sine * y;
        sine = cosine * y + sine * x;
        cosine = rotated;
    }
}

/* Returns the index of input i of a row in [level][row][feature]. */
static uint32_t feature_at(uint32_t row, uint32_t i)
{
    return (i / MLP_FEATURES * MLP_PATTERN + row) * MLP_FEATURES + i % MLP_FEATURES;
}

/* Runs a row forward and backward. The derivatives of sigmoid and exp follow from their values. */
static void run_row(struct mlp_model *mlp, uint32_t index, struct row *row)
{
    uint32_t last = mlp->model.layer_count, end = mlp->density_end;
    float *value = mlp->values[index], *output_gradient = mlp->gradients[index];
    for (uint32_t i = 0; i < MLP_INPUTS; i++)
        row->value[i] = (double)mlp->features[feature_at(index, i)];
    for (uint32_t i = 0; i < last; i++) {
        if (i == end)
            encode_direction(mlp->rays[mlp->samples[index].ray].direction,
                             row->value + row->at[i] + mlp->config.mlp.geometry);
        forward(mlp, i, row);
    }
    memset(row->gradient, 0, sizeof row->gradient);
    for (uint32_t i = 0; i < 3; i++) {
        double color = 1 / (1 + exp(-row->value[row->at[last] + i]));
        row->gradient[row->at[last] + i] = (double)output_gradient[i] * color * (1 - color);
        value[i] = (float)color;
    }
    value[3] = (float)exp(row->value[row->at[end]]);
    for (uint32_t i = last; i > 0; i--) {
        if (i == end)
            row->gradient[row->at[end]] += (double)output_gradient[3] * (double)value[3];
        backward(mlp, i - 1, row);
    }
    for (uint32_t i = 0; i < MLP_INPUTS; i++)
        mlp->feature_gradients[feature_at(index, i)] = row->gradient[i];
}

/* Returns a value in [0.5, 1], exact in f16. */
static float positive(uint64_t *random)
{
    return 0.5f + 0.5f * fabsf(bench_random(random));
}

/* Every other hidden unit has positive weights, the others have negative ones. Inputs are positive,
 * except for encoded directions, which are too small to change the sign of a sum. So half of the
 * activations are zero, none is near the kink of the ReLU, and no sum cancels: precisions differ
 * only by rounding. The weights of a unit sum to about 1. */
static void fill_layer(struct mlp_model *mlp, uint32_t index, bool f16, uint64_t *random)
{
    const struct field_layer *layer = &mlp->model.layers[index];
    bool is_first = index == 0 || index == mlp->density_end; /* layer of an MLP */
    float scale = (is_first ? 1.33f : 2.67f) / (float)layer->inputs;
    for (uint32_t i = 0; i < layer->inputs; i++)
        for (uint32_t o = 0; o < layer->used_outputs; o++) {
            float weight = scale * positive(random);
            weight = o % 2 == 1 && !layer->last ? -weight : weight;
            mlp->weights[layer->first + i * layer->outputs + o] =
                f16 ? base_from_f16(base_to_f16(weight)) : weight;
        }
}

static void fill(struct mlp_model *mlp, bool f16)
{
    uint64_t random = mlp->config.mlp.density_width;
    for (uint32_t i = 0; i < mlp->model.layer_count; i++)
        fill_layer(mlp, i, f16, &random);
    for (uint32_t i = 0; i < BASE_COUNT(mlp->features); i++)
        mlp->features[i] = positive(&random);
    for (uint32_t i = 0; i < MLP_PATTERN * 4; i++)
        mlp->gradients[i / 4][i % 4] = positive(&random);
    for (uint32_t i = 0; i < MLP_RAYS; i++)
        bench_random_direction(&random, mlp->rays[i].direction);
    for (uint32_t i = 0; i < MLP_PATTERN; i++)
        mlp->samples[i].ray = i / (MLP_PATTERN / MLP_RAYS);
}

vkn_status mlp_create(const struct mlp_case *c, const struct bench_backend *backend,
                      struct mlp_model **created)
{
    struct mlp_model *mlp = *created = base_alloc(1, sizeof *mlp);
    struct row *row = base_alloc(1, sizeof *row);
    vkn_status status = mlp && row ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK) {
        mlp->config = (struct vkn_config){
            .scene.aabb_scale = 1,
            .grid = {.levels = MLP_INPUTS / MLP_FEATURES,
                     .features = MLP_FEATURES,
                     .log2_entries = 10,
                     .coarsest = 4,
                     .finest = 8},
            .mlp = {.density_width = c->width,
                    .density_layers = c->depth,
                    .geometry = 16,
                    .color_width = 16,
                    .color_layers = 1,
                    .sh_degree = 4},
        };
        bench_backend_settings(backend, &mlp->config);
        status = field_model_create(&mlp->config, &mlp->model);
    }
    if (status == VKN_OK) {
        mlp->density_end = c->depth + 1;
        mlp->weights = base_alloc(mlp->model.param_count, sizeof *mlp->weights);
        mlp->weight_gradients = base_alloc(mlp->model.mlp_params, sizeof *mlp->weight_gradients);
        status = mlp->weights && mlp->weight_gradients ? VKN_OK : VKN_ERROR;
    }
    if (status == VKN_OK) {
        fill(mlp, backend->precision != VKN_PRECISION_FP32);
        set_offsets(mlp, row);
        for (uint32_t i = 0; i < MLP_PATTERN; i++)
            run_row(mlp, i, row);
    }
    free(row);
    return status;
}

void mlp_free(struct mlp_model **mlp)
{
    if (*mlp) {
        free((*mlp)->weights);
        free((*mlp)->weight_gradients);
    }
    free(*mlp);
    *mlp = NULL;
}

double mlp_flops(const struct mlp_model *mlp, bool training)
{
    double flops = 0;
    for (uint32_t i = 0; i < mlp->model.layer_count; i++) {
        const struct field_layer *l = &mlp->model.layers[i];
        double products = 2.0 * l->used_outputs;
        uint32_t learned = i == mlp->density_end ? mlp->config.mlp.geometry : l->inputs;
        if (!training || i + 1 < mlp->model.layer_count)
            flops += products * l->inputs;
        if (training)
            flops += products * l->inputs + products * learned;
    }
    return flops;
}

double mlp_bytes(const struct mlp_model *mlp, bool training)
{
    double features = MLP_INPUTS * (mlp->config.precision == VKN_PRECISION_FP32 ? 4.0 : 2.0);
    double sample = sizeof(struct Sample) + features + sizeof mlp->values[0];
    return sample + (training ? sizeof(uint32_t) + features + sizeof mlp->gradients[0] : 0);
}
