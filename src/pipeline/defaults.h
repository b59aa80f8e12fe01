/* A configuration for a scene and a device: what was left open becomes what suits them. */
#ifndef PIPELINE_DEFAULTS_H
#define PIPELINE_DEFAULTS_H

#include <vknerf/config.h>

#include "gpu/gpu.h"
#include "scene/scene.h"

vkn_status pipeline_resolve_config(struct vkn_config *config, const struct scene *scene,
                                   const struct gpu_capabilities *device);

/* Where rays begin when the configuration does not say, training units in front of the camera. */
float pipeline_near_distance(const struct scene *scene);

#endif
