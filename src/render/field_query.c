/* Evaluates the field at samples that other passes write. */
#include "render/field_query.h"

#define CPU_SAMPLES (1u << 15)
#define GPU_SAMPLES (1u << 18)

#define OF_QUERY                                                                               \
    (BUFFERS(CONFIG) | BUFFERS(STATE) | BUFFERS(RAYS) | BUFFERS(SAMPLES) | BUFFERS(FEATURES) | \
     BUFFERS(FIELD))

vkn_status field_query_create_forward(const struct render_field *field, bool density_only,
                                      struct gpu_pipeline **pipeline)
{
    const struct field_model *model = &field->setup->model;
    const struct pass *forward[FIELD_MAX_PASSES];
    const struct pass *last = forward[field_list_passes(model, &model->kind->forward, forward) - 1];
    struct gpu_constants constants = field->setup->specialization;
    constants.values[SPEC_DENSITY_ONLY] = density_only;
    return field_backend_create_pipeline(field->device, &field->setup->backend, last->name,
                                         last->variant, PASS_LOCAL_SIZE, &constants, pipeline);
}

static vkn_status create_forward(struct query *query)
{
    const struct setup *setup = &query->setup;
    const struct pass *forward[FIELD_MAX_PASSES];
    size_t count = field_list_passes(&setup->model, &setup->model.kind->forward, forward);
    for (; query->forward_count < count; query->forward_count++) {
        const struct pass *pass = forward[query->forward_count];
        BASE_TRY(field_backend_create_pipeline(
            query->device, &setup->backend, pass->name, pass->variant, PASS_LOCAL_SIZE,
            &setup->specialization, &query->forward[query->forward_count]));
    }
    return field_query_create_forward(&query->field, true, &query->find_density);
}

vkn_status field_query_create(const vkn_renderer *renderer, struct query *query)
{
    bool cpu = gpu_device_capabilities(renderer->device)->type == GPU_CPU;
    return field_query_create_for(renderer, &renderer->setup, cpu ? CPU_SAMPLES : GPU_SAMPLES,
                                  query);
}

vkn_status field_query_create_for(const vkn_renderer *renderer, const struct setup *setup,
                                  uint32_t capacity, struct query *query)
{
    *query = (struct query){.field = render_field_of(renderer)};
    query->device = query->field.device;
    query->setup = *setup;
    query->field.setup = &query->setup;
    query->capacity = capacity;
    query->setup.constants.ray_capacity = query->capacity;
    query->setup.constants.sample_capacity = query->capacity;
    const struct buffer_counts counts = setup_counts(&query->setup);
    BASE_TRY(buffers_create(query->device, BUFFERS_OF_QUERY, OF_QUERY, &counts, &query->buffers));
    BASE_TRY(gpu_upload(query->device, &query->buffers.at[BIND_CONFIG], 0, &query->setup.constants,
                        sizeof query->setup.constants));
    return create_forward(query);
}

void field_query_destroy(struct query *query)
{
    for (size_t i = 0; i < BASE_COUNT(query->forward); i++)
        gpu_pipeline_destroy(&query->forward[i]);
    gpu_pipeline_destroy(&query->find_density);
    buffers_destroy(&query->buffers);
}

void field_query_bind(const struct query *query, const struct gpu_buffer *buffers[GPU_BINDINGS])
{
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        if (query->field.buffers[i])
            buffers[i] = query->field.buffers[i];
    buffers_bind(&query->buffers, OF_QUERY, buffers);
}

void field_query_record(const struct query *query, struct gpu_recording *recording,
                        const struct gpu_bindings *bindings, uint32_t count, bool color)
{
    uint32_t most = count / PASS_LOCAL_SIZE + 1;
    uint32_t groups = query->setup.constants.forward_groups;
    groups = most < groups ? most : groups;
    gpu_record_fill(recording, &query->buffers.at[BIND_STATE], offsetof(struct State, sample_count),
                    4, count);
    gpu_record_barrier(recording);
    setup_record_forward(&query->setup, recording, query->forward,
                         color ? NULL : query->find_density, bindings, groups);
}
