/* Normals of models that have no pass for them: from densities around each sample. */
#ifndef RENDER_DIFFERENCE_NORMALS_H
#define RENDER_DIFFERENCE_NORMALS_H

#include "render/field_query.h"

struct difference_normals;

/* For the renderer's rounds of samples. Follows its field and its buffers, NORMALS among them,
 * which have to outlive it. The caller destroys *corners. */
vkn_status difference_normals_create(const vkn_renderer *renderer,
                                     struct difference_normals **difference_normals);
void difference_normals_destroy(struct difference_normals **difference_normals);
/* From the round's BIND_SAMPLES and BIND_FIELD to BIND_NORMALS, in at most `groups` workgroups.
 * Barriers before and behind it. */
void difference_normals_record(const vkn_renderer *renderer, struct gpu_recording *recording,
                               uint32_t groups);

#endif
