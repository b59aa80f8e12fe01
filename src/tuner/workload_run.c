/* Creates a backend's pipelines and buffers for the workload, and runs its passes. */
#include "tuner/internal.h"

#include <math.h>
#include <stdlib.h>

uint64_t workload_features(const struct field_workload *work)
{
    return (uint64_t)work->sample_count * work->model.levels * work->model.features;
}

/* ---- pipelines and buffers --------------------------------------------------------------- */

static void configure(struct workload_attempt *attempt)
{
    const struct field_workload *work = attempt->work;
    attempt->specialization.count = SPEC_COUNT;
    field_configure(&work->config, &work->model, &attempt->constants, &attempt->specialization);
    field_backend_configure(&attempt->backend, &attempt->specialization);
    attempt->specialization.values[SPEC_DETERMINISTIC] = work->config.deterministic;
    attempt->constants.aabb_scale = (float)work->config.scene.aabb_scale;
    attempt->constants.ray_capacity = WORKLOAD_RAYS;
    attempt->constants.sample_capacity = work->sample_count;
    attempt->constants.forward_groups = attempt->groups[FIELD_PASS_FORWARD];
    attempt->constants.backward_groups = attempt->partials;
    field_backend_place_panels(&attempt->backend, &work->model, &attempt->constants);
}

static uint32_t groups_of(uint32_t samples, uint32_t rows, uint32_t most)
{
    uint32_t tiles = (samples + rows - 1) / rows;
    return tiles < most ? tiles : most;
}

#define INPUTS (BUFFERS(CONFIG) | BUFFERS(STATE) | BUFFERS(RAYS) | BUFFERS(SAMPLES) | BUFFERS(LIVE))
#define OUTPUTS                                                                          \
    (BUFFERS(FIELD) | BUFFERS(FIELD_GRADIENTS) | BUFFERS(FEATURES) | BUFFERS(PARTIALS) | \
     BUFFERS(SCRATCH))
#define WEIGHTS (BUFFERS(PARAMS) | BUFFERS(F16_PARAMS))
#define SUMS    (BUFFERS(GRADIENTS) | BUFFERS(ACCUMULATORS))

static vkn_status allocate(struct workload_attempt *attempt)
{
    const struct field_workload *work = attempt->work;
    struct buffer_counts counts = {
        .rays = WORKLOAD_RAYS,
        .samples = work->sample_count,
        .groups = attempt->partials,
    };
    field_size_buffers(&work->model, &counts);
    field_backend_size_buffers(&attempt->backend, &work->model, &counts);
    const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
    uint32_t mask = INPUTS | OUTPUTS | WEIGHTS | (work->times_reduction ? SUMS : 0);
    BASE_TRY(buffers_create(work->device, BUFFERS_OF_TRIAL, mask, &counts, &attempt->buffers));
    buffers_bind(&attempt->buffers, mask, bound);
    return gpu_bindings_create(work->device, bound, &attempt->bindings);
}

static vkn_status put(struct workload_attempt *attempt, uint32_t binding, const void *data)
{
    const struct gpu_buffer *buffer = &attempt->buffers.at[binding];
    return gpu_upload(attempt->work->device, buffer, 0, data, buffer->size);
}

static vkn_status upload(struct workload_attempt *attempt)
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

static vkn_status create_pipelines(struct workload_attempt *attempt,
                                   const bool wanted[FIELD_PASSES])
{
    const struct field_model *model = &attempt->work->model;
    struct field_pass_request requests[FIELD_PASSES * WORKLOAD_PASSES + 2];
    size_t count = 0, timed;
    if (attempt->backend.copies)
        requests[count++] = (struct field_pass_request){
            "round_parameters", &attempt->round_parameters, FIELD_NO_VARIANT};
    for (int pass = 0; pass < FIELD_PASSES; pass++) {
        const struct pass *passes[WORKLOAD_PASSES];
        size_t listed =
            wanted[pass] ? workload_list(model, (enum field_trial_pass)pass, passes, &timed) : 0;
        for (size_t i = 0; i < listed; i++)
            requests[count++] = (struct field_pass_request){
                passes[i]->name, &attempt->pipelines[pass][i], passes[i]->variant};
    }
    /* Sums of weight gradients over workgroups; sums of the grid are not part of the trial. */
    if (wanted[FIELD_PASS_BACKWARD] && attempt->work->times_reduction)
        requests[count++] = (struct field_pass_request){
            field_find_pass(model, &model->kind->backward, FIELD_REDUCE)->name, &attempt->reduce,
            FIELD_NO_VARIANT};
    return field_backend_create_pipelines(attempt->work->device, &attempt->backend, requests, count,
                                          WORKLOAD_LOCAL_SIZE, &attempt->specialization);
}

/* Prepares everything that needs no device. */
static void prepare(struct workload_attempt *attempt, struct field_workload *work,
                    const struct field_backend *backend)
{
    uint32_t samples = work->sample_count;
    *attempt = (struct workload_attempt){.work = work, .backend = *backend};
    /* As begin_step does: a workgroup per WORKLOAD_LOCAL_SIZE samples, up to the backend's limit,
     * also for shaders that loop over samples. */
    attempt->groups[FIELD_PASS_GRID] = attempt->groups[FIELD_PASS_FORWARD] =
        groups_of(samples, WORKLOAD_LOCAL_SIZE, backend->forward_groups);
    if (work->model.fused == 0) {
        attempt->groups[FIELD_PASS_BACKWARD] = attempt->groups[FIELD_PASS_FORWARD];
        attempt->partials = backend->backward_groups;
    } else {
        attempt->groups[FIELD_PASS_BACKWARD] = attempt->partials =
            groups_of(samples, backend->backward_rows, backend->backward_groups);
    }
    for (int pass = 0; pass < FIELD_PASSES; pass++) {
        const struct pass *tried = workload_pass(&work->model, (enum field_trial_pass)pass);
        if (tried)
            field_backend_shader_name(backend, tried->name, tried->variant, attempt->names[pass]);
    }
    configure(attempt);
}

vkn_status workload_open(struct workload_attempt *attempt, struct field_workload *work,
                         const struct field_backend *backend, const bool wanted[FIELD_PASSES],
                         bool *compiled)
{
    prepare(attempt, work, backend);
    vkn_status status = create_pipelines(attempt, wanted);
    *compiled = status == VKN_OK || status == VKN_NO_DEVICE;
    BASE_TRY(status);
    BASE_TRY(allocate(attempt));
    return upload(attempt);
}

void workload_close(struct workload_attempt *attempt)
{
    for (int pass = 0; pass < FIELD_PASSES; pass++)
        for (size_t i = 0; i < WORKLOAD_PASSES; i++)
            gpu_pipeline_destroy(&attempt->pipelines[pass][i]);
    gpu_pipeline_destroy(&attempt->reduce);
    gpu_pipeline_destroy(&attempt->round_parameters);
    gpu_bindings_destroy(&attempt->bindings);
    buffers_destroy(&attempt->buffers);
}

vkn_status workload_compile(struct field_workload *work, const struct field_backend *backend)
{
    const bool both[FIELD_PASSES] = {true, true};
    struct workload_attempt attempt;
    prepare(&attempt, work, backend);
    vkn_status status = create_pipelines(&attempt, both);
    workload_close(&attempt);
    return status;
}

/* ---- running ----------------------------------------------------------------------------- */

/* Overwrites the first two weights if a test injects a fault into this shader or into tuned
 * backends. */
static vkn_status break_weights(struct workload_attempt *attempt, const char *pipeline)
{
    const uint32_t f16_fours[2] = {0x48004800u, 0x48004800u};
    const float floats[2] = {8, 8};
    bool f16 = attempt->backend.copies;
    /* The transposed copy begins with the same weight. */
    uint64_t offsets[2] = {0, f16 ? 2ull * attempt->backend.transposed : 0};
    if (!(attempt->backend.f16 && gpu_fault_injected(pipeline)) &&
        !(attempt->backend.tuned && gpu_fault_injected("tuning")))
        return VKN_OK;
    for (int i = 0; i < 2; i++)
        BASE_TRY(gpu_upload(attempt->work->device,
                            &attempt->buffers.at[f16 ? BIND_F16_PARAMS : BIND_PARAMS], offsets[i],
                            f16 ? (const void *)f16_fours : floats, sizeof floats));
    return VKN_OK;
}

static vkn_status round_parameters(struct workload_attempt *attempt, const char *pipeline)
{
    struct Push none = {0};
    if (attempt->backend.copies) {
        GPU_ONCE(attempt->work->device, "round");
        gpu_record_dispatch(recording, attempt->round_parameters, attempt->bindings, &none,
                            sizeof none, 256);
        BASE_TRY(gpu_run_once(&recording));
    }
    return break_weights(attempt, pipeline);
}

/* Fills the buffer with NaN, so that outputs that a shader does not write are noticed. */
static vkn_status poison(struct workload_attempt *attempt, uint32_t binding)
{
    GPU_ONCE(attempt->work->device, "poison");
    gpu_record_fill(recording, &attempt->buffers.at[binding], 0, UINT64_MAX, UINT32_MAX);
    return gpu_run_once(&recording);
}

vkn_status workload_time(struct gpu_recording *recording, double *milliseconds)
{
    double began = base_seconds();
    BASE_TRY(gpu_submit(recording));
    BASE_TRY(gpu_wait(recording));
    const char *label = NULL;
    if (!gpu_recording_times(recording, &label, milliseconds, 1))
        *milliseconds = 1e3 * (base_seconds() - began);
    return VKN_OK;
}

/* Returns the shortest of at least `runs` runs; goes on for `seconds`, so that clocks can rise. */
static vkn_status run_repeatedly(struct gpu_recording *recording, uint32_t runs, double seconds,
                                 double *milliseconds)
{
    double began = base_seconds(), measured = 0;
    *milliseconds = HUGE_VAL;
    for (uint32_t i = 0; i < runs || base_seconds() - began < seconds; i++) {
        BASE_TRY(workload_time(recording, &measured));
        *milliseconds = fmin(*milliseconds, measured);
    }
    return VKN_OK;
}

/* Encodes the features before each run, because field_backward replaces them by their gradients. */
static void record_trial(struct workload_attempt *attempt, enum field_trial_pass pass,
                         struct gpu_recording *recording)
{
    const struct field_model *model = &attempt->work->model;
    const struct pass *passes[WORKLOAD_PASSES];
    struct pass_dispatch dispatches[WORKLOAD_PASSES];
    struct repeats repeats = {.samples = attempt->work->sample_count};
    size_t timed, count = workload_list(model, pass, passes, &timed);
    for (size_t i = 0; i < count; i++)
        dispatches[i] = (struct pass_dispatch){
            passes[i], attempt->pipelines[pass][i],
            attempt->groups[i < timed || pass == FIELD_PASS_GRID ? FIELD_PASS_GRID : pass]};
    field_repeats(model, &repeats);
    passes_record(&repeats, recording, dispatches, timed, attempt->bindings);
    gpu_record_timestamp(recording, "run");
    passes_record(&repeats, recording, dispatches + timed, count - timed, attempt->bindings);
}

vkn_status workload_record(struct workload_attempt *attempt, enum field_trial_pass pass,
                           struct gpu_recording **created)
{
    struct gpu_recording *recording = NULL;
    struct Push none = {0};
    uint32_t parameters = attempt->work->model.mlp_params;
    BASE_TRY(gpu_record_begin(attempt->work->device, "kernel self-test", 2, &recording));
    record_trial(attempt, pass, recording);
    if (pass == FIELD_PASS_BACKWARD && attempt->reduce) {
        gpu_record_dispatch(recording, attempt->reduce, attempt->bindings, &none, sizeof none,
                            (parameters + WORKLOAD_LOCAL_SIZE - 1) / WORKLOAD_LOCAL_SIZE);
        gpu_record_barrier(recording);
    }
    gpu_record_timestamp(recording, NULL);
    vkn_status status = gpu_record_end(recording);
    if (status != VKN_OK)
        gpu_recording_destroy(&recording);
    *created = recording;
    return status;
}

static vkn_status run_pass(struct workload_attempt *attempt, enum field_trial_pass pass,
                           double *milliseconds)
{
    struct gpu_recording *recording = NULL;
    BASE_TRY(round_parameters(attempt, attempt->names[pass]));
    vkn_status status = workload_record(attempt, pass, &recording);
    if (status == VKN_OK)
        status =
            run_repeatedly(recording, attempt->work->runs, attempt->work->seconds, milliseconds);
    gpu_recording_destroy(&recording);
    return status;
}

static vkn_status download_features(struct workload_attempt *attempt, float *features)
{
    struct gpu_device *device = attempt->work->device;
    const struct gpu_buffer *buffer = &attempt->buffers.at[BIND_FEATURES];
    uint64_t count = workload_features(attempt->work); /* layer activations can follow */
    if (count == 0)
        return VKN_OK;
    if (!attempt->backend.f16)
        return gpu_download(device, buffer, 0, features, count * sizeof *features);
    uint16_t *f16_values = base_alloc(count, sizeof *f16_values);
    if (!f16_values)
        return VKN_ERROR;
    vkn_status status = gpu_download(device, buffer, 0, f16_values, count * sizeof *f16_values);
    for (uint64_t i = 0; status == VKN_OK && i < count; i++)
        features[i] = base_from_f16(f16_values[i]);
    free(f16_values);
    return status;
}

static vkn_status download_weights(struct workload_attempt *attempt, float *weights)
{
    const struct field_workload *work = attempt->work;
    uint64_t size = 4ull * work->model.mlp_params;
    float *partial = base_alloc(work->model.mlp_params, sizeof *partial);
    vkn_status status = partial ? VKN_OK : VKN_ERROR;
    for (uint32_t group = 0; status == VKN_OK && group < attempt->partials; group++) {
        status = gpu_download(work->device, &attempt->buffers.at[BIND_PARTIALS], group * size,
                              partial, size);
        for (uint32_t i = 0; status == VKN_OK && i < work->model.mlp_params; i++)
            weights[i] = (group ? weights[i] : 0.0f) + partial[i];
    }
    free(partial);
    return status;
}

static vkn_status compute_forward(struct workload_attempt *attempt,
                                  struct workload_results *results, double *milliseconds)
{
    BASE_TRY(poison(attempt, BIND_FIELD));
    BASE_TRY(run_pass(attempt, FIELD_PASS_FORWARD, milliseconds));
    return gpu_download(attempt->work->device, &attempt->buffers.at[BIND_FIELD], 0, results->values,
                        16ull * attempt->work->sample_count);
}

vkn_status workload_compute(struct workload_attempt *attempt, enum field_trial_pass pass,
                            struct workload_results *results, double *milliseconds)
{
    if (pass == FIELD_PASS_FORWARD)
        return compute_forward(attempt, results, milliseconds);
    /* The gradients serve as colours, too: all are in (0, 1). */
    BASE_TRY(put(attempt, BIND_FIELD, attempt->work->gradients));
    BASE_TRY(put(attempt, BIND_FIELD_GRADIENTS, attempt->work->gradients));
    BASE_TRY(poison(attempt, BIND_PARTIALS));
    BASE_TRY(poison(attempt, BIND_FEATURES));
    BASE_TRY(run_pass(attempt, FIELD_PASS_BACKWARD, milliseconds));
    BASE_TRY(download_weights(attempt, results->weights));
    return download_features(attempt, results->features);
}
