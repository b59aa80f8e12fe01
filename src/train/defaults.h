/* Resolving a configuration: zeros become values that suit the device and the scene. */
#ifndef TRAIN_DEFAULTS_H
#define TRAIN_DEFAULTS_H

#include <vknerf/config.h>

#include "gpu/gpu.h"
#include "scene/scene.h"

vkn_status train_resolve_config(struct vkn_config *config, const struct scene *scene,
                                const struct gpu_capabilities *device);

#endif
