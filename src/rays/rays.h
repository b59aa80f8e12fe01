/* rays: where samples lie: the cube, the marching step, the occupancy grid. */
#ifndef RAYS_RAYS_H
#define RAYS_RAYS_H

#include <vknerf/config.h>

#include "gpu/gpu.h"
#include "shared/layout.h"

/* Cascades of the occupancy grid of an effective configuration: those that cover a cube of side
 * aabb_scale, and one for all of space when this is contracted. */
uint32_t rays_cascades(const struct vkn_config *config);
/* Cells of all cascades, and 32-bit words of BIND_BITS. */
uint64_t rays_occupancy_cells(const struct vkn_config *config);
uint64_t rays_occupancy_words(const struct vkn_config *config);
/* Most samples that a ray can take through the cube or contracted space, whatever the occupancy. */
uint32_t rays_most_steps(const struct vkn_config *config, const struct Config *constants);
/* Fills its part of the run's constants from an effective configuration. */
void rays_configure(const struct vkn_config *config, struct Config *constants,
                    struct gpu_constants *specialization);

#endif
