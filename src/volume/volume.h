/* volume: compositing and the loss. */
#ifndef VOLUME_VOLUME_H
#define VOLUME_VOLUME_H

#include "config/config.h"
#include "passes/passes.h"

/* From densities alone to the list of samples that shall have colours. */
extern const struct pass_list volume_visibility;
/* From the values of samples to the loss and their gradients. */
extern const struct pass_list volume_compositing;
/* The same of a coarse field, whose loss is that of its colours alone. */
extern const struct pass_list volume_coarse;
/* From the densities of a ray's samples to the loss that a proposal learns by, and its densities'
 * gradients. */
extern const struct pass_list volume_interlevel;
/* Of pictures: colour, opacity and depth alone; with normals; with the distance at which half of
 * the light is gone in place of the depth, with normals and without. */
extern const struct pass_list volume_viewing;
enum { VOLUME_VIEW, VOLUME_NORMALS, VOLUME_HITS, VOLUME_DISTANCES };

/* Whether densities come first: march.visibility of an effective configuration. */
bool volume_finds_visible(const struct vkn_config *config);
/* Fills its part of the run's constants from an effective configuration. */
void volume_configure(const struct vkn_config *config, struct Config *constants,
                      struct gpu_constants *specialization);

#endif
