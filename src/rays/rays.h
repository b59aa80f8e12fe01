/* Declares the passes that generate rays, place samples and update the occupancy grid. */
#ifndef RAYS_RAYS_H
#define RAYS_RAYS_H

#include "config/config.h"
#include "passes/passes.h"

/* Generates one ray for each drawn pixel. */
extern const struct pass_list rays_generating;
/* Place samples along rays. rays_sampling: samples of the coarse field or proposal if there is one,
 * else of the main field. rays_fine: samples of the main field, placed by the weights of coarse
 * samples. */
extern const struct pass_list rays_sampling, rays_fine;
/* Update the occupancy bits from the cell values. rays_sums: partial sums by workgroup, unless a
 * pass of the field has computed the sums. rays_occupancy: threshold and occupancy bits. */
extern const struct pass_list rays_sums, rays_occupancy;
enum { RAYS_THRESHOLD, RAYS_PACK };
/* Move the error map towards the losses of the last update interval, and compute the sums with
 * which rays are drawn by error. */
extern const struct pass_list rays_errors;
/* Refine the training views' poses and lenses: rays_view_gradients adds up the gradients of a step
 * after the field's input_gradients, rays_views moves the cameras once per update interval. */
extern const struct pass_list rays_view_gradients, rays_views;
/* Returns what training refines of the cameras: bits REFINE_*, 0: nothing. */
uint32_t rays_refine(const struct vkn_config *config);
/* Returns the number of struct ErrorCell that training keeps for an error map of `cells` cells,
 * with the summary of loss.robust; 0 if nothing needs the map. */
uint64_t rays_error_cells(const struct vkn_config *config, uint64_t cells);
/* Passes for pictures: the first generates a ray for each pixel, the others place samples along
 * rays, a few per iteration. */
extern const struct pass_list rays_viewing;
enum { RAYS_GENERATE_VIEW, RAYS_MARCH_VIEW, RAYS_UNIFORM_VIEW, RAYS_FINE_VIEW, RAYS_PROPOSAL_VIEW };
/* Returns the pass of rays_viewing that places samples in an effective configuration. Push
 * constants: sample capacity, rays, and the sample capacity of all earlier iterations. */
const struct pass *rays_view_samples(const struct vkn_config *config);
/* Returns the pass of rays_viewing that first places all coarse samples; NULL: no coarse field. */
const struct pass *rays_view_coarse(const struct vkn_config *config);
/* The pass that marks the cells which no training view sees, once before training. */
extern const char rays_unseen_pass[];

/* Returns whether samples are placed by the occupancy grid; otherwise no pass uses the grid. */
bool rays_use_grid(const struct vkn_config *config);
/* Returns whether there is a coarse field or a proposal. The main field also evaluates all samples
 * of a coarse field, but none of a proposal's. */
bool rays_have_coarse(const struct vkn_config *config);
/* Return whether a coarse field, or a proposal, decides where the main field's samples lie. */
bool rays_are_hierarchical(const struct vkn_config *config);
bool rays_have_proposal(const struct vkn_config *config);
/* Sets the sample capacity of the proposal's constants. */
void rays_configure_proposal(struct Config *constants);
/* Returns whether the configuration has every setting that its sampling needs. */
bool rays_are_complete(const struct vkn_config *config);
/* Returns the cascades of the occupancy grid of an effective configuration: enough for a cube of
 * side aabb_scale, and one more for the rest of space when space is contracted. */
uint32_t rays_cascades(const struct vkn_config *config);
/* Returns the time bins of the occupancy grid, each of which has all cascades; 1: a single grid. */
uint32_t rays_time_bins(const struct vkn_config *config);
/* Sets the cells of all cascades and time bins, and the 32-bit words of BIND_OCCUPANCY_BITS. */
void rays_size_buffers(const struct vkn_config *config, struct buffer_counts *counts);
/* Returns the workgroups of pack_occupancy for one cascade. */
uint32_t rays_pack_groups(const struct vkn_config *config, uint32_t local_size);
/* Returns the most samples that a ray can have if every cell is occupied. */
uint32_t rays_max_steps(const struct vkn_config *config, const struct Config *constants);
/* Returns the marching steps along a ray in training space if every cell is occupied. */
double rays_count_steps(const struct vkn_config *config, const struct Config *constants,
                        const double origin[3], const double direction[3]);
/* Sets the sampling constants of a run from an effective configuration. */
void rays_configure(const struct vkn_config *config, struct Config *constants,
                    struct gpu_constants *specialization);

#endif
