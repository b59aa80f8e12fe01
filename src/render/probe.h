/* The field at chosen places: passes write samples, a ray for each, and find colour and density. */
#ifndef RENDER_PROBE_H
#define RENDER_PROBE_H

#include "render/field.h"
#include "render/internal.h"

struct probe {
    struct gpu_device *device;
    struct render_field of;
    uint32_t capacity;  /* samples at a time */
    struct setup setup; /* of the field, for that many samples and rays */
    struct buffers buffers;
    struct gpu_program *forward[RENDER_MAX_FORWARD]; /* the field's forward recipe */
    size_t forward_count;
    struct gpu_program *find_density; /* in the place of the last one */
};

/* The pass that evaluates samples, in workgroups of 64: without their colours with `density_only`.
 */
vkn_status probe_create_forward(const struct render_field *of, bool density_only,
                                struct gpu_program **program);

/* For as many samples at a time as suit the device. Follows the renderer's field, which has to
 * outlive it. The caller destroys *probe, also after a failure. */
vkn_status probe_create(const vkn_renderer *renderer, struct probe *probe);
/* The same for `capacity` samples at a time, computed as `setup` says. *probe stays where it is. */
vkn_status probe_create_for(const vkn_renderer *renderer, const struct setup *setup,
                            uint32_t capacity, struct probe *probe);
void probe_destroy(struct probe *probe);
/* Adds what probing reads and writes: BIND_STATE, BIND_RAYS, BIND_SAMPLES, BIND_FIELD among it. */
void probe_bind(const struct probe *probe, const struct gpu_buffer *buffers[GPU_BINDINGS]);
/* Evaluates the first `count` of BIND_SAMPLES (at most the capacity), which passes recorded before
 * have written; `color` false leaves colours at 0. Barriers before and behind it. */
void probe_record(const struct probe *probe, struct gpu_recording *recording,
                  const struct gpu_bindings *bindings, uint32_t count, bool color);

#endif
