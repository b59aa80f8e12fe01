/* The precision that a run computes in. */
#ifndef PIPELINE_PRECISION_H
#define PIPELINE_PRECISION_H

#include <vknerf/config.h>

#include "field/choose.h"
#include "scene/scene.h"

/* Chooses for a configuration that is not effective yet, see field_choose, and sets its precision
 * and matrix settings alone: pipeline_resolve_config goes on from there. */
vkn_status train_choose_precision(struct gpu_device *device, const struct scene *scene,
                                  struct vkn_config *config, struct field_choice *choice);

#endif
