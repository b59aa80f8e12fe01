/* Declarations of the suites: matrix products, MLPs, hash grids, training steps. */
#ifndef BENCH_SUITES_H
#define BENCH_SUITES_H

#include "base/base.h"
#include "bench/internal.h"
#include "field/field.h"
#include "scene/scene.h"

/* ---- the vendor's library for matrix products (vendor.c) ------------------------------------- */

/* Kinds of products, by the type of A and B, then the type of the accumulator. */
enum vendor_kind { VENDOR_F16_F32, VENDOR_F16_F16, VENDOR_TF32, VENDOR_F32, VENDOR_KINDS };
/* Names in results: "cublaslt f16 f32" has the types of A and B, then of C. */
extern const char *const vendor_names[VENDOR_KINDS];

/* C = A * B, row-major; `sets` copies of each matrix follow one another. The kind determines
 * the types: A and B are f16 or f32, C has the accumulator's type. */
struct vendor_product {
    enum vendor_kind kind;
    uint32_t m, n, k, sets;
    const void *a, *b; /* patterns, repeated to fill A and B */
    uint64_t pattern;  /* bytes of each pattern */
};

struct vendor;
/* Opens the library on the CUDA device of that name; VKNERF_CUBLASLT names the library's file if it
 * is not in the system's folders. Returns NULL and writes to `why` what is missing. */
struct vendor *vendor_open(const char *device, char *why, size_t size);
void vendor_close(struct vendor **vendor);
/* Returns "cuBLASLt 12.8.4". */
const char *vendor_version(const struct vendor *vendor);
/* Allocates and fills the matrices and selects an algorithm. The caller calls vendor_end, also
 * after a failure. */
vkn_status vendor_begin(struct vendor *vendor, const struct vendor_product *product);
void vendor_end(struct vendor *vendor);
/* Runs the product repeatedly, on alternating sets, and measures the time of all runs. */
vkn_status vendor_run(struct vendor *vendor, uint32_t iterations, double *seconds);
/* Downloads `size` bytes of C, from byte `offset`; the sets of C follow one another. */
vkn_status vendor_download(struct vendor *vendor, void *c, uint64_t offset, uint64_t size);

/* ---- matrix products (gemm.c, gemm_vendor.c) ------------------------------------------------- */

/* Sizes of a product: C (m x n) = A (m x k) * B (k x n). */
struct gemm_case {
    uint32_t m, n, k;
};

#define GEMM_PATTERN (1u << 18) /* elements of the patterns that A and B repeat */

/* Values of A and B, as f32 and f16; all are exact in f16. */
struct gemm_patterns {
    float *a, *b;
    uint16_t *f16_a, *f16_b;
};

/* FLOP/s of the vendor's library for the current case; 0: not measured. */
struct gemm_vendor {
    struct vendor *library; /* NULL: not available */
    double rates[VENDOR_KINDS];
};

double gemm_flops(const struct gemm_case *c);
/* Returns the bytes of A, B and C; input, output: bytes per element. */
uint64_t gemm_bytes(const struct gemm_case *c, uint32_t input, uint32_t output);
void gemm_describe(const struct gemm_case *c, struct bench_result *result);
/* Returns the index in C of the i-th output to check, i < GEMM_OUTPUTS, and sets *set to its set.
 */
#define GEMM_OUTPUTS 64u
uint64_t gemm_output(const struct gemm_case *c, uint32_t sets, uint32_t i, uint32_t *set);
/* Compares an output with the exact product. shader_layout: matrices are laid out as for shaders,
 * else row-major. */
void gemm_compare(const struct gemm_case *c, const struct gemm_patterns *patterns,
                  bool shader_layout, uint32_t set, uint64_t output, float got,
                  struct bench_check *check);
/* Returns the allowed error relative to a typical output. */
double gemm_tolerance(const struct gemm_case *c, bool f16_sums, bool f16_outputs);

/* Measures the vendor library's products for a case. */
vkn_status gemm_measure_vendor(struct bench *bench, const struct gemm_case *c,
                               const struct gemm_patterns *patterns, struct gemm_vendor *vendor);

/* ---- MLPs (mlp.c, mlp_reference.c) ----------------------------------------------------------- */

#define MLP_PATTERN  512u /* rows, which a batch repeats */
#define MLP_RAYS     16u  /* rays of the pattern's samples */
#define MLP_INPUTS   32u  /* features per row, of 16 levels */
#define MLP_FEATURES 2u   /* per level */

struct mlp_case {
    uint32_t width, depth, batch; /* depth: hidden layers of the density MLP */
};

/* A field without its hash grid, on the host: the pattern's rows and the MLPs' exact outputs. */
struct mlp_model {
    struct vkn_config config;
    struct field_model model;
    uint32_t density_end;     /* index of the colour MLP's first layer */
    float *weights;           /* exact in the backend's precision */
    double *weight_gradients; /* [weight]: sums over the pattern's rows */
    struct Ray rays[MLP_RAYS];
    struct Sample samples[MLP_PATTERN];
    float features[MLP_PATTERN * MLP_INPUTS];                /* [level][row][feature] */
    double feature_gradients[MLP_PATTERN * MLP_INPUTS];      /* [level][row][feature] */
    float values[MLP_PATTERN][4], gradients[MLP_PATTERN][4]; /* [row]: rgb and density */
};

/* Creates the model with values exact in a backend's precision. The caller calls mlp_free, also
 * after a failure. */
vkn_status mlp_create(const struct mlp_case *c, const struct bench_backend *backend,
                      struct mlp_model **mlp);
void mlp_free(struct mlp_model **mlp);
/* Return FLOPs and bytes per row; docs/bench.md says what is counted. */
double mlp_flops(const struct mlp_model *mlp, bool training);
double mlp_bytes(const struct mlp_model *mlp, bool training);

/* ---- hash grids (grid.c, grid_reference.c) --------------------------------------------------- */

#define GRID_SETS 4u /* sets of samples to alternate between; all use the same table */

/* A hash grid with its samples, on the host. */
struct grid {
    struct vkn_config config;
    struct field_model model;
    uint32_t samples, rays; /* per set */
    struct Ray *ray[GRID_SETS];
    struct Sample *sample[GRID_SETS];
    float *params;    /* exact in f16 */
    float *gradients; /* [level][sample][feature], exact in f16, the same for all sets */
};

/* Creates a grid with 2^log2_entries entries per level. The caller calls grid_free, also after a
 * failure. */
vkn_status grid_create(struct bench *bench, uint32_t log2_entries, struct grid *grid);
/* Frees the grid's memory. */
void grid_free(struct grid *grid);
/* Computes the features of a sample at one level. */
void grid_gather(const struct grid *grid, uint32_t set, uint32_t sample, uint32_t level,
                 double features[4]);
/* Adds the gradients of one set's samples to sums[entries * features]. */
void grid_scatter(const struct grid *grid, uint32_t set, uint32_t level, double *sums);
/* Returns the number of features of a set. */
uint64_t grid_features(const struct grid *grid);

/* ---- training steps (step.c, step_scene.c) --------------------------------------------------- */

/* Creates a scene without files: a ball with a pattern, seen from all sides. The caller closes
 * *scene. */
vkn_status step_make_scene(uint32_t views, uint32_t size, struct vkn_scene **scene);

#endif
