/* optim: gradients to weights: reduction, check, loss scale, Adam, schedules, average. */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include <vknerf/config.h>

#include "gpu/gpu.h"
#include "shared/layout.h"

/* Fills its part of the run's constants from an effective configuration. */
void optim_configure(const struct vkn_config *config, struct Config *constants);

/* Parameters that are treated alike: the next `count` of them behind the group before. */
struct optim_group {
    uint32_t count;
    uint32_t entry; /* parameters in a row that share one count of steps; divides `count` */
    bool sparse;    /* an entry without a gradient is left alone, its moments too */
    float rate;     /* factor of the learning rate; 0: nothing of the group changes */
    float decay;    /* factor of optimizer.weight_decay; 0: none */
};
/* Fills the constants' groups with a model's, at most MAX_GROUPS, which are all its parameters. */
void optim_configure_groups(const struct vkn_config *config, const struct optim_group *groups,
                            uint32_t count, struct Config *constants,
                            struct gpu_constants *specialization);

#endif
