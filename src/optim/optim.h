/* Declares the optimiser: its passes, loss scale, learning-rate schedule and moving average. */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include "config/config.h"
#include "passes/passes.h"

/* A kind of optimiser; its step is a function of shaders/optim/optimizers.glsl. */
struct optim_kind {
    uint32_t moments; /* number of moment buffers, f32[parameter], from BIND_MOMENT1 on */
    const char *moment_names[MAX_MOMENTS];
    /* Operations per parameter, additional ones per decayed parameter, and per entry. */
    double parameter_flops, decay_flops, entry_flops;
};
/* Returns the optimiser of a configuration; Adam if it names none, as in old checkpoints. */
const struct optim_kind *optim_kind(const struct vkn_config *config);
/* Set counts->moments from counts->params: optim_size_buffers for the buffers of a device,
 * optim_size_tensors for the f32 tensors of a checkpoint. */
void optim_size_buffers(const struct vkn_config *config, struct buffer_counts *counts);
void optim_size_tensors(const struct vkn_config *config, struct buffer_counts *counts);
/* Returns whether BIND_MOMENT1 holds both moments of a parameter in one word. */
bool optim_packs_moments(const struct vkn_config *config);
/* Copies moment 0 or 1 of packed words to f32, exactly. The arrays may be the same. */
void optim_unpack_moments(const uint32_t *words, uint64_t count, uint32_t moment, float *values);
/* Replaces moment 0 or 1 in packed words, rounded to nearest. */
void optim_pack_moments(const float *values, uint64_t count, uint32_t moment, uint32_t *words);
/* Returns the mask of all buffers except moments that the optimiser does not use. */
uint32_t optim_buffer_mask(const struct vkn_config *config);

/* Checks the gradients, updates the loss scale, and updates the master parameters. */
extern const struct pass_list optim_update;
/* Updates the master parameters beside the next step's first pass, see enum pass_place. */
extern const struct pass_list optim_update_before;
/* Check the gradients of a coarse field before optim_update, and update the field's parameters
 * afterwards. Both fields are updated or skipped together, with one norm and one loss scale. */
extern const struct pass_list optim_check_coarse, optim_update_coarse;
/* Prepare and finish the all-reduce of a synchronous step: optim_pack rounds gradients to f16;
 * optim_export exports the rank's step statistics, optim_import imports their sums over ranks;
 * optim_export_coarse and optim_import_coarse handle a coarse field's statistics alike. */
extern const struct pass_list optim_pack, optim_export, optim_import, optim_export_coarse,
    optim_import_coarse;
/* Average parameters after an update interval: export and import each entry's step counts, and
 * parameters and moments weighted by the rank's share of the steps. These passes run between steps;
 * the caller chooses their workgroup counts. */
extern const struct pass_list optim_averaging;
/* Updates the moving average of the master parameters. */
extern const struct pass_list optim_average;
/* The pass that rounds uploaded parameters to their f16 copies. */
extern const char optim_round_pass[];

/* Sets the optimiser's constants of a run from an effective configuration. */
void optim_configure(const struct vkn_config *config, struct Config *constants);

/* Sets the constants of the parameter groups, which cover all parameters. */
void optim_configure_groups(const struct vkn_config *config, const struct parameter_group *groups,
                            uint32_t count, struct Config *constants,
                            struct gpu_constants *specialization);

#endif
