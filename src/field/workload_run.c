/* A path's programs on the workload. */
#include <math.h>
#include <stdlib.h>

#include "field/workload_parts.h"

/* A path on the device. */
struct attempt {
    struct field_workload *work;
    const struct field_path *path;
    struct Config constants;
    struct gpu_constants specialization;
    struct gpu_arena *arena;
    struct gpu_buffer buffers[BIND_COUNT];
    struct gpu_bindings *bindings;
    char forward_name[FIELD_PROGRAM_NAME], backward_name[FIELD_PROGRAM_NAME];
    struct gpu_program *encode, *forward, *backward, *round_parameters;
};

uint64_t workload_features(const struct field_workload *work)
{
    return (uint64_t)work->sample_count * work->model.levels * work->model.features;
}

/* ---- an attempt -------------------------------------------------------------------------- */

static void configure(struct attempt *attempt)
{
    const struct field_workload *work = attempt->work;
    attempt->specialization.count = SPEC_COUNT - 2;
    field_configure(&work->config, &work->model, &attempt->constants, &attempt->specialization);
    field_path_configure(attempt->path, &attempt->specialization);
    attempt->specialization.values[SPEC_DETERMINISTIC - 2] = work->config.deterministic;
    attempt->constants.aabb_scale = (float)work->config.scene.aabb_scale;
    attempt->constants.ray_capacity = WORKLOAD_RAYS;
    attempt->constants.sample_capacity = work->sample_count;
    attempt->constants.forward_groups = work->forward_groups;
    attempt->constants.backward_groups = work->backward_groups;
}

static vkn_status allocate(struct attempt *attempt)
{
    const struct field_workload *work = attempt->work;
    const struct field_path *path = attempt->path;
    uint64_t params = 4ull * work->model.param_count, samples = work->sample_count;
    const uint64_t sizes[BIND_COUNT] = {
        [BIND_CONFIG] = sizeof(struct Config),
        [BIND_STATE] = sizeof(struct State),
        [BIND_RAYS] = WORKLOAD_RAYS * sizeof(struct Ray),
        [BIND_SAMPLES] = samples * sizeof(struct Sample),
        [BIND_FIELD] = samples * 16,
        [BIND_LIVE] = samples * 4,
        [BIND_PARAMS] = params,
        [BIND_HALVES] = path->half ? params / 2 : 0,
        [BIND_PARTIALS] = 4ull * work->backward_groups * work->model.mlp_params,
        [BIND_SCRATCH] = work->backward_groups * path->scratch_bytes,
        [BIND_FEATURES] = workload_features(work) * (path->half ? 2 : 4),
    };
    struct gpu_buffer_request requests[BIND_COUNT];
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {NULL};
    uint32_t count = 0;
    for (uint32_t i = 0; i < BIND_COUNT; i++) {
        if (!sizes[i])
            continue;
        requests[count++] = (struct gpu_buffer_request){&attempt->buffers[i], "kernel self-test",
                                                        sizes[i], GPU_DEVICE};
        buffers[i] = &attempt->buffers[i];
    }
    BASE_TRY(gpu_arena_create(work->device, requests, count, &attempt->arena));
    return gpu_bindings_create(work->device, buffers, &attempt->bindings);
}

static vkn_status put(struct attempt *attempt, uint32_t binding, const void *data)
{
    const struct gpu_buffer *buffer = &attempt->buffers[binding];
    return gpu_upload(attempt->work->device, buffer, 0, data, buffer->size);
}

static vkn_status upload(struct attempt *attempt)
{
    const struct field_workload *work = attempt->work;
    struct State state = {
        .sample_count = work->sample_count,
        .live_count = work->sample_count,
        .ray_count = WORKLOAD_RAYS,
        .loss_scale = 1,
    };
    BASE_TRY(put(attempt, BIND_CONFIG, &attempt->constants));
    BASE_TRY(put(attempt, BIND_STATE, &state));
    BASE_TRY(put(attempt, BIND_RAYS, work->rays));
    BASE_TRY(put(attempt, BIND_SAMPLES, work->samples));
    BASE_TRY(put(attempt, BIND_LIVE, work->live));
    return put(attempt, BIND_PARAMS, work->params);
}

static vkn_status create_program(struct attempt *attempt, enum field_variant variant,
                                 const char *pass, struct gpu_program **program)
{
    return field_path_create_program(attempt->work->device, attempt->path, pass, variant,
                                     WORKLOAD_LOCAL_SIZE, &attempt->specialization, program);
}

static vkn_status create_programs(struct attempt *attempt)
{
    if (attempt->path->half)
        BASE_TRY(
            create_program(attempt, FIELD_SAME, "round_parameters", &attempt->round_parameters));
    BASE_TRY(create_program(attempt, FIELD_COPIES, "encode_samples", &attempt->encode));
    BASE_TRY(create_program(attempt, FIELD_VALUES, "field_forward", &attempt->forward));
    return create_program(attempt, FIELD_BACKWARD, "field_backward", &attempt->backward);
}

static void attempt_close(struct attempt *attempt)
{
    gpu_program_destroy(&attempt->encode);
    gpu_program_destroy(&attempt->forward);
    gpu_program_destroy(&attempt->backward);
    gpu_program_destroy(&attempt->round_parameters);
    gpu_bindings_destroy(&attempt->bindings);
    gpu_arena_destroy(&attempt->arena);
}

/* ---- running ----------------------------------------------------------------------------- */

/* The f16 copies; with two wrong weights for a program that a test wants to fail. */
static vkn_status round_parameters(struct attempt *attempt, const char *program)
{
    if (!attempt->path->half)
        return VKN_OK;
    struct gpu_recording *recording = NULL;
    struct Push none = {0};
    vkn_status status = gpu_record_begin(attempt->work->device, "round", 0, &recording);
    if (status == VKN_OK) {
        gpu_record_dispatch(recording, attempt->round_parameters, attempt->bindings, &none,
                            sizeof none, 256);
        status = gpu_run_once(recording);
    }
    gpu_recording_destroy(&recording);
    const uint32_t eights = 0x48004800u;
    if (status == VKN_OK && gpu_self_test_breaks(program))
        status = gpu_upload(attempt->work->device, &attempt->buffers[BIND_HALVES], 0, &eights,
                            sizeof eights);
    return status;
}

/* Outputs that a program leaves untouched are not numbers. */
static vkn_status poison(struct attempt *attempt, uint32_t binding)
{
    struct gpu_recording *recording = NULL;
    vkn_status status = gpu_record_begin(attempt->work->device, "poison", 0, &recording);
    if (status == VKN_OK) {
        gpu_record_fill(recording, &attempt->buffers[binding], 0, UINT64_MAX, UINT32_MAX);
        status = gpu_run_once(recording);
    }
    gpu_recording_destroy(&recording);
    return status;
}

/* The shortest of some runs; `seconds` of them at least, for clocks to rise. */
static vkn_status run_repeatedly(struct gpu_recording *recording, uint32_t runs, double seconds,
                                 double *milliseconds)
{
    double first = base_seconds();
    *milliseconds = HUGE_VAL;
    for (uint32_t i = 0; i < runs || base_seconds() - first < seconds; i++) {
        double began = base_seconds(), measured = 0;
        BASE_TRY(gpu_submit(recording));
        BASE_TRY(gpu_wait(recording));
        const char *label = NULL;
        if (!gpu_recording_times(recording, &label, &measured, 1))
            measured = 1e3 * (base_seconds() - began);
        *milliseconds = fmin(*milliseconds, measured);
    }
    return VKN_OK;
}

/* Runs it on features fresh from the grid: field_backward replaces them by their gradients. */
static vkn_status run_program(struct attempt *attempt, const struct gpu_program *program,
                              const char *name, uint32_t groups, double *milliseconds)
{
    BASE_TRY(round_parameters(attempt, name));
    struct gpu_recording *recording = NULL;
    struct Push none = {0};
    vkn_status status = gpu_record_begin(attempt->work->device, "kernel self-test", 2, &recording);
    if (status == VKN_OK) {
        gpu_record_dispatch(recording, attempt->encode, attempt->bindings, &none, sizeof none,
                            attempt->work->forward_groups);
        gpu_record_barrier(recording);
        gpu_record_timestamp(recording, "run");
        gpu_record_dispatch(recording, program, attempt->bindings, &none, sizeof none, groups);
        gpu_record_barrier(recording);
        gpu_record_timestamp(recording, NULL);
        status = gpu_record_end(recording);
    }
    if (status == VKN_OK)
        status =
            run_repeatedly(recording, attempt->work->runs, attempt->work->seconds, milliseconds);
    gpu_recording_destroy(&recording);
    return status;
}

static float from_half(uint16_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    float size = exponent == 31  ? mantissa ? NAN : INFINITY
                 : exponent == 0 ? ldexpf((float)mantissa, -24)
                                 : ldexpf((float)(1024 + mantissa), exponent - 25);
    return half >> 15 ? -size : size;
}

static vkn_status download_features(struct attempt *attempt, float *features)
{
    struct gpu_device *device = attempt->work->device;
    const struct gpu_buffer *buffer = &attempt->buffers[BIND_FEATURES];
    if (!attempt->path->half)
        return gpu_download(device, buffer, 0, features, buffer->size);
    uint16_t *halves = base_alloc(buffer->size, 1);
    if (!halves)
        return VKN_ERROR;
    vkn_status status = gpu_download(device, buffer, 0, halves, buffer->size);
    for (uint64_t i = 0; status == VKN_OK && i < workload_features(attempt->work); i++)
        features[i] = from_half(halves[i]);
    free(halves);
    return status;
}

/* Adds up the workgroups' sums. */
static vkn_status download_weights(struct attempt *attempt, float *weights)
{
    const struct field_workload *work = attempt->work;
    uint64_t size = 4ull * work->model.mlp_params;
    float *partial = base_alloc(work->model.mlp_params, sizeof *partial);
    vkn_status status = partial ? VKN_OK : VKN_ERROR;
    for (uint32_t group = 0; status == VKN_OK && group < work->backward_groups; group++) {
        status = gpu_download(work->device, &attempt->buffers[BIND_PARTIALS], group * size, partial,
                              size);
        for (uint32_t i = 0; status == VKN_OK && i < work->model.mlp_params; i++)
            weights[i] = (group ? weights[i] : 0.0f) + partial[i];
    }
    free(partial);
    return status;
}

static vkn_status run(struct attempt *attempt, struct workload_results *results,
                      double *milliseconds)
{
    const struct field_workload *work = attempt->work;
    double forward = 0, backward = 0;
    BASE_TRY(upload(attempt));
    BASE_TRY(poison(attempt, BIND_FIELD));
    BASE_TRY(run_program(attempt, attempt->forward, attempt->forward_name, work->forward_groups,
                         &forward));
    BASE_TRY(gpu_download(work->device, &attempt->buffers[BIND_FIELD], 0, results->values,
                          16ull * work->sample_count));
    BASE_TRY(put(attempt, BIND_FIELD, work->gradients));
    BASE_TRY(poison(attempt, BIND_PARTIALS));
    BASE_TRY(poison(attempt, BIND_FEATURES));
    BASE_TRY(run_program(attempt, attempt->backward, attempt->backward_name, work->backward_groups,
                         &backward));
    *milliseconds = forward + backward;
    BASE_TRY(download_weights(attempt, results->weights));
    return download_features(attempt, results->features);
}

vkn_status workload_run(struct field_workload *work, const struct field_path *path,
                        struct workload_results *results, double *milliseconds, bool *compiled)
{
    struct attempt attempt = {.work = work, .path = path};
    field_path_program(path, "field_forward", FIELD_VALUES, attempt.forward_name);
    field_path_program(path, "field_backward", FIELD_BACKWARD, attempt.backward_name);
    configure(&attempt);
    vkn_status status = create_programs(&attempt);
    *compiled = status == VKN_OK || status == VKN_NO_DEVICE;
    if (status == VKN_OK)
        status = allocate(&attempt);
    if (status == VKN_OK)
        status = run(&attempt, results, milliseconds);
    attempt_close(&attempt);
    return status;
}
