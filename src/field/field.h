/* field: which encodings and MLPs a model is made of, and where their parameters lie in the one
 * parameter buffer. Rays, volume and optim do not know which model runs. */
#ifndef FIELD_FIELD_H
#define FIELD_FIELD_H

#include <vknerf/config.h>

#include "base/base.h"
#include "gpu/gpu.h"
#include "optim/optim.h"
#include "shared/layout.h"

/* The ngp recipe: hash grid -> density MLP -> (geometry features, spherical harmonics) -> colour
 * MLP. Parameters: [density layers][colour layers][grid levels]; a layer is [input][output]. */
struct field_model {
    uint32_t encoded;     /* inputs of the density MLP, padded to 16 */
    uint32_t mlp_params;  /* floats before the grid */
    uint32_t param_count; /* all floats */
    uint32_t activations; /* values that a sample passes through, inputs and outputs included */
    uint32_t levels, features;
    struct Level level[MAX_LEVELS];
};

struct field_layer {
    uint32_t first;           /* index of its first weight */
    uint32_t inputs, outputs; /* as stored, padding included */
    uint32_t used_inputs, used_outputs;
};

#define FIELD_MAX_LAYERS ((uint32_t)DEEP_LAYERS)

/* Expects an effective configuration. VKN_BAD_INPUT names the setting that does not fit. */
vkn_status field_model_create(const struct vkn_config *config, struct field_model *model);
/* The MLPs' layers in order of their weights; returns how many. */
uint32_t field_layers(const struct vkn_config *config, const struct field_model *model,
                      struct field_layer layers[FIELD_MAX_LAYERS]);
/* Fills its part of the run's constants. */
void field_configure(const struct vkn_config *config, const struct field_model *model,
                     struct Config *constants, struct gpu_constants *specialization);
/* The model's parameters as the optimiser treats them; returns how many groups. */
uint32_t field_groups(const struct field_model *model, struct optim_group groups[MAX_GROUPS]);
/* Random initial parameters, float[param_count]: grid uniform in +-1e-4, weights Xavier uniform
 * (Glorot and Bengio 2010), padding zero. */
void field_initialize(const struct vkn_config *config, const struct field_model *model,
                      float *params);

#endif
