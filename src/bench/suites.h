/* What the files of a suite share: matrix products, MLPs, hash grids, training steps. */
#ifndef BENCH_SUITES_H
#define BENCH_SUITES_H

#include "base/base.h"
#include "bench/internal.h"
#include "field/field.h"
#include "scene/scene.h"

/* ---- the vendor's library of products (vendor.c) --------------------------------------------- */

enum vendor_kind { VENDOR_F16_F32, VENDOR_F16_F16, VENDOR_TF32, VENDOR_F32, VENDOR_KINDS };
/* "cublaslt f16 f32": multiplicands, then sums. */
extern const char *const vendor_names[VENDOR_KINDS];

/* C = A * B, row-major, `sets` of each behind one another. Multiplicands are f16 or f32 as the kind
 * has it, C is of the sums' type. */
struct vendor_product {
    enum vendor_kind kind;
    uint32_t m, n, k, sets;
    const void *a, *b; /* patterns: repeated until A and B are full */
    uint64_t pattern;  /* bytes of each */
};

struct vendor;
/* On the CUDA device of that name. NULL: `why` says in a line what is missing. VKNERF_CUBLASLT
 * names the library where it is not among the system's. */
struct vendor *vendor_open(const char *device, char *why, size_t size);
void vendor_close(struct vendor **vendor);
/* "cuBLASLt 12.8.4" */
const char *vendor_version(const struct vendor *vendor);
/* Allocates, fills in and plans; ends with vendor_end, also after a failure. */
vkn_status vendor_begin(struct vendor *vendor, const struct vendor_product *product);
void vendor_end(struct vendor *vendor);
/* Runs the product `turns` times, on set after set. */
vkn_status vendor_run(struct vendor *vendor, uint32_t iterations, double *seconds);
/* Bytes of C of the first set. */
vkn_status vendor_download(struct vendor *vendor, void *c, uint64_t offset, uint64_t size);

/* ---- products (gemm.c, gemm_vendor.c) -------------------------------------------------------- */

/* C = A * B: m x k times k x n. */
struct gemm_case {
    uint32_t m, n, k;
};

#define GEMM_PATTERN (1u << 18) /* numbers; A and B repeat them */

/* The numbers in A and B, exact in f16. */
struct gemm_patterns {
    float *a, *b;
    uint16_t *f16_a, *f16_b;
};

/* Vendor's rates of the case at hand, in FLOP/s; 0: not measured. */
struct gemm_vendor {
    struct vendor *library; /* NULL: there is none */
    double rates[VENDOR_KINDS];
};

double gemm_flops(const struct gemm_case *c);
/* Bytes of A, B and C. */
uint64_t gemm_bytes(const struct gemm_case *c, uint32_t input, uint32_t output);
void gemm_describe(const struct gemm_case *c, struct bench_result *result);
/* The outputs that are compared: number `i` of GEMM_OUTPUTS is at that index of C in that set. */
#define GEMM_OUTPUTS 64u
uint64_t gemm_output(const struct gemm_case *c, uint32_t sets, uint32_t i, uint32_t *set);
/* Compares it with the exact product: of matrices row by row, or in our own programs' layout. */
void gemm_compare(const struct gemm_case *c, const struct gemm_patterns *patterns, bool ours,
                  uint32_t set, uint64_t output, float got, struct bench_check *check);
double gemm_tolerance(const struct gemm_case *c, bool f16_sums, bool f16_outputs);

/* Measures the library's products of a case. */
vkn_status gemm_measure_vendor(struct bench *bench, const struct gemm_case *c,
                               const struct gemm_patterns *patterns, struct gemm_vendor *vendor);

/* ---- MLPs (mlp.c, mlp_reference.c) ----------------------------------------------------------- */

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

/* ---- hash grids (grid.c, grid_reference.c) --------------------------------------------------- */

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

/* ---- training steps (step.c, step_scene.c) --------------------------------------------------- */

/* A ball with a pattern, seen from all around, without files. The caller closes *scene. */
vkn_status step_make_scene(uint32_t views, uint32_t size, struct vkn_scene **scene);

#endif
