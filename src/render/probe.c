#include "render/probe.h"

#define CPU_SAMPLES (1u << 15)
#define GPU_SAMPLES (1u << 18)

#define OF_PROBE                                                                               \
    (BUFFERS(CONFIG) | BUFFERS(STATE) | BUFFERS(RAYS) | BUFFERS(SAMPLES) | BUFFERS(FEATURES) | \
     BUFFERS(FIELD))

/* The last pass of the field's forward recipe. */
vkn_status probe_create_forward(const struct render_field *of, bool density_only,
                                struct gpu_program **program)
{
    const struct field_model *model = &of->setup->model;
    const struct pass *forward[FIELD_MAX_PASSES];
    const struct pass *last = forward[field_list(model, &model->kind->forward, forward) - 1];
    struct gpu_constants constants = of->setup->specialization;
    constants.values[SPEC_DENSITY_ONLY] = density_only;
    return field_backend_create_program(of->device, &of->setup->backend, last->name, last->variant,
                                        PASS_LOCAL_SIZE, &constants, program);
}

static vkn_status create_forward(struct probe *probe)
{
    const struct setup *setup = &probe->setup;
    const struct pass *forward[FIELD_MAX_PASSES];
    size_t count = field_list(&setup->model, &setup->model.kind->forward, forward);
    for (; probe->forward_count < count; probe->forward_count++) {
        const struct pass *pass = forward[probe->forward_count];
        BASE_TRY(field_backend_create_program(
            probe->device, &setup->backend, pass->name, pass->variant, PASS_LOCAL_SIZE,
            &setup->specialization, &probe->forward[probe->forward_count]));
    }
    return probe_create_forward(&probe->of, true, &probe->find_density);
}

vkn_status probe_create(const vkn_renderer *renderer, struct probe *probe)
{
    bool cpu = gpu_device_capabilities(renderer->device)->type == GPU_CPU;
    return probe_create_for(renderer, &renderer->setup, cpu ? CPU_SAMPLES : GPU_SAMPLES, probe);
}

vkn_status probe_create_for(const vkn_renderer *renderer, const struct setup *setup,
                            uint32_t capacity, struct probe *probe)
{
    *probe = (struct probe){.of = render_field_of(renderer)};
    probe->device = probe->of.device;
    probe->setup = *setup;
    probe->of.setup = &probe->setup;
    probe->capacity = capacity;
    probe->setup.constants.ray_capacity = probe->capacity;
    probe->setup.constants.sample_capacity = probe->capacity;
    const struct buffer_counts counts = setup_counts(&probe->setup);
    BASE_TRY(buffers_create(probe->device, BUFFERS_OF_PROBE, OF_PROBE, &counts, &probe->buffers));
    BASE_TRY(gpu_upload(probe->device, &probe->buffers.at[BIND_CONFIG], 0, &probe->setup.constants,
                        sizeof probe->setup.constants));
    return create_forward(probe);
}

void probe_destroy(struct probe *probe)
{
    for (size_t i = 0; i < BASE_COUNT(probe->forward); i++)
        gpu_program_destroy(&probe->forward[i]);
    gpu_program_destroy(&probe->find_density);
    buffers_destroy(&probe->buffers);
}

void probe_bind(const struct probe *probe, const struct gpu_buffer *buffers[GPU_BINDINGS])
{
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        if (probe->of.buffers[i])
            buffers[i] = probe->of.buffers[i];
    buffers_bind(&probe->buffers, OF_PROBE, buffers);
}

void probe_record(const struct probe *probe, struct gpu_recording *recording,
                  const struct gpu_bindings *bindings, uint32_t count, bool color)
{
    uint32_t most = count / PASS_LOCAL_SIZE + 1;
    uint32_t groups = probe->setup.constants.forward_groups;
    groups = most < groups ? most : groups;
    gpu_record_fill(recording, &probe->buffers.at[BIND_STATE], offsetof(struct State, sample_count),
                    4, count);
    gpu_record_barrier(recording);
    setup_record_forward(&probe->setup, recording, probe->forward,
                         color ? NULL : probe->find_density, bindings, groups);
}
