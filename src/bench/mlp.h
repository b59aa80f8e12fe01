/* What the files of the MLPs share. */
#ifndef BENCH_MLP_H
#define BENCH_MLP_H

#include "bench/internal.h"
#include "field/field.h"

#define MLP_PATTERN  512u /* rows; a batch repeats them */
#define MLP_RAYS     16u  /* that samples of the pattern are on */
#define MLP_INPUTS   32u  /* features of a row, those of 16 levels */
#define MLP_FEATURES 2u   /* of a level */

struct mlp_case {
    uint32_t width, depth, batch; /* depth: hidden layers of the density MLP */
};

/* A field without its hash grid on the host: rows that repeat, and what the MLPs make of them. */
struct mlp_model {
    struct vkn_config config;
    struct field_model model;
    uint32_t density_end;     /* the colour MLP's first layer */
    float *weights;           /* as a backend reads them */
    double *weight_gradients; /* sums over the pattern's rows */
    struct Ray rays[MLP_RAYS];
    struct Sample samples[MLP_PATTERN];
    float features[MLP_PATTERN * MLP_INPUTS];                /* [level][row][feature] */
    double feature_gradients[MLP_PATTERN * MLP_INPUTS];      /* the same */
    float values[MLP_PATTERN][4], gradients[MLP_PATTERN][4]; /* rgb and density; by these */
};

/* For a backend's precision. Ends with mlp_free, also after a failure. */
vkn_status mlp_create(const struct mlp_case *c, const struct bench_backend *backend,
                      struct mlp_model **mlp);
void mlp_free(struct mlp_model **mlp);
/* Of a row: docs/bench.md tells what is counted. */
double mlp_flops(const struct mlp_model *mlp, bool training);
double mlp_bytes(const struct mlp_model *mlp, bool training);

#endif
