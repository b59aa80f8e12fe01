/* The MLPs in double precision. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/mlp.h"

#define MOST_VALUES 2048u /* of a row, over all layers */
#define DIRECTION   0.5   /* the same for all rows, as in shaders/bench/mlp_backward.comp */

/* Values, then gradients, of one row: `at` of each layer's inputs. The colour MLP's inputs are the
 * density MLP's outputs with the direction behind them. */
struct row {
    double value[MOST_VALUES], gradient[MOST_VALUES];
    uint32_t at[FIELD_MAX_LAYERS + 1];
};

static void place(const struct mlp_model *mlp, struct row *row)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i <= mlp->layer_count; i++) {
        row->at[i] = at;
        at += i < mlp->layer_count ? mlp->layers[i].inputs : COLOR_OUTPUTS;
    }
}

/* Whether a layer's outputs go through the ReLU. */
static bool is_hidden(const struct mlp_model *mlp, uint32_t layer)
{
    return layer + 1 != mlp->density_end && layer + 1 != mlp->layer_count;
}

static void forward(const struct mlp_model *mlp, uint32_t layer, struct row *row)
{
    const struct field_layer *l = &mlp->layers[layer];
    const double *from = row->value + row->at[layer];
    double *to = row->value + row->at[layer + 1];
    for (uint32_t o = 0; o < l->outputs; o++)
        to[o] = 0;
    for (uint32_t i = 0; i < l->inputs; i++)
        for (uint32_t o = 0; o < l->outputs; o++)
            to[o] += from[i] * (double)mlp->weights[l->first + i * l->outputs + o];
    for (uint32_t o = 0; o < l->outputs && is_hidden(mlp, layer); o++)
        to[o] = fmax(to[o], 0);
}

static void backward(struct mlp_model *mlp, uint32_t layer, struct row *row)
{
    const struct field_layer *l = &mlp->layers[layer];
    const double *input = row->value + row->at[layer], *by = row->gradient + row->at[layer + 1];
    double *gradient = row->gradient + row->at[layer];
    bool rectified = layer > 0 && is_hidden(mlp, layer - 1);
    for (uint32_t i = 0; i < l->inputs; i++) {
        double sum = 0;
        for (uint32_t o = 0; o < l->outputs; o++) {
            uint32_t weight = l->first + i * l->outputs + o;
            sum += by[o] * (double)mlp->weights[weight];
            mlp->weight_gradients[weight] += input[i] * by[o];
        }
        gradient[i] = rectified && input[i] <= 0 ? 0 : sum;
    }
}

static void run_row(struct mlp_model *mlp, uint32_t index, struct row *row)
{
    uint32_t encoded = mlp->model.encoded, end = mlp->density_end;
    for (uint32_t i = 0; i < encoded; i++)
        row->value[i] = (double)mlp->rows[index * encoded + i];
    for (uint32_t i = 0; i < mlp->layer_count; i++) {
        if (i == end)
            for (uint32_t d = 0; d < 16; d++)
                row->value[row->at[i] + mlp->config.mlp.geometry + d] = DIRECTION;
        forward(mlp, i, row);
    }
    memset(row->gradient, 0, sizeof row->gradient);
    for (uint32_t i = 0; i < 3; i++)
        row->gradient[row->at[mlp->layer_count] + i] = (double)mlp->gradients[index][i];
    for (uint32_t i = mlp->layer_count; i > 0; i--) {
        if (i == end)
            row->gradient[row->at[end]] += (double)mlp->gradients[index][3];
        backward(mlp, i - 1, row);
    }
    for (uint32_t i = 0; i < MLP_OUTPUTS; i++)
        mlp->outputs[index * MLP_OUTPUTS + i] = row->value[row->at[end] + i];
    memcpy(mlp->input_gradients + (size_t)index * encoded, row->gradient, encoded * sizeof(double));
}

static vkn_status run(struct mlp_model *mlp)
{
    struct row *row = base_alloc(1, sizeof *row);
    if (!row)
        return VKN_ERROR;
    place(mlp, row);
    for (uint32_t i = 0; i < MLP_PATTERN; i++)
        run_row(mlp, i, row);
    free(row);
    return VKN_OK;
}

static vkn_status allocate(struct mlp_model *mlp)
{
    size_t rows = MLP_PATTERN, encoded = mlp->model.encoded;
    mlp->weights = base_alloc(mlp->model.param_count, sizeof *mlp->weights);
    mlp->rows = base_alloc(rows * encoded, sizeof *mlp->rows);
    mlp->gradients = base_alloc(rows, sizeof *mlp->gradients);
    mlp->outputs = base_alloc(rows * MLP_OUTPUTS, sizeof *mlp->outputs);
    mlp->input_gradients = base_alloc(rows * encoded, sizeof *mlp->input_gradients);
    mlp->weight_gradients = base_alloc(mlp->model.mlp_params, sizeof *mlp->weight_gradients);
    return mlp->weights && mlp->rows && mlp->gradients && mlp->outputs && mlp->input_gradients &&
                   mlp->weight_gradients
               ? VKN_OK
               : VKN_ERROR;
}

/* In (0, 1], exact in f16. */
static float positive(uint64_t *random)
{
    return 0.5f + 0.5f * fabsf(bench_random(random));
}

/* Every other hidden unit has positive weights, the rest negative ones; all inputs are positive. So
 * half of the activations are zero, none is near the ReLU's kink, and no sum cancels: precisions
 * differ by rounding alone. Weights of a unit add up to about 1. */
static void fill_layer(struct mlp_model *mlp, uint32_t index, bool half, uint64_t *random)
{
    const struct field_layer *layer = &mlp->layers[index];
    bool first = index == 0 || index == mlp->density_end;
    float scale = (first ? 1.33f : 2.67f) / (float)layer->inputs;
    for (uint32_t i = 0; i < layer->inputs; i++)
        for (uint32_t o = 0; o < layer->used_outputs; o++) {
            float weight = scale * positive(random);
            weight = o % 2 == 1 && is_hidden(mlp, index) ? -weight : weight;
            mlp->weights[layer->first + i * layer->outputs + o] =
                half ? bench_from_half(bench_to_half(weight)) : weight;
        }
}

vkn_status mlp_create(const struct mlp_case *c, const struct bench_backend *backend,
                      struct mlp_model *mlp)
{
    *mlp = (struct mlp_model){.config = {
                                  .scene.aabb_scale = 1,
                                  .grid = {.levels = 16, /* for its 32 values */
                                           .features = 2,
                                           .log2_entries = 10,
                                           .coarsest = 4,
                                           .finest = 8},
                                  .mlp = {.density_width = c->width,
                                          .density_layers = c->depth,
                                          .geometry = 16,
                                          .color_width = 16,
                                          .color_layers = 1,
                                          .sh_degree = 4},
                              }};
    bench_backend_settings(backend, &mlp->config);
    BASE_TRY(field_model_create(&mlp->config, &mlp->model));
    mlp->layer_count = mlp->model.layer_count;
    memcpy(mlp->layers, mlp->model.layers, sizeof mlp->layers);
    mlp->density_end = c->depth + 1;
    BASE_TRY(allocate(mlp));
    uint64_t random = c->width;
    for (uint32_t i = 0; i < mlp->layer_count; i++)
        fill_layer(mlp, i, backend->precision != VKN_PRECISION_FP32, &random);
    for (uint32_t i = 0; i < MLP_PATTERN * mlp->model.encoded; i++)
        mlp->rows[i] = positive(&random);
    for (uint32_t i = 0; i < MLP_PATTERN * 4; i++)
        mlp->gradients[i / 4][i % 4] = positive(&random);
    return run(mlp);
}

void mlp_free(struct mlp_model *mlp)
{
    free(mlp->weights);
    free(mlp->rows);
    free(mlp->gradients);
    free(mlp->outputs);
    free(mlp->input_gradients);
    free(mlp->weight_gradients);
}

double mlp_flops(const struct mlp_model *mlp, bool training)
{
    double flops = 0;
    for (uint32_t i = 0; i < mlp->layer_count; i++) {
        double products = 2.0 * mlp->layers[i].inputs * mlp->layers[i].outputs;
        bool run_forward = training ? i + 1 < mlp->layer_count : i < mlp->density_end;
        flops += (run_forward ? products : 0) + (training ? 2 * products : 0);
    }
    return flops;
}
