/* Computes normals by differences of densities around each sample. */
#include "render/difference_normals.h"

#include <stdlib.h>
#include <string.h>

#define CORNERS 4u /* as in difference_normals.comp */

struct difference_normals {
    struct query query;
    struct gpu_bindings *bindings;
    struct gpu_pipeline *pipeline;
};

/* Chooses fp32, since differences amplify rounding errors. Models that pack their weights keep the
 * renderer's precision, because the packed weights have that precision. */
static vkn_status configure(const vkn_renderer *renderer, struct setup *setup)
{
    struct vkn_config config = renderer->setup.config;
    *setup = renderer->setup;
    if (config.precision == VKN_PRECISION_FP32 || setup->model.panel_chunks > 0)
        return VKN_OK;
    config.precision = VKN_PRECISION_FP32;
    memset(&config.matrix, 0, sizeof config.matrix);
    field_policy_reset(&config);
    return setup_create_tuned(&config, renderer->device, setup);
}

static vkn_status create(const vkn_renderer *renderer,
                         struct difference_normals *difference_normals)
{
    struct setup setup;
    struct query *query = &difference_normals->query;
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    BASE_TRY(configure(renderer, &setup));
    BASE_TRY(
        field_query_create_for(renderer, &setup, renderer->setup.constants.sample_capacity, query));
    field_query_bind(query, bound);
    bound[BIND_NORMALS] = &renderer->normals.at[BIND_NORMALS];
    bound[BIND_VIEW_RAYS] = &renderer->buffers.at[BIND_RAYS];
    bound[BIND_VIEW_SAMPLES] = &renderer->buffers.at[BIND_SAMPLES];
    bound[BIND_VIEW_FIELD] = &renderer->buffers.at[BIND_FIELD];
    BASE_TRY(gpu_bindings_create(renderer->device, bound, &difference_normals->bindings));
    return field_backend_create_pipeline(
        renderer->device, &query->setup.backend, "difference_normals", FIELD_NO_VARIANT,
        PASS_LOCAL_SIZE, &query->setup.specialization, &difference_normals->pipeline);
}

vkn_status difference_normals_create(const vkn_renderer *renderer,
                                     struct difference_normals **difference_normals)
{
    *difference_normals = base_alloc(1, sizeof **difference_normals);
    return *difference_normals ? create(renderer, *difference_normals) : VKN_ERROR;
}

void difference_normals_destroy(struct difference_normals **difference_normals)
{
    if (!*difference_normals)
        return;
    gpu_pipeline_destroy(&(*difference_normals)->pipeline);
    gpu_bindings_destroy(&(*difference_normals)->bindings);
    field_query_destroy(&(*difference_normals)->query);
    free(*difference_normals);
    *difference_normals = NULL;
}

void difference_normals_record(const vkn_renderer *renderer, struct gpu_recording *recording,
                               uint32_t groups)
{
    const struct difference_normals *difference_normals = renderer->difference_normals;
    const struct query *query = &difference_normals->query;
    gpu_record_barrier(recording);
    gpu_record_copy(recording, &renderer->buffers.at[BIND_STATE], 0, &query->buffers.at[BIND_STATE],
                    0, sizeof(struct State));
    gpu_record_barrier(recording);
    for (struct Push push = {0}; push.a <= CORNERS; push.a++) {
        gpu_record_dispatch(recording, difference_normals->pipeline, difference_normals->bindings,
                            &push, sizeof push, groups);
        gpu_record_compute_barrier(recording);
        if (push.a < CORNERS)
            setup_record_forward(&query->setup, recording, query->forward, query->find_density,
                                 difference_normals->bindings, groups);
    }
}
