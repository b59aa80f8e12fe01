#include "field/workload.h"

#include <math.h>
#include <stdlib.h>

#define LOCAL_SIZE   64u
#define RAYS         64u
#define MOST_ENTRIES 19u /* log2, of a level */

/* What a path computes. */
struct results {
    float (*values)[4]; /* rgb and raw density of a sample */
    float *weights;     /* gradients of the MLPs' weights, summed */
    float *features;    /* gradients of the grid's: [level][sample][feature] */
};

struct field_workload {
    struct gpu_device *device;
    struct vkn_config config;
    struct field_model model;
    uint32_t sample_count, forward_groups, backward_groups, runs;
    struct Ray *rays;
    struct Sample *samples;
    uint32_t *live;
    float (*gradients)[4]; /* of raw rgb and raw density */
    float *params;
    struct results expected; /* fp32's */
    double milliseconds;     /* fp32's */
};

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
    struct gpu_program *forward, *backward, *round_parameters;
};

/* ---- inputs ------------------------------------------------------------------------------------
 */

/* Knuth's 64-bit congruential generator; in [0, 1). */
static float next_unit(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) * (1.0f / 16777216.0f);
}

static void fill_samples(struct field_workload *work, uint64_t *random)
{
    float side = (float)work->config.scene.aabb_scale;
    for (uint32_t r = 0; r < RAYS; r++) {
        struct Ray *ray = &work->rays[r];
        float square = 0;
        for (int i = 0; i < 3; i++) {
            ray->origin[i] = 0.5f + side * 0.4f * (next_unit(random) - 0.5f);
            ray->direction[i] = next_unit(random) - 0.5f + (i == 0 ? 0.01f : 0.0f);
            square += ray->direction[i] * ray->direction[i];
        }
        for (int i = 0; i < 3; i++)
            ray->direction[i] /= sqrtf(square);
    }
    for (uint32_t s = 0; s < work->sample_count; s++) {
        work->live[s] = s;
        work->samples[s] = (struct Sample){0.3f * side * next_unit(random), s % RAYS};
        for (int i = 0; i < 4; i++)
            work->gradients[s][i] = 0.25f + 0.75f * next_unit(random);
    }
}

/* Every other hidden unit has positive weights, the rest negative ones: inputs are positive, so the
 * former pass the ReLU and the latter do not; outputs are positive again. Directions, whose
 * harmonics have either sign, count too little to turn any. Weights of a unit add up to about 1. */
static void fill_layer(const struct field_workload *work, const struct field_layer *layer,
                       bool first, bool last, bool color, uint64_t *random)
{
    uint32_t active = !first  ? layer->used_inputs / 2
                      : color ? work->config.mlp.geometry
                              : layer->used_inputs;
    for (uint32_t i = 0; i < layer->used_inputs; i++)
        for (uint32_t o = 0; o < layer->used_outputs; o++) {
            float u = next_unit(random), value = 3.0f * u * u / (float)active;
            if (first && color && i >= work->config.mlp.geometry)
                value *= 1.0f / 16;
            bool negative = !last && o % 2 == 1;
            work->params[layer->first + i * layer->outputs + o] = negative ? -value : value;
        }
}

static void fill_params(struct field_workload *work, uint64_t *random)
{
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t count = field_layers(&work->config, &work->model, layers);
    uint32_t density_end = work->config.mlp.density_layers + 1;
    for (uint32_t i = 0; i < count; i++)
        fill_layer(work, &layers[i], i == 0 || i == density_end,
                   i + 1 == density_end || i + 1 == count, i >= density_end, random);
    for (uint32_t i = work->model.mlp_params; i < work->model.param_count; i++)
        work->params[i] = 0.25f + 0.75f * next_unit(random);
}

/* ---- an attempt --------------------------------------------------------------------------------
 */

static void configure(struct attempt *attempt)
{
    const struct field_workload *work = attempt->work;
    attempt->specialization.count = SPEC_COUNT - 2;
    field_configure(&work->config, &work->model, &attempt->constants, &attempt->specialization);
    field_path_configure(attempt->path, &work->model, &attempt->constants,
                         &attempt->specialization);
    attempt->specialization.values[SPEC_DETERMINISTIC - 2] = work->config.deterministic;
    attempt->constants.aabb_scale = (float)work->config.scene.aabb_scale;
    attempt->constants.ray_capacity = RAYS;
    attempt->constants.sample_capacity = work->sample_count;
    attempt->constants.forward_groups = work->forward_groups;
    attempt->constants.backward_groups = work->backward_groups;
}

static uint64_t features_size(const struct field_workload *work)
{
    return (uint64_t)work->sample_count * work->model.levels * work->model.features;
}

static vkn_status allocate(struct attempt *attempt)
{
    const struct field_workload *work = attempt->work;
    const struct field_path *path = attempt->path;
    uint64_t params = 4ull * work->model.param_count, samples = work->sample_count;
    const uint64_t sizes[BIND_COUNT] = {
        [BIND_CONFIG] = sizeof(struct Config),
        [BIND_STATE] = sizeof(struct State),
        [BIND_RAYS] = RAYS * sizeof(struct Ray),
        [BIND_SAMPLES] = samples * sizeof(struct Sample),
        [BIND_FIELD] = samples * 16,
        [BIND_LIVE] = samples * 4,
        [BIND_PARAMS] = params,
        [BIND_HALVES] = path->half ? params / 2 : 0,
        [BIND_PARTIALS] = 4ull * work->backward_groups * work->model.mlp_params,
        [BIND_SCRATCH] = work->backward_groups * path->scratch_bytes,
        [BIND_FEATURE_GRADIENTS] = features_size(work) * (path->half ? 2 : 4),
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
        .ray_count = RAYS,
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
                                 const char *name, struct gpu_program **program)
{
    struct gpu_constants specialization = attempt->specialization;
    field_path_specialize(attempt->path, variant, &specialization);
    uint32_t local_size = variant == FIELD_BACKWARD ? attempt->path->backward_rows : LOCAL_SIZE;
    struct gpu_program_options options = {name, local_size, &specialization};
    return gpu_program_create(attempt->work->device, &options, program);
}

static vkn_status create_programs(struct attempt *attempt)
{
    if (attempt->path->half)
        BASE_TRY(
            create_program(attempt, FIELD_SAME, "round_parameters", &attempt->round_parameters));
    BASE_TRY(create_program(attempt, FIELD_VALUES, attempt->forward_name, &attempt->forward));
    return create_program(attempt, FIELD_BACKWARD, attempt->backward_name, &attempt->backward);
}

static void attempt_close(struct attempt *attempt)
{
    gpu_program_destroy(&attempt->forward);
    gpu_program_destroy(&attempt->backward);
    gpu_program_destroy(&attempt->round_parameters);
    gpu_bindings_destroy(&attempt->bindings);
    gpu_arena_destroy(&attempt->arena);
}

/* ---- running -----------------------------------------------------------------------------------
 */

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

static vkn_status run_repeatedly(struct gpu_recording *recording, uint32_t runs,
                                 double *milliseconds)
{
    *milliseconds = HUGE_VAL;
    for (uint32_t i = 0; i < runs; i++) {
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

static vkn_status run_program(struct attempt *attempt, const struct gpu_program *program,
                              const char *name, uint32_t groups, double *milliseconds)
{
    BASE_TRY(round_parameters(attempt, name));
    struct gpu_recording *recording = NULL;
    struct Push none = {0};
    vkn_status status = gpu_record_begin(attempt->work->device, "kernel self-test", 2, &recording);
    if (status == VKN_OK) {
        gpu_record_timestamp(recording, "run");
        gpu_record_dispatch(recording, program, attempt->bindings, &none, sizeof none, groups);
        gpu_record_barrier(recording);
        gpu_record_timestamp(recording, NULL);
        status = gpu_record_end(recording);
    }
    if (status == VKN_OK)
        status = run_repeatedly(recording, attempt->work->runs, milliseconds);
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
    const struct gpu_buffer *buffer = &attempt->buffers[BIND_FEATURE_GRADIENTS];
    if (!attempt->path->half)
        return gpu_download(device, buffer, 0, features, buffer->size);
    uint16_t *halves = base_alloc(buffer->size, 1);
    if (!halves)
        return VKN_ERROR;
    vkn_status status = gpu_download(device, buffer, 0, halves, buffer->size);
    for (uint64_t i = 0; status == VKN_OK && i < features_size(attempt->work); i++)
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

static vkn_status run(struct attempt *attempt, struct results *results, double *milliseconds)
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
    BASE_TRY(poison(attempt, BIND_FEATURE_GRADIENTS));
    BASE_TRY(run_program(attempt, attempt->backward, attempt->backward_name, work->backward_groups,
                         &backward));
    *milliseconds = forward + backward;
    BASE_TRY(download_weights(attempt, results->weights));
    return download_features(attempt, results->features);
}

/* ---- judging -----------------------------------------------------------------------------------
 */

/* What tests allow a path against exact results; rounding takes less than a fifth of it here. */
#define FORWARD_TOLERANCE  2e-3
#define BACKWARD_TOLERANCE 1e-2

static bool check_values(const struct field_workload *work, const struct results *results,
                         const char *program, struct field_trial *trial)
{
    static const char *const names[] = {"red", "green", "blue", "raw density"};
    for (uint32_t s = 0; s < work->sample_count; s++)
        for (int i = 0; i < 4; i++) {
            double got = (double)results->values[s][i], want = (double)work->expected.values[s][i];
            if (fabs(got - want) <= FORWARD_TOLERANCE * fmax(1, fabs(want)))
                continue;
            snprintf(trial->fault, sizeof trial->fault, "%s: %s of sample %u is %.4g, in fp32 %.4g",
                     program, names[i], s, got, want);
            return false;
        }
    return true;
}

/* Euclidean norms: of the difference, over the expected one. */
static double relative_error(const float *got, const float *want, uint64_t count)
{
    double error = 0, size = 0;
    for (uint64_t i = 0; i < count; i++) {
        double difference = (double)got[i] - (double)want[i];
        error += difference * difference;
        size += (double)want[i] * (double)want[i];
    }
    return sqrt(error / size);
}

static bool check_gradient(const char *what, uint32_t index, double error, const char *program,
                           struct field_trial *trial)
{
    if (error <= BACKWARD_TOLERANCE)
        return true;
    snprintf(trial->fault, sizeof trial->fault,
             "%s: gradients of %s %u are off fp32's by %.3g of their size", program, what, index,
             error);
    return false;
}

static bool check_gradients(const struct field_workload *work, const struct results *results,
                            const char *program, struct field_trial *trial)
{
    struct field_layer layers[FIELD_MAX_LAYERS];
    const struct results *want = &work->expected;
    uint32_t count = field_layers(&work->config, &work->model, layers);
    for (uint32_t i = 0; i < count; i++) {
        double error =
            relative_error(results->weights + layers[i].first, want->weights + layers[i].first,
                           (uint64_t)layers[i].inputs * layers[i].outputs);
        if (!check_gradient("layer", i, error, program, trial))
            return false;
    }
    uint64_t level_size = (uint64_t)work->sample_count * work->model.features;
    for (uint32_t i = 0; i < work->model.levels; i++) {
        double error = relative_error(results->features + i * level_size,
                                      want->features + i * level_size, level_size);
        if (!check_gradient("level", i, error, program, trial))
            return false;
    }
    return true;
}

/* ---- trials ------------------------------------------------------------------------------------
 */

static vkn_status results_create(const struct field_workload *work, struct results *results)
{
    results->values = base_alloc(work->sample_count, sizeof *results->values);
    results->weights = base_alloc(work->model.mlp_params, sizeof *results->weights);
    results->features = base_alloc(features_size(work), sizeof *results->features);
    return results->values && results->weights && results->features ? VKN_OK : VKN_ERROR;
}

static void results_destroy(struct results *results)
{
    free(results->values);
    free(results->weights);
    free(results->features);
}

/* *compiled: what fails later is not the path's fault. */
static vkn_status run_path(struct field_workload *work, const struct field_path *path,
                           struct results *results, double *milliseconds, bool *compiled)
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

vkn_status field_workload_try(struct field_workload *work, const struct field_path *path,
                              struct field_trial *trial)
{
    *trial = (struct field_trial){.milliseconds = work->milliseconds};
    if (path->precision == VKN_PRECISION_FP32)
        return VKN_OK;
    struct results results = {0};
    bool compiled = true;
    vkn_status status = results_create(work, &results);
    if (status == VKN_OK)
        status = run_path(work, path, &results, &trial->milliseconds, &compiled);
    if (!compiled) {
        snprintf(trial->fault, sizeof trial->fault, "%s", vkn_last_error());
        status = VKN_OK;
    } else if (status == VKN_OK) {
        char forward[FIELD_PROGRAM_NAME], backward[FIELD_PROGRAM_NAME];
        field_path_program(path, "field_forward", FIELD_VALUES, forward);
        field_path_program(path, "field_backward", FIELD_BACKWARD, backward);
        if (check_values(work, &results, forward, trial))
            check_gradients(work, &results, backward, trial);
    }
    results_destroy(&results);
    return status;
}

static vkn_status run_fp32(struct field_workload *work)
{
    struct field_path path;
    bool compiled;
    BASE_TRY(field_path_create(&work->config, &work->model, gpu_device_capabilities(work->device),
                               &path));
    BASE_TRY(results_create(work, &work->expected));
    BASE_TRY(run_path(work, &path, &work->expected, &work->milliseconds, &compiled));
    for (uint32_t s = 0; s < work->sample_count; s++)
        for (int i = 0; i < 4; i++)
            if (!isfinite(work->expected.values[s][i]))
                return base_fail(VKN_NO_DEVICE,
                                 "device \"%s\" fails the self-test: field_forward_fp32: sample "
                                 "%u is not finite; another version of its driver may help",
                                 gpu_device_capabilities(work->device)->name, s);
    return VKN_OK;
}

static vkn_status fill(struct field_workload *work)
{
    uint64_t random = 1;
    work->rays = base_alloc(RAYS, sizeof *work->rays);
    work->samples = base_alloc(work->sample_count, sizeof *work->samples);
    work->live = base_alloc(work->sample_count, sizeof *work->live);
    work->gradients = base_alloc(work->sample_count, sizeof *work->gradients);
    work->params = base_alloc(work->model.param_count, sizeof *work->params);
    if (!work->rays || !work->samples || !work->live || !work->gradients || !work->params)
        return VKN_ERROR;
    fill_samples(work, &random);
    fill_params(work, &random);
    return VKN_OK;
}

vkn_status field_workload_create(struct gpu_device *device, const struct vkn_config *config,
                                 struct field_workload **created)
{
    bool cpu = gpu_device_capabilities(device)->type == GPU_CPU;
    struct field_workload *work = base_alloc(1, sizeof *work);
    *created = NULL;
    if (!work)
        return VKN_ERROR;
    work->device = device;
    work->config = *config;
    work->config.precision = VKN_PRECISION_FP32;
    work->config.gradient_sums = VKN_SUMS_DEFAULT;
    /* Tables that are larger still do not fit into any cache either. */
    if (work->config.grid.log2_entries > MOST_ENTRIES)
        work->config.grid.log2_entries = MOST_ENTRIES;
    /* A GPU is full with as many samples as a quarter of a step's; a CPU is with a few. */
    work->sample_count = cpu ? 512 : 1u << 16;
    work->forward_groups = work->sample_count / LOCAL_SIZE;
    work->backward_groups = cpu ? 8 : 512;
    work->runs = cpu ? 2 : 4;
    vkn_status status = field_model_create(&work->config, &work->model);
    if (status == VKN_OK)
        status = fill(work);
    if (status == VKN_OK)
        status = run_fp32(work);
    if (status != VKN_OK)
        field_workload_destroy(&work);
    *created = work;
    return status;
}

void field_workload_destroy(struct field_workload **destroyed)
{
    struct field_workload *work = *destroyed;
    if (!work)
        return;
    *destroyed = NULL;
    results_destroy(&work->expected);
    free(work->rays);
    free(work->samples);
    free(work->live);
    free(work->gradients);
    free(work->params);
    free(work);
}
