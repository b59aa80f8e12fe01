/* volume: compositing and the loss. */
#ifndef VOLUME_VOLUME_H
#define VOLUME_VOLUME_H

#include <vknerf/config.h>

#include "recipe/recipe.h"

/* From the values of samples to the loss and their gradients. */
extern const struct recipe volume_compositing;

/* Fills its part of the run's constants from an effective configuration. */
void volume_configure(const struct vkn_config *config, struct Config *constants,
                      struct gpu_constants *specialization);

#endif
