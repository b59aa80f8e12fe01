/* Declares what the kinds of models share: MLP layout, encodings, panels, initial parameters. */
#ifndef FIELD_INTERNAL_H
#define FIELD_INTERNAL_H

#include "field/field.h"

#define FIELD_PAD(n) (((n) + 15u) / 16u * 16u) /* rounds up to whole matrix tiles */

extern const struct field_kind field_ngp, field_vanilla, field_layered, field_proposal,
    field_external;

/* Models of a proposal and of an external field, which the setting `model` cannot name. */
#define FIELD_MODEL_PROPOSAL ((enum vkn_model)1000)
#define FIELD_MODEL_EXTERNAL ((enum vkn_model)1001)

/* An MLP to be added to a model. */
struct field_mlp {
    uint32_t inputs, used_inputs; /* as stored; without padding */
    uint32_t width, hidden;       /* hidden layers: width, number */
    uint32_t outputs, used_outputs;
    uint32_t skip_at; /* the hidden layer with a skip connection, from 1; 0: none */
    bool biases;
    float initial; /* initial weights of the last layer are uniform in +-initial; 0: Xavier */
};
/* Appends the MLP's layers to the model. VKN_BAD_INPUT: too many layers, or a layer is too wide. */
vkn_status field_add_mlp(struct field_model *model, const struct field_mlp *mlp);

/* Returns the number of layers before the deformation's. */
static inline uint32_t field_first_deformation(const struct field_model *model)
{
    return model->layer_count - model->deformation_layers;
}
/* Return the encodings of position and direction of a layered model, and the octaves of the
 * frequency encodings; 0 octaves: the vector itself, or another encoding. */
enum vkn_position_encoding field_position(const struct vkn_config *config);
uint32_t field_position_octaves(const struct vkn_config *config);
enum vkn_direction_encoding field_direction(const struct vkn_config *config);
uint32_t field_direction_octaves(const struct vkn_config *config);
/* Returns whether a deformation precedes the field. */
bool field_is_deformed(const struct vkn_config *config);
/* Inputs of an encoded time: the time itself, then sine and cosine of each octave. */
#define FIELD_TIME_INPUTS(config) (1 + 2 * (config)->dynamic.time_octaves)
/* Returns the time inputs of the canonical field; 0 unless dynamic.time_features=on. */
uint32_t field_time_inputs(const struct vkn_config *config);
/* Returns the first parameter of the unfused layers. */
uint32_t field_first_unfused(const struct field_model *model);
/* Columns of a chunk, see shaders/field/blocks.glsl. */
#define FIELD_COLUMNS 32u
/* Rounds up to whole chunks. */
uint32_t field_pad_columns(uint32_t columns);
/* Appends a layer's panels to the model's: the layer's weights and biases, then the transposed
 * weights of the inputs that have gradients (LayerColumns.gradient_count). */
void field_place_panels(struct field_model *model, uint32_t layer);
/* Returns the number of output gradients from which the gradients of the layer's first inputs are
 * computed: the layer's outputs and, if a later layer reads these inputs too, its outputs. */
uint32_t field_gradient_outputs(const struct field_model *model, uint32_t layer);
#define FIELD_RAY_BYTES 24.0 /* bytes of a ray's origin and direction */
/* Return the bytes of an activation of unfused layers, and of the panels of layers [from, end). */
static inline double field_value_bytes(const struct cost_model *m)
{
    return m->backend->f16 ? 2 : 4;
}
static inline double field_panel_bytes(const struct cost_model *m, uint32_t from, uint32_t end)
{
    const struct field_model *model = m->model;
    uint32_t end_chunk =
        end < model->layer_count ? model->layer_columns[end].panels : model->panel_chunks;
    return (double)(end_chunk - model->layer_columns[from].panels) * 512 * field_value_bytes(m);
}
/* Returns the number of partial sums of each weight gradient of unfused layers. */
static inline double field_layer_splits(const struct cost_model *m)
{
    uint32_t splits = m->constants->layer_splits;
    return splits > 0 ? splits : m->constants->backward_groups;
}
/* Returns VKN_BAD_INPUT with the key and the message unless `good`. */
vkn_status field_check(bool good, const char *key, const char *message);
/* Returns the state of the random number generator for a run's initial parameters. */
uint64_t field_random_begin(const struct vkn_config *config);
/* Returns the next random number, uniform in [-1, 1). */
float field_random(uint64_t *state);
/* Draws the weights of all layers: uniform in +-layer.initial, else Xavier uniform (Glorot and
 * Bengio 2010). Padding and biases are zero. */
void field_random_weights(const struct field_model *model, uint64_t *state, float *params);

/* Applies the policy settings to an otherwise complete backend. VKN_BAD_INPUT names the setting
 * that the precision does not offer, or that contradicts gradient_sums or matrix.accumulate. */
vkn_status field_apply_policy(const struct vkn_config *config, struct field_backend *backend);
/* Chooses tile sizes, workgroup sizes and where weight gradients are added up, by the device and
 * the backend's precision, matrix shape and subgroup size. */
void field_choose_tiles(const struct field_model *model, const struct gpu_capabilities *device,
                        struct field_backend *backend);
/* Return the samples of a tile and the invocations of a workgroup of a variant's shaders. */
uint32_t field_tile_rows(const struct field_backend *backend, enum field_variant variant);
uint32_t field_tile_size(const struct field_backend *backend, enum field_variant variant);

#endif
