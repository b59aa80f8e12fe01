/* Normals of models that have no pass for them: from densities around each sample. */
#ifndef RENDER_CORNERS_H
#define RENDER_CORNERS_H

#include "render/probe.h"

struct corners;

/* For the renderer's rounds of samples. Follows its field and its buffers, NORMALS among them,
 * which have to outlive it. The caller destroys *corners. */
vkn_status corners_create(const vkn_renderer *renderer, struct corners **corners);
void corners_destroy(struct corners **corners);
/* From the round's BIND_SAMPLES and BIND_FIELD to BIND_NORMALS, in at most `groups` workgroups.
 * Barriers before and behind it. */
void corners_record(const vkn_renderer *renderer, struct gpu_recording *recording, uint32_t groups);

#endif
