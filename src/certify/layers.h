/* Declares what the tests of layer-by-layer MLPs share: inputs, rows of chunks in device memory,
 * and comparisons of single layers. */
#ifndef CERTIFY_LAYERS_H
#define CERTIFY_LAYERS_H

#include "certify/backends.h"
#include "field/field.h"

/* ---- inputs (layers_inputs.c) ---------------------------------------------------------------- */

/* A model and the rows of its chunks. */
struct model_case {
    uint32_t width, layers, geometry, color_width, color_layers, skip_layer;
    uint32_t position_octaves, direction_octaves, aabb_scale, chunk, samples;
    bool contracted, refined;
    enum vkn_density_activation activation;
    bool no_subnormals; /* as on a device that flushes subnormal f16 numbers */
};

/* Whether activations of all samples are recomputed or kept. With DENSITIES_FIRST the colour pass
 * leaves live samples' activations; with several chunks they are recomputed. */
enum kept { RECOMPUTED, KEPT, DENSITIES_FIRST };

/* Random rays with samples, parameters, and gradients by the samples' values. */
struct inputs {
    struct Ray rays[40];
    struct Sample *samples;
    float *params;
    uint32_t count;
    double (*positions)[3], (*directions)[3];
    float (*gradients)[4]; /* by rgb and density; zero for samples without a gradient */
    uint32_t *live;        /* samples with a gradient, in random order */
    uint32_t live_count;
};

/* Returns a fixture for the model with the backend. */
struct fixture layers_fixture(struct gpu_device *device, const struct backend_case *backend,
                              const struct model_case *model, enum kept kept, bool deterministic);

/* Lists the device's backends whose products differ. */
size_t layers_list_products(struct gpu_device *device, struct backend_case cases[MAX_CASES]);

/* Spacing of f16 subnormals. */
#define LEAST_STEP 0x1p-24

/* Returns the relative rounding error of a stored number. */
double layers_stored_tolerance(const struct fixture *fixture);

/* Returns whether activations and their gradients are rounded to bf16. */
bool layers_is_bf16(const struct fixture *fixture);

/* Runs a pass of a list for one chunk in `groups` workgroups. */
void layers_run(struct fixture *fixture, const struct pass_list *pass_list, const char *name,
                uint32_t chunk, uint32_t groups);

/* Makes random rays, samples, parameters and gradients. */
struct inputs layers_inputs_create(const struct fixture *fixture, uint32_t count, uint32_t seed);

/* Frees the arrays. */
void layers_inputs_destroy(struct inputs *inputs);

/* Uploads the state of a step, rays, samples, parameters and live samples. */
void layers_put_inputs(struct fixture *fixture, const struct inputs *inputs);

/* ---- device memory (layers_rows.c) ----------------------------------------------------------- */

/* Rows of a chunk, [row][column], of activations or gradients. */
struct rows {
    uint32_t binding, count, padded; /* count, padded: numbers of rows */
    uint32_t block;                  /* first block of 16 rows */
    uint32_t first, end;             /* columns [first, end) must have numbers */
    bool panels;                     /* also packed in panels */
    double *values;
};

/* Poisons the rows of a chunk in a buffer. */
void layers_poison_chunk(struct fixture *fixture, uint32_t binding);

/* Returns the first block of 16 rows where a chunk's activations are kept. */
uint32_t layers_kept_block(const struct fixture *fixture, uint32_t chunk);

/* Returns the number of rows of a chunk, of `all` rows. */
uint32_t layers_rows_of(const struct fixture *fixture, uint32_t all, uint32_t chunk);

/* Reads rows from a buffer that was poisoned: rows up to a multiple of 32 have numbers in the valid
 * columns, all else stays poisoned. */
struct rows layers_read_rows(struct fixture *fixture, struct rows rows);

/* Returns the numbers of a row. */
const double *layers_row_of(const struct fixture *fixture, const struct rows *rows, uint32_t row);

/* Returns the column of a layer's input. */
uint32_t layers_source_of(const struct LayerColumns *io, uint32_t input);

/* Returns a weight as products use it. */
double layers_weight_of(const struct fixture *fixture, const struct inputs *inputs, uint32_t layer,
                        uint32_t input, uint32_t output);

/* Returns the number of outputs that read a layer's own columns, those of a skip layer included. */
uint32_t layers_consumer_count(const struct fixture *fixture, uint32_t n);

/* Returns the weight to an output of layers_consumer_count(); outputs of the skip layer come last.
 */
double layers_consumer_weight(const struct fixture *fixture, const struct inputs *inputs,
                              uint32_t n, uint32_t input, uint32_t output);

/* Returns the column of the gradient of an output of layers_consumer_count(). */
uint32_t layers_consumer_column(const struct fixture *fixture, uint32_t n, uint32_t output);

/* Checks the weights that pack_weights has packed in panels, each once. */
void layers_check_packed(struct fixture *fixture, const struct inputs *inputs);

/* ---- comparison (layers_check.c) ------------------------------------------------------------- */

/* Sums over all chunks of weight gradients, and of their terms' sizes. */
struct sums {
    double *values, *sizes; /* as in params */
};

/* Checks the encoded position and direction in a row. */
void layers_check_encoded(const struct fixture *fixture, const struct inputs *inputs,
                          const struct rows *rows, uint32_t row, uint32_t sample);

/* Checks the outputs of layer `n` in all rows. */
void layers_check_forward(const struct fixture *fixture, const struct inputs *inputs,
                          const struct rows *rows, uint32_t n);

/* Checks gradients of the layer's own inputs and, with refined cameras, of the direction's. */
void layers_check_backward(const struct fixture *fixture, const struct inputs *inputs,
                           const struct rows *values, const struct rows *rows, uint32_t n);

/* Adds the weight gradients of a chunk. */
void layers_add_weights(const struct fixture *fixture, const struct rows *values,
                        const struct rows *gradients, struct sums *sums);

/* Checks weight gradients, which are f32 sums in all precisions, but for eight consecutive products
 * of f16 rows. */
void layers_check_weights(const struct fixture *fixture, const float *device,
                          const struct sums *sums, uint32_t rows);

/* Checks values of samples. Only samples in `colored` have a colour; NULL: all samples. */
void layers_check_values(const struct fixture *fixture, const struct inputs *inputs,
                         const bool *colored, const float (*device)[4]);

/* Checks a chunk, or that nothing is written for one beyond the last. */
void layers_check_sample_chunk(struct fixture *fixture, const struct inputs *inputs,
                               uint32_t chunk);

/* Compares gradients of all layers with the reference. Weights of padding columns have none. */
void layers_check_all_gradients(const struct fixture *fixture, const struct inputs *inputs,
                                const float *device);

#endif
