/* optim: gradients to weights: check, loss scale, optimisers, schedules, average. */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include "config/config.h"
#include "passes/passes.h"

/* A kind of optimiser, whose step is a function of shaders/optim/optimizers.glsl. */
struct optim_kind {
    uint32_t moments; /* buffers of a number for each parameter, BIND_MOMENT1 first */
    const char *moment_names[MAX_MOMENTS];
    /* Operations for a parameter, for one that decays besides, and for an entry. */
    double parameter, decay, entry;
};
/* Returns the kind of a configuration: Adam of one that names none, a checkpoint's from before
 * there was a choice. */
const struct optim_kind *optim_kind(const struct vkn_config *config);
/* Fills in the counts of moments; those of parameters are there. */
void optim_size_buffers(const struct vkn_config *config, struct buffer_counts *counts);
/* Returns all buffers but moments that the configuration's optimiser does not have. */
uint32_t optim_buffer_mask(const struct vkn_config *config);

/* From gradients to the masters. */
extern const struct pass_list optim_update;
/* The same of a further field, before and behind those of the first: its gradients count with the
 * first one's, whose step decides for both. */
extern const struct pass_list optim_check_coarse, optim_update_coarse;
/* Around what several ranks that take a step together add up, of either field: the words of the
 * step (struct Found), before and after. */
extern const struct pass_list optim_pack, optim_export, optim_import, optim_export_coarse,
    optim_import_coarse;
/* What ranks that took periods alone have come to, before and after the host's mean over all: the
 * steps that each has taken with an entry, and numbers by these. Not of a step: whoever records the
 * passes says in how many workgroups. */
extern const struct pass_list optim_averaging;
/* From the masters to their moving average. */
extern const struct pass_list optim_average;
/* Run after parameters were uploaded: rounds them to their f16 copies. */
extern const char optim_round_pass[];

/* Fills its part of the run's constants from an effective configuration. */
void optim_configure(const struct vkn_config *config, struct Config *constants);

/* Fills the constants' groups with a model's, at most MAX_PARAMETER_GROUPS, which are all its
 * parameters. */
void optim_configure_groups(const struct vkn_config *config, const struct parameter_group *groups,
                            uint32_t count, struct Config *constants,
                            struct gpu_constants *specialization);

#endif
