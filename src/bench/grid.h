/* What the files of the hash grid share. */
#ifndef BENCH_GRID_H
#define BENCH_GRID_H

#include "bench/internal.h"
#include "field/field.h"

#define GRID_SETS 4u /* of samples, to take turns with; all use the same table */

/* A grid with its samples, on the host. */
struct grid {
    struct vkn_config config;
    struct field_model model;
    uint32_t samples, rays; /* of a set */
    struct Ray *ray[GRID_SETS];
    struct Sample *sample[GRID_SETS];
    float *params;    /* exact in f16 */
    float *gradients; /* of the features: [level][sample][feature]; exact in f16; of all sets */
};

/* For tables of so many entries; ends with grid_free, also after a failure. */
vkn_status grid_create(struct bench *bench, uint32_t log2_entries, struct grid *grid);
void grid_free(struct grid *grid);
/* The features of a sample of a set at one level. */
void grid_gather(const struct grid *grid, uint32_t set, uint32_t sample, uint32_t level,
                 double features[4]);
/* The sums of one set's gradients: double[entries * features], zeroed before. */
void grid_scatter(const struct grid *grid, uint32_t set, uint32_t level, double *sums);
/* Numbers of features of a set. */
uint64_t grid_features(const struct grid *grid);

#endif
