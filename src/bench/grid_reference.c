/* Creates samples for the hash grid, and computes its features and gradients in double precision
 * after Mueller et al. 2022, sections 3 and 4. */
#include <math.h>
#include <stdlib.h>

#include "bench/suites.h"

/* Samples per ray; neighbours are close to each other, as in training. */
#define RAY_SAMPLES 32u

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Fills in rays and samples; all samples are in the unit cube. */
static void fill_set(struct grid *grid, uint32_t set, uint64_t *random)
{
    for (uint32_t r = 0; r < grid->rays; r++) {
        struct Ray *ray = &grid->ray[set][r];
        for (int i = 0; i < 3; i++)
            ray->origin[i] = 0.5f + 0.2f * bench_random(random);
        bench_random_direction(random, ray->direction);
    }
    for (uint32_t s = 0; s < grid->samples; s++)
        grid->sample[set][s] = (struct Sample){
            0.3f * ((float)(s % RAY_SAMPLES) + 0.5f * bench_random(random) + 0.5f) / RAY_SAMPLES,
            0.3f / RAY_SAMPLES, s / RAY_SAMPLES};
}

static vkn_status allocate(struct grid *grid)
{
    for (uint32_t set = 0; set < GRID_SETS; set++) {
        grid->ray[set] = base_alloc(grid->rays, sizeof(struct Ray));
        grid->sample[set] = base_alloc(grid->samples, sizeof(struct Sample));
        if (!grid->ray[set] || !grid->sample[set])
            return VKN_ERROR;
    }
    grid->params = base_alloc(grid->model.param_count, sizeof *grid->params);
    grid->gradients = base_alloc(grid_features(grid), sizeof *grid->gradients);
    return grid->params && grid->gradients ? VKN_OK : VKN_ERROR;
}

static uint32_t sample_count(const struct bench *bench)
{
    const struct vkn_bench_params *params = bench->params;
    return params->batch ? params->batch
                         : 1u << (bench->small    ? params->quick ? 12 : 15
                                  : params->quick ? 18
                                                  : 20);
}

vkn_status grid_create(struct bench *bench, uint32_t log2_entries, struct grid *grid)
{
    *grid = (struct grid){.samples = sample_count(bench)};
    grid->rays = grid->samples / RAY_SAMPLES;
    grid->config = (struct vkn_config){
        .scene.aabb_scale = 1,
        .grid = {.levels = 16,
                 .features = 2,
                 .log2_entries = log2_entries,
                 .coarsest = 16,
                 .finest = 2048},
        .mlp = {.density_width = 64,
                .density_layers = 1,
                .geometry = 16,
                .color_width = 64,
                .color_layers = 2,
                .sh_degree = 4},
    };
    BASE_TRY(field_model_create(&grid->config, &grid->model));
    BASE_TRY(allocate(grid));
    uint64_t random = log2_entries;
    for (uint32_t set = 0; set < GRID_SETS; set++)
        fill_set(grid, set, &random);
    for (uint32_t i = 0; i < grid->model.param_count; i++)
        grid->params[i] = bench_random(&random);
    for (uint64_t i = 0; i < grid_features(grid); i++)
        grid->gradients[i] = bench_random(&random);
    return VKN_OK;
}

void grid_free(struct grid *grid)
{
    for (uint32_t set = 0; set < GRID_SETS; set++) {
        free(grid->ray[set]);
        free(grid->sample[set]);
    }
    free(grid->params);
    free(grid->gradients);
}

uint64_t grid_features(const struct grid *grid)
{
    return (uint64_t)grid->samples * grid->model.levels * grid->model.features;
}

/* ---- grid ------------------------------------------------------------------------------------ */

/* A grid cell: its lowest corner, and the position inside, from 0 to 1. */
struct cell {
    uint32_t corner[3];
    double inside[3];
};

static struct cell find_cell(const struct grid *grid, uint32_t set, uint32_t sample, uint32_t level)
{
    struct cell cell;
    const struct Sample *s = &grid->sample[set][sample];
    const struct Ray *ray = &grid->ray[set][s->ray];
    for (int i = 0; i < 3; i++) {
        double at = (double)ray->origin[i] + (double)s->t * (double)ray->direction[i];
        double p = fmin(fmax(at, 0), 1) * (double)grid->model.level[level].scale + 0.5;
        cell.corner[i] = (uint32_t)floor(p);
        cell.inside[i] = p - floor(p);
    }
    return cell;
}

/* Returns the entry of one of the cell's eight corners, and its weight. */
static uint32_t find_entry(const struct Level *level, const struct cell *cell, uint32_t corner,
                           double *weight)
{
    uint32_t at[3];
    *weight = 1;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t side = corner >> i & 1;
        at[i] = cell->corner[i] + side;
        *weight *= side ? cell->inside[i] : 1 - cell->inside[i];
        if (level->dense && at[i] >= level->resolution)
            at[i] = level->resolution - 1;
    }
    if (level->dense)
        return at[0] + level->resolution * (at[1] + level->resolution * at[2]);
    return (at[0] ^ at[1] * 2654435761u ^ at[2] * 805459861u) & (level->entries - 1);
}

void grid_gather(const struct grid *grid, uint32_t set, uint32_t sample, uint32_t level,
                 double features[4])
{
    const struct Level *l = &grid->model.level[level];
    struct cell cell = find_cell(grid, set, sample, level);
    for (uint32_t f = 0; f < grid->model.features; f++)
        features[f] = 0;
    for (uint32_t corner = 0; corner < 8; corner++) {
        double weight;
        uint32_t entry = find_entry(l, &cell, corner, &weight);
        for (uint32_t f = 0; f < grid->model.features; f++)
            features[f] +=
                weight * (double)grid->params[l->first + entry * grid->model.features + f];
    }
}

void grid_scatter(const struct grid *grid, uint32_t set, uint32_t level, double *sums)
{
    const struct Level *l = &grid->model.level[level];
    for (uint32_t s = 0; s < grid->samples; s++) {
        struct cell cell = find_cell(grid, set, s, level);
        const float *gradient =
            grid->gradients + ((uint64_t)level * grid->samples + s) * grid->model.features;
        for (uint32_t corner = 0; corner < 8; corner++) {
            double weight;
            uint32_t entry = find_entry(l, &cell, corner, &weight);
            for (uint32_t f = 0; f < grid->model.features; f++)
                sums[entry * grid->model.features + f] += weight * (double)gradient[f];
        }
    }
}
