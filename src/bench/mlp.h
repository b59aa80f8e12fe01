/* What the files of the MLPs share. */
#ifndef BENCH_MLP_H
#define BENCH_MLP_H

#include "bench/internal.h"
#include "field/field.h"

#define MLP_PATTERN 512u /* rows; a batch repeats them */
#define MLP_OUTPUTS 4u   /* of the density MLP that are written */

struct mlp_case {
    uint32_t width, depth, batch; /* depth: hidden layers of the density MLP */
};

/* Both MLPs on the host: weights as a backend reads them, rows that repeat, and what comes of them.
 */
struct mlp_model {
    struct vkn_config config;
    struct field_model model;
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t layer_count, density_end; /* the colour MLP's first layer */
    float *weights;
    float *rows;              /* [row][encoded] */
    float (*gradients)[4];    /* by raw rgb and raw density */
    double *outputs;          /* [row][MLP_OUTPUTS] */
    double *input_gradients;  /* [row][encoded] */
    double *weight_gradients; /* sums over the pattern's rows */
};

/* For a backend's precision. Ends with mlp_free, also after a failure. */
vkn_status mlp_create(const struct mlp_case *c, const struct bench_backend *backend,
                      struct mlp_model *mlp);
void mlp_free(struct mlp_model *mlp);
/* Of a row: forward is the density MLP; training both MLPs, all but the last layer forward, then
 * each layer's gradients of inputs and of weights. */
double mlp_flops(const struct mlp_model *mlp, bool training);

#endif
