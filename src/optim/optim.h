/* optim: gradients to weights: reduction, check, loss scale, Adam, schedules, average. */
#ifndef OPTIM_OPTIM_H
#define OPTIM_OPTIM_H

#include <vknerf/config.h>

#include "gpu/gpu.h"
#include "shared/layout.h"

/* Fills its part of the run's constants from an effective configuration. */
void optim_configure(const struct vkn_config *config, struct Config *constants);

#endif
