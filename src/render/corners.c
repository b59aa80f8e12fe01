#include "render/corners.h"

#include <stdlib.h>
#include <string.h>

#define CORNERS 4u /* as in sample_corners.comp */

struct corners {
    struct probe probe;
    struct gpu_bindings *bindings;
    struct gpu_program *program;
};

/* Chooses fp32, since differences amplify rounding, unless the model packs its weights: the packed
 * copy has the picture's precision. */
static vkn_status configure(const vkn_renderer *renderer, struct setup *setup)
{
    struct vkn_config config = renderer->setup.config;
    *setup = renderer->setup;
    if (config.precision == VKN_PRECISION_FP32 || setup->model.panel_chunks > 0)
        return VKN_OK;
    config.precision = VKN_PRECISION_FP32;
    memset(&config.matrix, 0, sizeof config.matrix);
    field_policy_release(&config);
    return setup_create_tuned(&config, renderer->device, setup);
}

static vkn_status create(const vkn_renderer *renderer, struct corners *corners)
{
    struct setup setup;
    struct probe *probe = &corners->probe;
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    BASE_TRY(configure(renderer, &setup));
    BASE_TRY(probe_create_for(renderer, &setup, renderer->setup.constants.sample_capacity, probe));
    probe_bind(probe, bound);
    bound[BIND_NORMALS] = &renderer->normals.at[BIND_NORMALS];
    bound[BIND_SHOWN_RAYS] = &renderer->buffers.at[BIND_RAYS];
    bound[BIND_SHOWN_SAMPLES] = &renderer->buffers.at[BIND_SAMPLES];
    bound[BIND_SHOWN_FIELD] = &renderer->buffers.at[BIND_FIELD];
    BASE_TRY(gpu_bindings_create(renderer->device, bound, &corners->bindings));
    return field_backend_create_program(renderer->device, &probe->setup.backend, "sample_corners",
                                        FIELD_SAME, PASS_LOCAL_SIZE, &probe->setup.specialization,
                                        &corners->program);
}

vkn_status corners_create(const vkn_renderer *renderer, struct corners **corners)
{
    *corners = base_alloc(1, sizeof **corners);
    return *corners ? create(renderer, *corners) : VKN_ERROR;
}

void corners_destroy(struct corners **corners)
{
    if (!*corners)
        return;
    gpu_program_destroy(&(*corners)->program);
    gpu_bindings_destroy(&(*corners)->bindings);
    probe_destroy(&(*corners)->probe);
    free(*corners);
    *corners = NULL;
}

void corners_record(const vkn_renderer *renderer, struct gpu_recording *recording, uint32_t groups)
{
    const struct corners *corners = renderer->corners;
    const struct probe *probe = &corners->probe;
    gpu_record_barrier(recording);
    gpu_record_copy(recording, &renderer->buffers.at[BIND_STATE], 0, &probe->buffers.at[BIND_STATE],
                    0, sizeof(struct State));
    gpu_record_barrier(recording);
    for (struct Push push = {0}; push.a <= CORNERS; push.a++) {
        gpu_record_dispatch(recording, corners->program, corners->bindings, &push, sizeof push,
                            groups);
        gpu_record_program_barrier(recording);
        if (push.a < CORNERS)
            setup_record_forward(&probe->setup, recording, probe->forward, probe->find_density,
                                 corners->bindings, groups);
    }
}
