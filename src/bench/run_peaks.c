/* Measures the peak rates for a profiled run: bench_measure_peaks. */
#include "bench/bench.h"

#include <cjson/cJSON.h>

#include "bench/internal.h"
#include "field/field.h"
#include "step/step.h"
#include "report/report.h"

/* ---- multiply-adds and copies: kernels of vknerf bench -------------------------------------- */

static bool find_backend(const struct bench *bench, const struct field_backend *backend,
                         struct bench_backend *found)
{
    struct bench_backend all[BENCH_MAX_BACKENDS];
    uint32_t count = bench_list_backends(bench->capabilities, bench->params, all);
    for (uint32_t i = 0; i < count; i++) {
        const struct gpu_matrix_shape *shape = &all[i].shape;
        bool same =
            backend->precision != VKN_PRECISION_COOPMAT ||
            (shape->m == backend->shape.m && shape->n == backend->shape.n &&
             shape->k == backend->shape.k && all[i].f16_accumulate == backend->f16_accumulate);
        if (!same || all[i].conversions)
            continue;
        *found = all[i];
        return true;
    }
    return false;
}

static vkn_status measure_rates(struct gpu_device *device, const struct field_backend *backend,
                                struct cost_peaks *peaks)
{
    static const struct vkn_job quietly = {.quiet = true};
    const struct vkn_bench_params params = {
        .job = &quietly, .precision = backend->precision, .quick = true, .flexible = true};
    struct bench bench = {
        .params = &params,
        .device = device,
        .capabilities = gpu_device_capabilities(device),
        .is_cpu = gpu_device_capabilities(device)->type == GPU_CPU,
        .results = cJSON_CreateArray(),
    };
    bench.backend_count = find_backend(&bench, backend, &bench.backends[0]);
    vkn_status status = report_progress_begin(NULL, 0, 0, &bench.progress);
    if (status == VKN_OK)
        status = bench_peaks(&bench);
    report_progress_end(&bench.progress);
    cJSON_Delete(bench.results);
    peaks->flops = bench.backends[0].peak;
    peaks->bytes = bench.copy_peak;
    return status;
}

/* ---- atomics -------------------------------------------------------------------------------- */

#define WORDS (1u << 20) /* words of a level's table in the default model */

struct atomics {
    struct gpu_device *device;
    struct gpu_arena *arena;
    struct gpu_buffer sums;
    struct gpu_pipeline *pipeline;
    struct gpu_bindings *bindings;
    uint32_t groups, local_size;
};

static vkn_status prepare(struct atomics *atomics, const char *pipeline)
{
    const struct gpu_buffer_request request = {&atomics->sums, "sums", 4ull * WORDS, GPU_DEVICE};
    const struct gpu_pipeline_options options = {.name = pipeline,
                                                 .local_size = atomics->local_size};
    BASE_TRY(gpu_pipeline_create(atomics->device, &options, &atomics->pipeline));
    BASE_TRY(gpu_arena_create(atomics->device, &request, 1, &atomics->arena));
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {&atomics->sums};
    return gpu_bindings_create(atomics->device, buffers, &atomics->bindings);
}

/* Measures the time of `rounds` additions by each invocation, by the device clock if possible. */
static vkn_status time_rounds(const struct atomics *atomics, uint32_t rounds, double *seconds)
{
    struct gpu_recording *recording = NULL;
    const uint32_t push[] = {rounds, WORDS};
    double milliseconds, began = 0.0;
    const char *label;
    vkn_status status = gpu_record_begin(atomics->device, "atomics", 2, &recording);
    if (status == VKN_OK) {
        gpu_record_timestamp(recording, "atomics");
        gpu_record_dispatch(recording, atomics->pipeline, atomics->bindings, push, sizeof(push),
                            atomics->groups);
        gpu_record_timestamp(recording, NULL);
        status = gpu_record_end(recording);
    }
    if (status == VKN_OK) {
        began = base_seconds();
        status = gpu_submit(recording);
    }
    if (status == VKN_OK)
        status = gpu_wait(recording);
    *seconds = base_seconds() - began;
    if (status == VKN_OK && gpu_recording_times(recording, &label, &milliseconds, 1))
        *seconds = 1e-3 * milliseconds;
    gpu_recording_destroy(&recording);
    return status;
}

/* Doubles the additions until a dispatch takes long enough; then takes the fastest of three. */
static vkn_status time_atomics(const struct atomics *atomics, double *per_second)
{
    double seconds = 0.0, enough = 2e-3,
           invocations = (double)atomics->groups * atomics->local_size;
    uint32_t rounds = 16;
    for (; rounds < 1u << 16 && seconds < enough; rounds *= 2)
        BASE_TRY(time_rounds(atomics, rounds, &seconds));
    for (int i = 0; i < 3; i++) {
        BASE_TRY(time_rounds(atomics, rounds, &seconds));
        double rate = seconds > 0.0 ? invocations * rounds / seconds : 0.0;
        *per_second = rate > *per_second ? rate : *per_second;
    }
    return VKN_OK;
}

static vkn_status measure_atomics(struct gpu_device *device, const struct field_backend *backend,
                                  struct cost_peaks *peaks)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    struct atomics atomics = {
        .device = device,
        .groups = capabilities->type == GPU_CPU ? 64 : 4096,
        .local_size = 64,
    };
    bool float_atomics = backend->sums == VKN_SUMS_F32 && capabilities->float_atomic_add;
    vkn_status status = prepare(&atomics, float_atomics ? "gpu_atomics_float" : "gpu_atomics");
    if (status == VKN_OK)
        status = time_atomics(&atomics, &peaks->atomics);
    gpu_bindings_destroy(&atomics.bindings);
    gpu_pipeline_destroy(&atomics.pipeline);
    gpu_arena_destroy(&atomics.arena);
    return status;
}

vkn_status bench_measure_peaks(struct gpu_device *device, const struct field_backend *backend,
                               struct cost_peaks *peaks)
{
    *peaks = (struct cost_peaks){0};
    BASE_TRY(measure_rates(device, backend, peaks));
    return measure_atomics(device, backend, peaks);
}
