/* Declares the models of density and colour: encodings, MLPs, layout of the parameters, passes, and
 * the backends that compute them. No other module depends on which model runs. */
#ifndef FIELD_FIELD_H
#define FIELD_FIELD_H

#include "config/config.h"
#include "base/base.h"
#include "passes/passes.h"

/* ---- models ---------------------------------------------------------------------------------- */

/* A layer of an MLP: weights [input][output], then biases [output]. A layer with a skip connection
 * also reads the inputs of its MLP. */
struct field_layer {
    uint32_t first;                     /* index of its first weight among the parameters */
    uint32_t inputs, outputs;           /* as stored, with padding and skip connection */
    uint32_t used_inputs, used_outputs; /* without padding */
    uint32_t mlp;                       /* number of its MLP, from 0 */
    uint32_t skip;                      /* inputs that come from the skip connection; 0: none */
    bool last; /* the last layer of its MLP, which has no activation function */
    bool biases;
    float initial; /* initial weights are uniform in +-initial; 0: Xavier */
};
#define FIELD_MAX_LAYERS 24u
#define FIELD_MAX_WIDTH  256u

struct field_kind;

/* A model and the layout of its parameters: [layers of the MLPs][hash grid or other encoding]. */
struct field_model {
    const struct field_kind *kind;
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t layer_count;
    uint32_t fused;       /* one pass computes the first `fused` layers; others are passes */
    uint32_t mlp_params;  /* parameters of the layers, whose gradients workgroups sum up */
    uint32_t param_count; /* all parameters, as f32 */
    uint32_t activations; /* values per sample of the fused layers, inputs and outputs included */
    uint32_t inputs;      /* values per sample in BIND_FEATURES */
    struct parameter_group groups[MAX_PARAMETER_GROUPS]; /* cover all parameters, in order */
    uint32_t group_count;
    /* Hash grid; 0 without one. */
    uint32_t encoded; /* grid features and time inputs, padded to a multiple of 16 */
    uint32_t levels, features;
    struct Level level[MAX_LEVELS];
    /* Unfused layers (shaders/field/layers.glsl), and columns of a row of activations; 0 without
     * unfused layers. */
    struct LayerColumns layer_columns[FIELD_MAX_LAYERS];
    uint32_t columns, first_output, color_output, deformation_layers, deformation_input,
        deformation_output;
    bool refined;            /* scene.refine: the backward pass also computes the gradients of
                                positions and directions */
    bool position_gradients; /* the backward pass also computes the gradients of the first layer's
                                inputs */
    /* Chunks of 512 packed weights; rows of a chunk of activations and kept rows, see Config. */
    uint32_t panel_chunks, chunk_rows, kept_rows;
};

/* A kind of model. The step and the renderer use the same lists of passes. */
struct field_kind {
    enum vkn_model name;
    bool precisions; /* offers fp16 and coopmat; otherwise fp32 only */
    /* Keys that determine the number and order of the parameters, then NULL. --init copies the
     * settings that the configuration leaves open. No such setting is zero in an effective
     * configuration. NULL: no such keys. */
    const char *const *shape;
    /* Lays out the MLPs and all parameters except a hash grid's and a deformation's; of a grid it
     * sets levels, features and inputs. VKN_BAD_INPUT names the invalid setting. */
    vkn_status (*create)(const struct vkn_config *config, struct field_model *model);
    /* Sets the kind's constants of a run. */
    void (*configure)(const struct vkn_config *config, const struct field_model *model,
                      struct Config *constants, struct gpu_constants *specialization);
    /* Draws initial parameters, float[param_count], from the configuration's seed. NULL: layers as
     * field_random_weights, other parameters uniform in +-grid.initial. */
    void (*initialize)(const struct vkn_config *config, const struct field_model *model,
                       float *params);
    struct pass_list forward; /* from BIND_SAMPLES to BIND_FIELD */
    /* Optional, `forward` in two parts: densities of all samples, with colours of zero; then the
     * colours of the samples that find_visible lists in BIND_LIVE. */
    struct pass_list densities, colors;
    struct pass_list backward;  /* from BIND_FIELD_GRADIENTS to BIND_GRADIENTS */
    struct pass_list occupancy; /* decays occupancy cells, and raises this rank's share of them */
    bool sums_cells; /* `occupancy` also writes partial sums of the cells, unless the cells are
                        shared among ranks or the field is deformed */
    struct pass_list normals; /* optional: from BIND_SAMPLES to BIND_NORMALS */
    /* Runs after `backward` with scene.refine: from gradients of features to gradients of positions
     * in BIND_INPUT_GRADIENTS. `backward` itself writes the gradients of directions there and, if
     * the model has no grid or has a deformation, the gradients of positions. An empty list:
     * scene.refine is refused. */
    struct pass_list input_gradients;
};

/* Lists the passes whose PASS_OF_FIELD conditions the model meets, in the order of `pass_list`.
 * Returns the number of passes. */
#define FIELD_MAX_PASSES 24u
size_t field_list_passes(const struct field_model *model, const struct pass_list *pass_list,
                         const struct pass *passes[FIELD_MAX_PASSES]);
/* Returns the first pass of field_list_passes that has the variant, or NULL. */
const struct pass *field_find_pass(const struct field_model *model,
                                   const struct pass_list *pass_list, enum field_variant variant);
/* Returns the PASS_OF_FIELD conditions that the model meets. */
unsigned field_pass_use(const struct field_model *model);

/* Returns the configuration of the proposal: a model of density only. */
struct vkn_config field_proposal_config(const struct vkn_config *config);
/* Returns the configuration that backends are tried with: for a field in GLSL, a hash grid and its
 * MLPs; else `config`. */
struct vkn_config field_trial_config(const struct vkn_config *config);
/* Checks the configuration's field in GLSL (vkn_field_check); without `again`, only if it has not
 * passed the check before. VKN_OK for other models. */
vkn_status field_check_glsl(struct gpu_device *device, const struct vkn_config *config, bool again);
/* Registers the GLSL of a checkpoint. VKN_BAD_INPUT when `text` is NULL, is not trusted, or is not
 * the field that `config` names. */
vkn_status field_register_stored(const char *path, const char *text,
                                 const struct vkn_config *config);
/* Returns the configuration of a field that the caller evaluates. */
struct vkn_config field_external_config(const struct vkn_config *config);
/* Lists the keys that determine the parameters of model and deformation. Returns their number. */
#define FIELD_MAX_KEYS 32u
size_t field_shape_keys(const struct vkn_config *config, const char *keys[FIELD_MAX_KEYS]);
/* Registers a further kind in this process; for tests. */
void field_add_kind(const struct field_kind *kind);

/* Splits the gradients into at most `buckets` buckets of whole hash grid levels and about equal
 * size. Returns the number of buckets; 1 without a grid. */
uint32_t field_split_gradients(const struct field_model *model, uint32_t buckets,
                               struct Config *constants);

/* Creates the model of an effective configuration. VKN_BAD_INPUT names the invalid setting. */
vkn_status field_model_create(const struct vkn_config *config, struct field_model *model);
/* Creates the model without its deformation and without gradients that only scene.refine needs, for
 * trials of backends. */
vkn_status field_model_create_canonical(const struct vkn_config *config, struct field_model *model);
/* Sets the field's constants of a run. */
void field_configure(const struct vkn_config *config, const struct field_model *model,
                     struct Config *constants, struct gpu_constants *specialization);
/* Draws the initial parameters, float[param_count]. */
void field_initialize(const struct vkn_config *config, const struct field_model *model,
                      float *params);
/* Returns the index of a weight of the MLPs when each layer is stored as [output][input]. */
uint32_t field_transposed_index(const struct field_model *model, uint32_t weight);
/* Sets the model's members of `repeats`. */
void field_repeats(const struct field_model *model, struct repeats *repeats);
/* Sets the model's members of `counts`. */
void field_size_buffers(const struct field_model *model, struct buffer_counts *counts);

/* ---- backends: precision, matrix shape, tiles and shaders of a field on a device ------------- */

#define FIELD_SHADER_NAME 64u /* bytes of a shader's name or a backend's description */

/* Parameters that the tuner measures. They change no result except the order in which gradients are
 * added up. */
/* clang-format off */
enum field_tunable {
    FIELD_TILES_AT_ONCE, FIELD_HOLD_SUMS, FIELD_OWNED_ROWS,
    FIELD_BACKWARD_ROWS, FIELD_BACKWARD_SIZE, FIELD_BACKWARD_GROUPS,
    FIELD_FORWARD_ROWS, FIELD_FORWARD_SIZE, FIELD_FORWARD_GROUPS, FIELD_SAMPLE_LANES,
    FIELD_TUNABLES
};
/* clang-format on */
struct field_tuning {
    uint32_t values[FIELD_TUNABLES]; /* 0 when the backend does not have the parameter */
};

/* The part of a layer's matrix product that one subgroup computes: blocks of 16 rows, panels of 16
 * columns. */
struct field_product {
    uint32_t blocks, panels;
};
/* Returns the part for a device and a subgroup size. */
struct field_product field_product_of(const struct gpu_capabilities *device,
                                      uint32_t subgroup_size);

/* How a field is computed on a device. */
struct field_backend {
    enum vkn_precision precision;  /* never AUTO */
    enum vkn_gradient_sums sums;   /* never DEFAULT: accumulator of the hash grid's gradients */
    bool f16_sums;                 /* the optimiser reads the grid's gradients as pairs of f16 */
    const char *scatter_suffix;    /* suffix of scatter_gradients */
    uint32_t sums_size;            /* workgroup size of scatter_gradients; 0: as the other passes */
    uint32_t sample_lanes;         /* see SPEC_SAMPLE_LANES */
    struct gpu_matrix_shape shape; /* coopmat */
    bool f16;                      /* parameters and activations are stored as f16 */
    bool copies;         /* the optimiser keeps f16 copies of the parameters, in the same order */
    bool f16_accumulate; /* coopmat: accumulates in f16 instead of f32 */
    uint32_t rounded;    /* ROUND_*, F32_PRODUCTS, see SPEC_ROUNDED */
    bool conversions;    /* coopmat: converts matrices by VK_NV_cooperative_matrix2 */
    bool cpu_kernels;    /* gpu_cpu_kernels of the device */
    bool hold_sums;      /* see SPEC_HOLD_SUMS */
    bool rows_in_memory; /* tiles of field_backward lie in device memory */
    uint32_t subgroup_size;                   /* of the shaders with MLPs */
    uint32_t owned_rows;                      /* coopmat on CPU devices: see SPEC_OWNED_ROWS */
    uint32_t forward_stride, backward_stride; /* row of a tile in values, see SPEC_ROW_STRIDE */
    struct field_product product;             /* coopmat */
    uint32_t transposed;                      /* coopmat on GPUs: see SPEC_TRANSPOSED */
    uint32_t tiles_at_once;               /* fp32, fp16 on CPU devices: see SPEC_GRADIENT_TILES */
    uint32_t forward_rows, backward_rows; /* samples of a tile of field_forward, field_backward */
    uint32_t forward_size, backward_size; /* invocations of a workgroup, a multiple of the rows */
    uint32_t forward_groups, backward_groups, layer_splits; /* most workgroups; see Config */
    uint64_t scratch_bytes; /* of BIND_SCRATCH for one workgroup of field_backward */
    bool tuned;             /* changed by field_backend_tune */
};

/* Creates the backend of an effective configuration, whose precision must not be AUTO.
 * VKN_BAD_INPUT names the setting that the device does not support, and what it supports. */
vkn_status field_backend_create(const struct vkn_config *config, const struct field_model *model,
                                const struct gpu_capabilities *device,
                                struct field_backend *backend);
/* Returns the current values of all tunable parameters. */
struct field_tuning field_backend_tuning(const struct field_backend *backend);
/* Sets all tunable parameters. Returns false and leaves the backend as it is when the values are
 * invalid or do not fit the device. */
bool field_backend_tune(const struct field_tuning *tuning, const struct field_model *model,
                        const struct gpu_capabilities *device, struct field_backend *backend);
/* Sets the backend's members of `counts`. */
void field_backend_size_buffers(const struct field_backend *backend,
                                const struct field_model *model, struct buffer_counts *counts);
/* Sets the offsets of packed weights in BIND_F16_PARAMS, and Config.layer_splits. */
void field_backend_place_panels(const struct field_backend *backend,
                                const struct field_model *model, struct Config *constants);
/* Writes the name of the pass's shader, with the variant's suffix. */
void field_backend_shader_name(const struct field_backend *backend, const char *pass,
                               enum field_variant variant, char name[FIELD_SHADER_NAME]);
/* Sets the backend's specialisation constants that all shaders share. */
void field_backend_configure(const struct field_backend *backend,
                             struct gpu_constants *specialization);
/* Creates the pipeline of `pass`. Its workgroups have `local_size` invocations, unless the variant
 * has its own size (tiles, products, accumulators). The caller destroys *pipeline. */
vkn_status field_backend_create_pipeline(struct gpu_device *device,
                                         const struct field_backend *backend, const char *pass,
                                         enum field_variant variant, uint32_t local_size,
                                         const struct gpu_constants *constants,
                                         struct gpu_pipeline **pipeline);
/* A pass whose pipeline is to be created. */
struct field_pass_request {
    const char *pass;
    struct gpu_pipeline **pipeline;
    enum field_variant variant;
};
/* Creates the pipelines of several passes in parallel, see gpu_pipelines_create. */
vkn_status field_backend_create_pipelines(struct gpu_device *device,
                                          const struct field_backend *backend,
                                          const struct field_pass_request *requests, size_t count,
                                          uint32_t local_size,
                                          const struct gpu_constants *constants);
/* Sets the specialisation constants that depend on the variant: the tile's rows and row stride. */
void field_backend_specialize(const struct field_backend *backend, enum field_variant variant,
                              struct gpu_constants *specialization);
/* Returns the matrix shape as a value of the setting matrix.shape; DEFAULT without matrices. */
enum vkn_matrix_shape field_backend_shape(const struct field_backend *backend);
/* Writes "fp32", "fp16" or "coopmat 16x16x16 (f32 accumulation, conversions)"; returns `text`. */
const char *field_backend_describe(const struct field_backend *backend,
                                   char text[FIELD_SHADER_NAME]);

/* ---- policy ---------------------------------------------------------------------------------- */

/* An operation of training, whose number format depends on the precision and on a setting. */
enum field_operation {
    FIELD_PARAMETERS,    /* hash grid entries and MLP weights, as the step reads them */
    FIELD_INTERPOLATION, /* of hash grid features */
    FIELD_ACTIVATIONS,   /* stored activations */
    FIELD_PRODUCTS,      /* factors of the MLPs' matrix products */
    FIELD_SUMS,          /* accumulation of the MLPs' matrix products */
    FIELD_ACTIVATION_GRADIENTS,
    FIELD_WEIGHT_SUMS, /* accumulation of the weights' gradients */
    FIELD_GRID_SUMS,   /* accumulation of the hash grid's gradients */
    FIELD_COMPOSITING, /* transmittance; colour and depth of rays */
    FIELD_LOSS,        /* sigmoid, exponential of the density, loss */
    FIELD_MASTERS,     /* master parameters */
    FIELD_MOMENTS,     /* moments of the optimiser */
    FIELD_UPDATE,      /* moving average, gradient norm */
    FIELD_OPERATIONS
};

/* Returns whether the operation uses f16 by default. `precision` must not be AUTO. */
bool field_is_f16(enum field_operation operation, enum vkn_precision precision);
/* Returns the operation's name, as "MLP products". */
const char *field_operation_name(enum field_operation operation);
/* Returns the key of the operation's setting; NULL when no setting changes it. */
const char *field_operation_key(enum field_operation operation);
/* Returns the default format of a precision, as "f16 matrices". */
const char *field_policy(enum field_operation operation, enum vkn_precision precision);
/* Returns the format that the backend uses. */
const char *field_policy_of(enum field_operation operation, const struct field_backend *backend);
/* Writes the settings that differ from the precision's defaults, as "policy.master_parameters=f16,
 * policy.moments=f16"; mostly "". Returns `text`. */
#define FIELD_POLICY_TEXT 224u
const char *field_policy_describe(const struct field_backend *backend,
                                  char text[FIELD_POLICY_TEXT]);
/* Resets the policy settings that depend on the precision to their defaults, before the precision
 * is changed. */
void field_policy_reset(struct vkn_config *config);

#endif
