/* rays: where samples lie: the cube, the marching step, the occupancy grid. */
#ifndef RAYS_RAYS_H
#define RAYS_RAYS_H

#include "config/config.h"
#include "passes/passes.h"

/* From cameras to rays: one for each pixel drawn. */
extern const struct pass_list rays_generating;
/* From rays to samples as march.sampling says; where that is hierarchical, those of the coarse
 * field, and from what it makes of them to those of the fine one. */
extern const struct pass_list rays_sampling, rays_fine;
/* From cell values, which the field has updated, to their sums by workgroup (a field may have left
 * these as well), and from there to the bits that marching reads. */
extern const struct pass_list rays_sums, rays_occupancy;
enum { RAYS_THRESHOLD, RAYS_PACK };
/* Of pictures: a ray for each pixel; its next samples, a few at a time, in occupied cells or all
 * along it. */
extern const struct pass_list rays_viewing;
enum { RAYS_GENERATE_VIEW, RAYS_MARCH_VIEW, RAYS_UNIFORM_VIEW, RAYS_FINE_VIEW, RAYS_PROPOSAL_VIEW };
/* Of the latter the one that an effective configuration takes; push: most samples, rays, and how
 * many samples the rounds before could take. */
const struct pass *rays_view_samples(const struct vkn_config *config);
/* The one before all rounds for the samples of a coarse field, all at once; NULL: there is none. */
const struct pass *rays_view_coarse(const struct vkn_config *config);
/* Run once before training: marks the cells that no training view sees. */
extern const char rays_unseen_pass[];

/* Whether samples lie where the occupancy grid says: else nothing updates or reads it. */
bool rays_use_grid(const struct vkn_config *config);
/* Whether there is a coarse field, whose samples decide where those of the fine one lie: one of the
 * same kind, all of whose samples the fine one has as well, or a proposal. */
bool rays_have_coarse(const struct vkn_config *config);
bool rays_are_hierarchical(const struct vkn_config *config);
bool rays_have_proposal(const struct vkn_config *config);
/* Makes the constants of a run with a proposal those of the proposal: samples of its own. */
void rays_configure_proposal(struct Config *constants);
/* Whether nothing of what the way of sampling needs is left open. */
bool rays_are_complete(const struct vkn_config *config);
/* Cascades of the occupancy grid of an effective configuration: those that cover a cube of side
 * aabb_scale, and one for all of space when this is contracted. */
uint32_t rays_cascades(const struct vkn_config *config);
/* Slices of time that have cascades of their own; 1: one grid for all moments. */
uint32_t rays_time_bins(const struct vkn_config *config);
/* Adds cells of all cascades and slices, and 32-bit words of BIND_OCCUPANCY_BITS. */
void rays_size_buffers(const struct vkn_config *config, struct buffer_counts *counts);
/* Workgroups of pack_occupancy for one cascade. */
uint32_t rays_pack_groups(const struct vkn_config *config, uint32_t local_size);
/* Most samples that a ray can take through the cube or contracted space, whatever is there. */
uint32_t rays_max_steps(const struct vkn_config *config, const struct Config *constants);
/* Steps of the march along one ray in training space, whatever is there: what `occupancy` would
 * evaluate of it if every cell were occupied. */
double rays_count_steps(const struct vkn_config *config, const struct Config *constants,
                        const double origin[3], const double direction[3]);
/* Fills its part of the run's constants from an effective configuration. */
void rays_configure(const struct vkn_config *config, struct Config *constants,
                    struct gpu_constants *specialization);

#endif
