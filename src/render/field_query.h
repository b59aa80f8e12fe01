/* The field at chosen places: passes write samples, a ray for each, and find colour and density. */
#ifndef RENDER_FIELD_QUERY_H
#define RENDER_FIELD_QUERY_H

#include "render/field.h"
#include "render/internal.h"

struct query {
    struct gpu_device *device;
    struct render_field of;
    uint32_t capacity;  /* samples at a time */
    struct setup setup; /* of the field, for that many samples and rays */
    struct buffers buffers;
    struct gpu_pipeline *forward[RENDER_MAX_FORWARD]; /* the field's forward recipe */
    size_t forward_count;
    struct gpu_pipeline *find_density; /* in the place of the last one */
};

/* The pass that evaluates samples, in workgroups of 64: without their colours with `density_only`.
 */
vkn_status field_query_create_forward(const struct render_field *of, bool density_only,
                                      struct gpu_pipeline **program);

/* For as many samples at a time as suit the device. Follows the renderer's field, which has to
 * outlive it. The caller destroys *probe, also after a failure. */
vkn_status field_query_create(const vkn_renderer *renderer, struct query *query);
/* The same for `capacity` samples at a time, computed as `setup` says. *probe stays where it is. */
vkn_status field_query_create_for(const vkn_renderer *renderer, const struct setup *setup,
                                  uint32_t capacity, struct query *query);
void field_query_destroy(struct query *query);
/* Adds what probing reads and writes: BIND_STATE, BIND_RAYS, BIND_SAMPLES, BIND_FIELD among it. */
void field_query_bind(const struct query *query, const struct gpu_buffer *buffers[GPU_BINDINGS]);
/* Evaluates the first `count` of BIND_SAMPLES (at most the capacity), which passes recorded before
 * have written; `color` false leaves colours at 0. Barriers before and behind it. */
void field_query_record(const struct query *query, struct gpu_recording *recording,
                        const struct gpu_bindings *bindings, uint32_t count, bool color);

#endif
