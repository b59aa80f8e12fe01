#include "render/probe.h"

#define LOCAL_SIZE_PROBE 64u
#define CPU_SAMPLES      (1u << 15)
#define GPU_SAMPLES      (1u << 18)

static vkn_status allocate(struct probe *probe)
{
    const struct field_model *model = probe->of.model;
    uint64_t count = probe->capacity;
    uint64_t features = count * model->levels * model->features * (probe->of.path->half ? 2 : 4);
    const struct gpu_buffer_request requests[] = {
        {&probe->config, "probe config", sizeof(struct Config), GPU_DEVICE},
        {&probe->state, "probe state", sizeof(struct State), GPU_DEVICE},
        {&probe->rays, "probe rays", count * sizeof(struct Ray), GPU_DEVICE},
        {&probe->samples, "probe samples", count * sizeof(struct Sample), GPU_DEVICE},
        {&probe->features, "probe features", features, GPU_DEVICE},
        {&probe->field, "probe field values", count * 16, GPU_DEVICE},
    };
    return gpu_arena_create(probe->device, requests, BASE_COUNT(requests), &probe->arena);
}

vkn_status probe_create_forward(const struct render_field *of, bool density_only,
                                struct gpu_program **program)
{
    struct gpu_constants constants = of->specialization;
    constants.values[SPEC_DENSITY_ONLY - 2] = density_only;
    return field_path_create_program(of->device, of->path, "field_forward", FIELD_FORWARD,
                                     LOCAL_SIZE_PROBE, &constants, program);
}

vkn_status probe_create(const vkn_renderer *renderer, struct probe *probe)
{
    *probe = (struct probe){.of = render_field_of(renderer)};
    probe->device = probe->of.device;
    bool cpu = gpu_device_capabilities(probe->device)->type == GPU_CPU;
    probe->capacity = cpu ? CPU_SAMPLES : GPU_SAMPLES;
    probe->constants = probe->of.constants;
    probe->constants.ray_capacity = probe->constants.sample_capacity = probe->capacity;
    BASE_TRY(allocate(probe));
    BASE_TRY(
        gpu_upload(probe->device, &probe->config, 0, &probe->constants, sizeof probe->constants));
    BASE_TRY(field_path_create_program(probe->device, probe->of.path, "encode_samples",
                                       FIELD_COPIES, LOCAL_SIZE_PROBE, &probe->of.specialization,
                                       &probe->encode));
    BASE_TRY(probe_create_forward(&probe->of, true, &probe->find_density));
    return probe_create_forward(&probe->of, false, &probe->find_color);
}

void probe_destroy(struct probe *probe)
{
    gpu_program_destroy(&probe->encode);
    gpu_program_destroy(&probe->find_density);
    gpu_program_destroy(&probe->find_color);
    gpu_arena_destroy(&probe->arena);
}

void probe_bind(const struct probe *probe, const struct gpu_buffer *buffers[GPU_BINDINGS])
{
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        if (probe->of.buffers[i])
            buffers[i] = probe->of.buffers[i];
    buffers[BIND_CONFIG] = &probe->config;
    buffers[BIND_STATE] = &probe->state;
    buffers[BIND_RAYS] = &probe->rays;
    buffers[BIND_SAMPLES] = &probe->samples;
    buffers[BIND_FEATURES] = &probe->features;
    buffers[BIND_FIELD] = &probe->field;
}

void probe_record(const struct probe *probe, struct gpu_recording *recording,
                  const struct gpu_bindings *bindings, uint32_t count, bool color)
{
    uint32_t most = count / LOCAL_SIZE_PROBE + 1;
    uint32_t groups =
        most < probe->constants.forward_groups ? most : probe->constants.forward_groups;
    gpu_record_fill(recording, &probe->state, offsetof(struct State, sample_count), 4, count);
    gpu_record_barrier(recording);
    gpu_record_dispatch(recording, probe->encode, bindings, NULL, 0, groups);
    gpu_record_barrier(recording);
    gpu_record_dispatch(recording, color ? probe->find_color : probe->find_density, bindings, NULL,
                        0, groups);
    gpu_record_barrier(recording);
}
