/* What the kinds of models share. */
#ifndef FIELD_INTERNAL_H
#define FIELD_INTERNAL_H

#include "field/field.h"

#define FIELD_PAD(n) (((n) + 15u) / 16u * 16u) /* to whole matrix tiles */

extern const struct field_kind field_ngp, field_vanilla, field_layered, field_proposal,
    field_external;

/* Models that configurations of a proposal and of an external field name: no setting does. */
#define FIELD_MODEL_PROPOSAL ((enum vkn_model)1000)
#define FIELD_MODEL_EXTERNAL ((enum vkn_model)1001)

/* An MLP to be laid out. */
struct field_mlp {
    uint32_t inputs, used_inputs; /* as stored; without padding */
    uint32_t width, hidden;       /* of the hidden layers; how many */
    uint32_t outputs, used_outputs;
    uint32_t skip_at; /* the hidden layer, from 1, that reads the inputs again; 0: none */
    bool biases;
    float initial; /* weights of the last layer begin evenly within +- this; 0: as the others' */
};
/* Appends its layers to the model's, and their weights to its parameters. VKN_BAD_INPUT when they
 * are too many or too wide. */
vkn_status field_add_mlp(struct field_model *model, const struct field_mlp *mlp);

/* The layers in front of a deformation's. */
static inline uint32_t field_first_deformation(const struct field_model *model)
{
    return model->layer_count - model->deformation_layers;
}
/* How fields of layers encode position and direction; the octaves of their frequencies, 0: the
 * vector alone, or another encoding. */
enum vkn_position_encoding field_position(const struct vkn_config *config);
uint32_t field_position_octaves(const struct vkn_config *config);
enum vkn_direction_encoding field_direction(const struct vkn_config *config);
uint32_t field_direction_octaves(const struct vkn_config *config);
/* Returns whether a deformation is in front of the field. */
bool field_is_deformed(const struct vkn_config *config);
/* Values of the time as an input: itself, then sine and cosine of each octave. As many of the
 * canonical field of the dynamic model, where its look changes; else 0. */
#define FIELD_TIME_INPUTS(config) (1 + 2 * (config)->dynamic.time_octaves)
uint32_t field_time_inputs(const struct vkn_config *config);
/* The first parameter of the layers that are passes of their own. */
uint32_t field_first_unfused(const struct field_model *model);
/* Columns of a chunk, see shaders/field/blocks.glsl; as many with those that fill up the last. */
#define FIELD_COLUMNS 32u
uint32_t field_pad_columns(uint32_t columns);
/* Places the panels of a layer behind those that the model has: its weights with biases, then those
 * of its own columns transposed. */
void field_place_panels(struct field_model *model, uint32_t layer);
/* Outputs whose gradients make those of a layer's own columns. */
uint32_t field_gradient_outputs(const struct field_model *model, uint32_t layer);
#define FIELD_RAY_BYTES 24.0 /* bytes of a ray's origin and direction */
/* Bytes of an activation of layers that are passes, and of the weights in panels of some of them.
 */
static inline double field_value_bytes(const struct cost_model *m)
{
    return m->backend->f16 ? 2 : 4;
}
static inline double field_panel_bytes(const struct cost_model *m, uint32_t from, uint32_t end)
{
    const struct field_model *model = m->model;
    uint32_t behind = end < model->layer_count ? model->flows[end].panels : model->panel_chunks;
    return (double)(behind - model->flows[from].panels) * 512 * field_value_bytes(m);
}
/* Workgroups that each leave sums of the gradients of layers that are passes of their own. */
static inline double field_layer_slices(const struct cost_model *m)
{
    uint32_t slices = m->constants->layer_splits;
    return slices > 0 ? slices : m->constants->backward_groups;
}
/* VKN_BAD_INPUT with the key and the message unless `good`. */
vkn_status field_check(bool good, const char *key, const char *message);
/* The stream of random numbers that a run's parameters begin with; the next of one, in [-1, 1). */
uint64_t field_random_begin(const struct vkn_config *config);
float field_random(uint64_t *state);
/* Weights of all layers, Xavier uniform (Glorot and Bengio 2010) or as the layer has it, padding
 * zero. */
void field_random_weights(const struct field_model *model, uint64_t *state, float *params);

/* Takes the operations that settings lower to f16, of a backend that has all else. VKN_BAD_INPUT
 * names the setting that its precision does not offer, or another one that says otherwise. */
vkn_status field_apply_policy(const struct vkn_config *config, struct field_backend *backend);
/* Shapes a backend's programs by its precision, matrices, subgroups and device: tiles, workgroups,
 * where weight gradients are added up. */
void field_choose_tiles(const struct field_model *model, const struct gpu_capabilities *device,
                        struct field_backend *backend);
/* Samples of a tile of a variant's programs, and invocations of their workgroups. */
uint32_t field_tile_rows(const struct field_backend *backend, enum field_variant variant);
uint32_t field_tile_size(const struct field_backend *backend, enum field_variant variant);

#endif
