/* Computes normals for models without a pass for normals, by differences of densities at the
 * corners of a tetrahedron around each sample. */
#ifndef RENDER_DIFFERENCE_NORMALS_H
#define RENDER_DIFFERENCE_NORMALS_H

#include "render/field_query.h"

struct difference_normals;

/* Creates the passes for the samples of the renderer's march iterations. They use the renderer's
 * field and buffers, NORMALS among them, so the renderer must outlive
 * *difference_normals. The caller destroys *difference_normals, also after a failure. */
vkn_status difference_normals_create(const vkn_renderer *renderer,
                                     struct difference_normals **difference_normals);
/* Frees and nulls *difference_normals, which may be NULL. */
void difference_normals_destroy(struct difference_normals **difference_normals);
/* Records the passes that read the renderer's BIND_SAMPLES and BIND_FIELD and write BIND_NORMALS
 * ([sample] xyz, 0), in at most `groups` workgroups, with barriers before and after. */
void difference_normals_record(const vkn_renderer *renderer, struct gpu_recording *recording,
                               uint32_t groups);

#endif
