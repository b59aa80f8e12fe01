/* field: models of colour and density: their encodings and MLPs, the order of their parameters, the
 * passes that evaluate them, and how a device computes these. No other room knows which runs. */
#ifndef FIELD_FIELD_H
#define FIELD_FIELD_H

#include "config/config.h"
#include "base/base.h"
#include "passes/passes.h"

/* ---- models ---------------------------------------------------------------------------------- */

/* Weights [input][output], then biases. With a skip connection the MLP's inputs are read again. */
struct field_layer {
    uint32_t first;           /* index of its first weight */
    uint32_t inputs, outputs; /* as stored, padding and skip included */
    uint32_t used_inputs, used_outputs;
    uint32_t mlp;  /* its MLP, from 0 */
    uint32_t skip; /* of the inputs: so many are the MLP's own; 0: no skip connection */
    bool last;     /* of its MLP: no activation function behind it */
    bool biases;   /* behind its weights */
    float initial; /* weights begin evenly within +- this; 0: by how many there are */
};
#define FIELD_MAX_LAYERS 24u
#define FIELD_MAX_WIDTH  256u

struct field_kind;

/* Parameters: [MLPs' layers][what the kind has besides]. */
struct field_model {
    const struct field_kind *kind;
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t layer_count;
    uint32_t fused; /* the first of them, which one pass goes through; the others are passes each */
    uint32_t mlp_params;  /* floats of the layers, whose gradients workgroups sum up */
    uint32_t param_count; /* all floats */
    uint32_t activations; /* values that a sample passes through, inputs and outputs included */
    uint32_t inputs;      /* values of BIND_FEATURES for a sample */
    struct parameter_group groups[MAX_PARAMETER_GROUPS]; /* all parameters, in order */
    uint32_t group_count;
    /* Of a hash grid; 0 without one. */
    uint32_t encoded; /* its features and what of the time is behind them, padded to 16 */
    uint32_t levels, features;
    struct Level level[MAX_LEVELS];
    /* Of layers that are passes of their own, see shaders/field/layers.glsl; 0 without any. */
    struct LayerColumns flows[FIELD_MAX_LAYERS];
    uint32_t columns, first_output, color_output, deformation_layers, deformation_input,
        deformation_output;
    bool position_gradients; /* gradients go down to the first layer's inputs */
    uint32_t panel_chunks, chunk_rows, kept_rows; /* of packed weights, 512 values; Config */
};

/* A model that can be chosen. Recipes belong to the step and to the renderer alike. */
struct field_kind {
    enum vkn_model name;
    bool precisions; /* offers fp16 and matrices; else fp32 alone */
    /* Keys that its parameters' number and order follow from, none of them zero in an effective
     * configuration, then NULL; --init takes over what was left open. NULL: there are none. */
    const char *const *shape;
    /* Lays the MLPs out, and what comes behind them but for a grid and a deformation; of a grid it
     * sets levels, features and inputs. VKN_BAD_INPUT names the setting that does not fit. */
    vkn_status (*create)(const struct vkn_config *config, struct field_model *model);
    /* Fills its part of the run's constants. */
    void (*configure)(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization);
    /* Random initial parameters, float[param_count], from the configuration's seed; NULL: weights
     * of layers, then within +-grid.initial. */
    void (*initialize)(const struct vkn_config *config, const struct field_model *model,
                       float *params);
    struct pass_list forward; /* from BIND_SAMPLES to BIND_FIELD */
    /* Optional, the same in two: densities of all samples, with colours of zero; then colours of
     * those that find_visible lists in BIND_LIVE. */
    struct pass_list densities, colors;
    struct pass_list backward;  /* from BIND_FIELD_GRADIENTS to BIND_GRADIENTS */
    struct pass_list occupancy; /* decays the occupancy grid's cells and raises those of its share
                                 */
    bool sums_cells; /* and leaves the values' sums by workgroup, where the share is all of them and
                        nothing is deformed */
    struct pass_list normals; /* optional: from BIND_SAMPLES to BIND_NORMALS */
    /* Optional: behind `backward`, from gradients of features to BIND_INPUT_GRADIENTS by position.
     * Those by direction are there where `backward` ran with SPEC_INPUT_GRADIENTS. */
    struct pass_list input_gradients;
};

/* Lists the passes of a recipe that belong to what the model is made of (PASS_OF_FIELD), in order;
 * returns how many there are. */
#define FIELD_MAX_PASSES 24u
size_t field_list_passes(const struct field_model *model, const struct pass_list *pass_list,
                         const struct pass *passes[FIELD_MAX_PASSES]);
/* Returns the first of them that has the variant; NULL: none has. */
const struct pass *field_find_pass(const struct field_model *model,
                                   const struct pass_list *pass_list, enum field_variant variant);
/* Returns which of PASS_OF_FIELD hold. */
unsigned field_pass_use(const struct field_model *model);

struct vkn_config field_proposal_config(const struct vkn_config *config); /* a density alone */
/* What backends are tried with; vkn_field_check where that is still to do, or shall be done again.
 */
struct vkn_config field_trial_config(const struct vkn_config *config);
vkn_status field_check_glsl(struct gpu_device *device, const struct vkn_config *config, bool again);
/* Registers a checkpoint's GLSL (NULL: none), which must be trusted and the one that `config`
 * names. */
vkn_status field_register_stored(const char *path, const char *text,
                                 const struct vkn_config *config);
struct vkn_config field_external_config(const struct vkn_config *config); /* evaluated by the caller
                                                                           */
/* Lists the keys that its shape, and its deformation's, follows from; returns how many there are.
 */
#define FIELD_MAX_KEYS 32u
size_t field_shape_keys(const struct vkn_config *config, const char *keys[FIELD_MAX_KEYS]);
/* Makes another kind known to this process; for tests. */
void field_add_kind(const struct field_kind *kind);

/* Cuts gradients into at most so many pieces of whole levels of the grid, of about as many numbers
 * each; returns how many there are. Without a grid: 1. */
uint32_t field_split_gradients(const struct field_model *model, uint32_t buckets,
                               struct Config *constants);

/* Of an effective configuration; without its deformation, as backends are tried. VKN_BAD_INPUT
 * names what does not fit. */
vkn_status field_model_create(const struct vkn_config *config, struct field_model *model);
vkn_status field_model_create_canonical(const struct vkn_config *config, struct field_model *model);
void field_configure(const struct vkn_config *config, const struct field_model *model,
                     struct Config *constants, struct gpu_constants *specialization);
void field_initialize(const struct vkn_config *config, const struct field_model *model,
                      float *params);
/* Where a weight of the MLPs lies when each layer is stored [output][input]. */
uint32_t field_transposed_index(const struct field_model *model, uint32_t weight);
/* The model's part of what passes repeat over. */
void field_repeats(const struct field_model *model, struct repeats *repeats);
/* Adds what buffers need for the model. */
void field_size_buffers(const struct field_model *model, struct buffer_counts *counts);

/* ---- backends: how the field computes on a device, and which programs do it ------------------ */

#define FIELD_SHADER_NAME 64u

/* Chosen by measuring. None changes what is computed, but for the order of gradients' sums. */
/* clang-format off */
enum field_tunable {
    FIELD_TILES_AT_ONCE, FIELD_HOLD_SUMS, FIELD_OWNED_ROWS,
    FIELD_BACKWARD_ROWS, FIELD_BACKWARD_SIZE, FIELD_BACKWARD_GROUPS,
    FIELD_FORWARD_ROWS, FIELD_FORWARD_SIZE, FIELD_FORWARD_GROUPS,
    FIELD_TUNABLES
};
/* clang-format on */
struct field_tuning {
    uint32_t values[FIELD_TUNABLES]; /* 0 where the backend has no such thing */
};

/* A subgroup's part of a layer's product in matrices: blocks of 16 rows, panels of 16 columns. */
struct field_product {
    uint32_t blocks, panels;
};
struct field_product field_product_of(const struct gpu_capabilities *device,
                                      uint32_t subgroup_size);

struct field_backend {
    enum vkn_precision precision; /* never AUTO */
    enum vkn_gradient_sums sums;  /* never DEFAULT */
    bool f16_sums;                /* of the grid, as the optimiser reads them: f16, two at a time */
    const char *scatter_suffix;   /* suffix of scatter_gradients */
    uint32_t sums_size;           /* its workgroups' size; 0: that of the other passes */
    struct gpu_matrix_shape shape; /* COOPMAT */
    bool f16;                      /* parameters and activations are stored in f16 */
    bool copies;            /* the optimiser keeps f16 copies of the parameters, in their order */
    bool f16_accumulate;    /* COOPMAT: f16 instead of f32 */
    uint32_t rounded;       /* ROUND_*, F32_PRODUCTS, see SPEC_ROUNDED */
    bool conversions;       /* COOPMAT: through VK_NV_cooperative_matrix2 */
    bool cpu_kernels;       /* gpu_cpu_kernels */
    bool hold_sums;         /* see SPEC_HOLD_SUMS */
    bool rows_in_memory;    /* backward's rows do not fit into shared memory */
    uint32_t subgroup_size; /* of the programs with MLPs */
    uint32_t owned_rows;    /* CPU device's matrices: see SPEC_OWNED_ROWS */
    uint32_t forward_row, backward_row; /* tiles: values from a row to the next, SPEC_ROW_STRIDE */
    struct field_product product;       /* COOPMAT */
    uint32_t transposed;                /* GPUs' matrices: see SPEC_TRANSPOSED */
    uint32_t tiles_at_once;             /* CPU device's FP32, FP16: see SPEC_GRADIENT_TILES */
    uint32_t forward_rows, backward_rows; /* samples of a tile of field_forward, field_backward */
    uint32_t forward_size, backward_size; /* invocations of a workgroup: as many or a multiple */
    uint32_t forward_groups, backward_groups, layer_splits; /* most workgroups; see Config */
    uint64_t scratch_bytes; /* of BIND_SCRATCH for one workgroup of field_backward */
    bool tuned;             /* not as field_backend_create left it */
};

/* Chooses everything but the precision, which must not be AUTO. VKN_BAD_INPUT names the setting
 * that the device cannot do, and what it can. */
vkn_status field_backend_create(const struct vkn_config *config, const struct field_model *model,
                                const struct gpu_capabilities *device,
                                struct field_backend *backend);
struct field_tuning field_backend_tuning(const struct field_backend *backend);
/* Sets all tunables. False, and the backend stays as it is, when the device has no room for it. */
bool field_backend_tune(const struct field_tuning *tuning, const struct field_model *model,
                        const struct gpu_capabilities *device, struct field_backend *backend);
/* Adds what buffers need for the backend. */
void field_backend_size_buffers(const struct field_backend *backend,
                                const struct field_model *model, struct buffer_counts *counts);
/* Where panels lie behind copies of parameters, and slices of layers beside fused ones. */
void field_backend_place_panels(const struct field_backend *backend,
                                const struct field_model *model, struct Config *constants);
/* The program of `pass`. */
void field_backend_shader_name(const struct field_backend *backend, const char *pass,
                               enum field_variant variant, char name[FIELD_SHADER_NAME]);
/* Fills its part of the run's constants. */
void field_backend_configure(const struct field_backend *backend,
                             struct gpu_constants *specialization);
/* Creates the program of `pass`: of `local_size` invocations, but of a tile's for FIELD_FORWARD and
 * FIELD_BACKWARD. The caller destroys *program. */
vkn_status field_backend_create_pipeline(struct gpu_device *device,
                                         const struct field_backend *backend, const char *pass,
                                         enum field_variant variant, uint32_t local_size,
                                         const struct gpu_constants *constants,
                                         struct gpu_pipeline **pipeline);
/* Programs of several passes at once, as gpu_pipelines_create does it. */
struct field_pass_request {
    const char *pass;
    struct gpu_pipeline **pipeline;
    enum field_variant variant;
};
vkn_status field_backend_create_pipelines(struct gpu_device *device,
                                          const struct field_backend *backend,
                                          const struct field_pass_request *requests, size_t count,
                                          uint32_t local_size,
                                          const struct gpu_constants *constants);
/* The constants of one program: rows of forward and backward differ. */
void field_backend_specialize(const struct field_backend *backend, enum field_variant variant,
                              struct gpu_constants *specialization);
/* As the configuration names the matrices' shape; DEFAULT without matrices. */
enum vkn_matrix_shape field_backend_shape(const struct field_backend *backend);
/* "fp32", "fp16" or "coopmat 16x16x16 (f32 accumulation)", and whether with conversions. */
const char *field_backend_describe(const struct field_backend *backend,
                                   char text[FIELD_SHADER_NAME]);

/* ---- policy ---------------------------------------------------------------------------------- */
/* What each operation of training is stored and computed in, by precision. */

enum field_operation {
    FIELD_PARAMETERS,    /* hash table and MLP weights, as the step reads them */
    FIELD_INTERPOLATION, /* of the grid's features */
    FIELD_ACTIVATIONS,
    FIELD_PRODUCTS, /* of the MLPs */
    FIELD_SUMS,
    FIELD_ACTIVATION_GRADIENTS,
    FIELD_WEIGHT_SUMS, /* of the weights' gradients */
    FIELD_GRID_SUMS,
    FIELD_COMPOSITING, /* transmittance; colour and depth of rays */
    FIELD_LOSS,        /* sigmoid, density's exp, loss */
    FIELD_MASTERS,
    FIELD_MOMENTS,
    FIELD_UPDATE, /* moving average, gradient norm */
    FIELD_OPERATIONS
};

/* Whether 16 bits are involved by default; the table decides it for the code as well. `precision`
 * is not AUTO. */
bool field_is_f16(enum field_operation operation, enum vkn_precision precision);
/* "MLP products"; "f16 matrices" as the table has it; the same as a backend does it. */
const char *field_operation_name(enum field_operation operation);
/* The setting that chooses it; NULL: none does. */
const char *field_operation_key(enum field_operation operation);
const char *field_policy(enum field_operation operation, enum vkn_precision precision);
const char *field_policy_of(enum field_operation operation, const struct field_backend *backend);
/* "policy.master_parameters=f16, policy.moments=f16": what is not as the precision has it by
 * default; mostly nothing. */
#define FIELD_POLICY_TEXT 224u
const char *field_policy_describe(const struct field_backend *backend,
                                  char text[FIELD_POLICY_TEXT]);
/* Leaves what follows from the precision to it, for a field that is computed in another. */
void field_policy_reset(struct vkn_config *config);

#endif
