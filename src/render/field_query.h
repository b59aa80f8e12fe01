/* Evaluates the field at positions that other passes write as samples, one ray for each sample. */
#ifndef RENDER_FIELD_QUERY_H
#define RENDER_FIELD_QUERY_H

#include "render/field.h"
#include "render/internal.h"

/* The field's forward passes and the buffers of one evaluation. */
struct query {
    struct gpu_device *device;
    struct render_field field;
    uint32_t capacity;  /* samples of one evaluation */
    struct setup setup; /* the field's, for `capacity` samples and rays */
    struct buffers buffers;
    struct gpu_pipeline *forward[RENDER_MAX_FORWARD]; /* the field's forward passes */
    size_t forward_count;
    struct gpu_pipeline *find_density; /* replaces the last forward pass if no colours are wanted */
};

/* Creates the pipeline of the field's last forward pass, in workgroups of PASS_LOCAL_SIZE.
 * `density_only`: the pass computes densities but no colours. */
vkn_status field_query_create_forward(const struct render_field *field, bool density_only,
                                      struct gpu_pipeline **pipeline);

/* Creates pipelines and buffers for as many samples as suit the device. Uses the renderer's field,
 * so the renderer must outlive *query. The caller destroys *query, also after a failure. */
vkn_status field_query_create(const vkn_renderer *renderer, struct query *query);
/* Creates *query for `capacity` samples and the backend of `setup`. *query must not be moved. */
vkn_status field_query_create_for(const vkn_renderer *renderer, const struct setup *setup,
                                  uint32_t capacity, struct query *query);
void field_query_destroy(struct query *query);
/* Adds the buffers of the field and of the evaluation to `buffers`, among them BIND_STATE,
 * BIND_RAYS, BIND_SAMPLES and BIND_FIELD. */
void field_query_bind(const struct query *query, const struct gpu_buffer *buffers[GPU_BINDINGS]);
/* Records the evaluation of the first `count` samples (at most `capacity`) of BIND_SAMPLES into
 * BIND_FIELD, [sample] RGB and density, with barriers before and after. `color` false: RGB is 0. */
void field_query_record(const struct query *query, struct gpu_recording *recording,
                        const struct gpu_bindings *bindings, uint32_t count, bool color);

#endif
