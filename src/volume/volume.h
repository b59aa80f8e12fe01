/* Declares the passes of compositing and loss. */
#ifndef VOLUME_VOLUME_H
#define VOLUME_VOLUME_H

#include "config/config.h"
#include "passes/passes.h"

/* Lists visible samples from densities, so that only visible samples get colours. */
extern const struct pass_list volume_visibility;
/* Composites rays; computes the loss and the gradients of the samples' colours and densities. */
extern const struct pass_list volume_compositing;
/* As volume_compositing, for a coarse field, whose loss has the colour term only. */
extern const struct pass_list volume_coarse;
/* Computes the interlevel loss of a proposal and the gradients of the proposal's densities. */
extern const struct pass_list volume_interlevel;
/* Estimate the appearance of training views: volume_appearance_gradients adds up the gradients of a
 * step after composite, volume_appearance changes the appearance once per update interval. */
extern const struct pass_list volume_appearance_gradients, volume_appearance;
/* Find the sky: volume_sum_sky adds up the colours of a step's pixels after composite, volume_sky
 * changes the sky once per update interval. */
extern const struct pass_list volume_sum_sky, volume_sky;
/* Passes that composite pictures. VOLUME_VIEW writes colour, opacity and depth; VOLUME_NORMALS also
 * writes normals. VOLUME_HITS and VOLUME_DISTANCES write the median depth (the distance at which
 * the transmittance falls to 0.5) instead of the depth, with and without normals. */
extern const struct pass_list volume_viewing;
enum { VOLUME_VIEW, VOLUME_NORMALS, VOLUME_HITS, VOLUME_DISTANCES };

/* Returns whether densities are evaluated before colours: march.visibility=on. */
bool volume_finds_visible(const struct vkn_config *config);
/* Returns whether the backward pass drops some rays: batch.keep below 1. */
bool volume_drops_rays(const struct vkn_config *config);
/* Returns what training estimates of the images' appearance: APPEARANCE_*; 0: nothing. */
uint32_t volume_appearance_kind(const struct vkn_config *config);
/* Returns the number of cells of the sky; 0 without scene.sky. */
uint32_t volume_sky_cells(const struct vkn_config *config);
/* Returns the live samples of all rays of a step in which `live` samples carry a gradient and
 * `marched` are evaluated. */
double volume_reached_samples(const struct vkn_config *config, double live, double marched);
/* Sets the compositing and loss constants of a run from an effective configuration. */
void volume_configure(const struct vkn_config *config, struct Config *constants,
                      struct gpu_constants *specialization);

#endif
