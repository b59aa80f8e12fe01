/* Fills in the workload's inputs: rays, samples, output gradients and parameters. */
#include "tuner/internal.h"

#include <math.h>

/* Returns a number in [0, 1): Knuth's 64-bit linear congruential generator. */
static float next_unit(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) * (1.0f / 16777216.0f);
}

static void fill_samples(struct field_workload *work, uint64_t *random)
{
    float side = (float)work->config.scene.aabb_scale;
    for (uint32_t r = 0; r < WORKLOAD_RAYS; r++) {
        struct Ray *ray = &work->rays[r];
        float square = 0;
        for (int i = 0; i < 3; i++) {
            ray->origin[i] = 0.5f + side * 0.4f * (next_unit(random) - 0.5f);
            ray->direction[i] = next_unit(random) - 0.5f + (i == 0 ? 0.01f : 0.0f);
            square += ray->direction[i] * ray->direction[i];
        }
        for (int i = 0; i < 3; i++)
            ray->direction[i] /= sqrtf(square);
    }
    for (uint32_t s = 0; s < work->sample_count; s++) {
        work->live[s] = s;
        work->samples[s] =
            (struct Sample){.t = 0.3f * side * next_unit(random), .ray = s % WORKLOAD_RAYS};
        for (int i = 0; i < 4; i++)
            work->gradients[s][i] = 0.25f + 0.75f * next_unit(random);
    }
}

/* Returns how many inputs of the layer are positive. These come first; encoded directions or
 * frequencies, of either sign, follow. */
static uint32_t positive_inputs(const struct field_model *model, uint32_t number)
{
    const struct field_layer *layer = &model->layers[number];
    if (model->fused == 0)
        return number == 0 ? 0 : model->layer_columns[number].input_count;
    bool starts_mlp = number > 0 && model->layers[number - 1].last;
    return starts_mlp ? model->layers[number - 1].used_outputs : layer->used_inputs;
}

/* With ReLUs every other hidden unit has positive weights, the others have negative ones.
 * Inputs are positive, so units with positive weights are active, units with negative weights are
 * not, and outputs are positive again.
 *
 * With other activations, gradients of both signs would cancel and large sums saturate, so all
 * weights are positive and biases small.
 *
 * Encoded directions and frequencies have weights too small to change a sign. The weights of a unit
 * sum to about 1. */
static void fill_layer(const struct field_workload *work, uint32_t number, uint64_t *random)
{
    const struct field_layer *layer = &work->model.layers[number];
    uint32_t positive = positive_inputs(&work->model, number), active = positive;
    bool turns_off = work->config.field.activation <= VKN_ACTIVATION_LEAKY_RELU;
    if (turns_off && number > 0 && !layer[-1].last)
        active /= 2;
    if (active == 0)
        active = layer->used_inputs;
    for (uint32_t i = 0; i < layer->used_inputs + layer->biases; i++)
        for (uint32_t o = 0; o < layer->used_outputs; o++) {
            float u = next_unit(random), value = 3.0f * u * u / (float)active;
            if (i >= positive)
                value *= 1.0f / 16;
            if (i == layer->used_inputs)
                value = (0.5f + 0.5f * u) * (turns_off ? 1.0f : 1.0f / 16);
            bool is_negative = turns_off && !layer->last && o % 2 == 1;
            uint32_t row = i < layer->used_inputs ? i : layer->inputs;
            work->params[layer->first + row * layer->outputs + o] = is_negative ? -value : value;
        }
}

static void fill_params(struct field_workload *work, uint64_t *random)
{
    for (uint32_t i = 0; i < work->model.layer_count; i++)
        fill_layer(work, i, random);
    for (uint32_t i = work->model.mlp_params; i < work->model.param_count; i++)
        work->params[i] = 0.25f + 0.75f * next_unit(random);
}

vkn_status workload_fill(struct field_workload *work)
{
    uint64_t random = 1;
    work->rays = base_alloc(WORKLOAD_RAYS, sizeof *work->rays);
    work->samples = base_alloc(work->sample_count, sizeof *work->samples);
    work->live = base_alloc(work->sample_count, sizeof *work->live);
    work->gradients = base_alloc(work->sample_count, sizeof *work->gradients);
    work->params = base_alloc(work->model.param_count, sizeof *work->params);
    if (!work->rays || !work->samples || !work->live || !work->gradients || !work->params)
        return VKN_ERROR;
    fill_samples(work, &random);
    fill_params(work, &random);
    return VKN_OK;
}
