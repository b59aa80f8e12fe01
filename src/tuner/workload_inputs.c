/* The workload's inputs. */
#include "tuner/internal.h"

#include <math.h>

/* Knuth's 64-bit congruential generator; in [0, 1). */
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

/* Every other hidden unit has positive weights, the rest negative ones: inputs are positive, so the
 * former pass the ReLU and the latter do not; outputs are positive again. Directions, whose
 * harmonics have either sign, count too little to turn any. Weights of a unit add up to about 1. */
static void fill_layer(const struct field_workload *work, const struct field_layer *layer,
                       uint32_t features, bool first, bool last, uint64_t *random)
{
    uint32_t active = first ? features : layer->used_inputs / 2;
    for (uint32_t i = 0; i < layer->used_inputs; i++)
        for (uint32_t o = 0; o < layer->used_outputs; o++) {
            float u = next_unit(random), value = 3.0f * u * u / (float)active;
            if (first && i >= features)
                value *= 1.0f / 16;
            bool negative = !last && o % 2 == 1;
            work->params[layer->first + i * layer->outputs + o] = negative ? -value : value;
        }
}

static void fill_params(struct field_workload *work, uint64_t *random)
{
    const struct field_layer *layers = work->model.layers;
    for (uint32_t i = 0; i < work->model.layer_count; i++)
        fill_layer(work, &layers[i], i ? layers[i - 1].used_outputs : layers[i].used_inputs,
                   i == 0 || layers[i - 1].last, layers[i].last, random);
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
