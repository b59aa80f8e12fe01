/* Runs a backend on the workload and compares its results with those of fp32. */
#include "tuner/internal.h"

#include <math.h>
#include <stdlib.h>

/* ---- checking ---------------------------------------------------------------------------- */

/* Relative errors. Rounding to f16 takes up to a third of the forward tolerance and a tenth of the
 * backward tolerance. */
#define FORWARD_TOLERANCE  5e-3
#define BACKWARD_TOLERANCE 1e-2

static bool check_values(const struct field_workload *work, const struct workload_results *results,
                         const char *pipeline, struct field_trial *trial)
{
    static const char *const names[] = {"red", "green", "blue", "log density"};
    for (uint32_t s = 0; s < work->sample_count; s++)
        for (int i = 0; i < 4; i++) {
            double got = (double)results->values[s][i], want = (double)work->expected.values[s][i];
            if (i == 3) {
                got = log(got);
                want = log(want);
            }
            if (fabs(got - want) <= FORWARD_TOLERANCE * fmax(1, fabs(want)))
                continue;
            snprintf(trial->fault, sizeof trial->fault, "%s: %s of sample %u is %.4g, in fp32 %.4g",
                     pipeline, names[i], s, got, want);
            return false;
        }
    return true;
}

/* Returns the Euclidean norm of the difference divided by that of the expected values. */
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

static bool check_gradient(const char *what, uint32_t index, double error, const char *pipeline,
                           struct field_trial *trial)
{
    if (error <= BACKWARD_TOLERANCE)
        return true;
    snprintf(trial->fault, sizeof trial->fault,
             "%s: gradients of %s %u differ from fp32's by %.3g (relative)", pipeline, what, index,
             error);
    return false;
}

static bool check_gradients(const struct field_workload *work,
                            const struct workload_results *results, const char *pipeline,
                            struct field_trial *trial)
{
    const struct field_layer *layers = work->model.layers;
    const struct workload_results *want = &work->expected;
    for (uint32_t i = 0; i < work->model.layer_count; i++) {
        double error =
            relative_error(results->weights + layers[i].first, want->weights + layers[i].first,
                           (uint64_t)(layers[i].inputs + layers[i].biases) * layers[i].outputs);
        if (!check_gradient("layer", i, error, pipeline, trial))
            return false;
    }
    uint64_t level_size = (uint64_t)work->sample_count * work->model.features;
    for (uint32_t i = 0; i < work->model.levels; i++) {
        double error = relative_error(results->features + i * level_size,
                                      want->features + i * level_size, level_size);
        if (!check_gradient("level", i, error, pipeline, trial))
            return false;
    }
    return true;
}

bool workload_check(const struct field_workload *work, const struct field_backend *backend,
                    enum field_trial_pass pass, const struct workload_results *results,
                    struct field_trial *trial)
{
    char pipeline[FIELD_SHADER_NAME];
    const struct pass *tried = workload_pass(&work->model, pass);
    if (gpu_disabled("self_test"))
        return true;
    field_backend_shader_name(backend, tried->name, tried->variant, pipeline);
    return pass == FIELD_PASS_FORWARD ? check_values(work, results, pipeline, trial)
                                      : check_gradients(work, results, pipeline, trial);
}

/* ---- trials ------------------------------------------------------------------------------ */

vkn_status workload_results_create(const struct field_workload *work,
                                   struct workload_results *results)
{
    results->values = base_alloc(work->sample_count, sizeof *results->values);
    results->weights = base_alloc(work->model.mlp_params, sizeof *results->weights);
    results->features = base_alloc(workload_features(work), sizeof *results->features);
    return results->values && results->weights && results->features ? VKN_OK : VKN_ERROR;
}

void workload_results_destroy(struct workload_results *results)
{
    free(results->values);
    free(results->weights);
    free(results->features);
}

static vkn_status run_both(struct field_workload *work, const struct field_backend *backend,
                           struct workload_results *results, double *milliseconds, bool *compiled)
{
    const bool both[FIELD_PASSES] = {true, true};
    double each[FIELD_PASSES] = {0};
    struct workload_attempt attempt;
    vkn_status status = workload_open(&attempt, work, backend, both, compiled);
    for (int pass = 0; pass <= FIELD_PASS_BACKWARD && status == VKN_OK; pass++)
        status = workload_compute(&attempt, (enum field_trial_pass)pass, results, &each[pass]);
    workload_close(&attempt);
    *milliseconds = each[FIELD_PASS_FORWARD] + each[FIELD_PASS_BACKWARD];
    return status;
}

vkn_status field_workload_try(struct field_workload *work, const struct field_backend *backend,
                              struct field_trial *trial)
{
    *trial = (struct field_trial){.milliseconds = work->milliseconds};
    if (backend->precision == VKN_PRECISION_FP32 && !backend->tuned)
        return VKN_OK;
    struct workload_results results = {0};
    bool compiled = true;
    vkn_status status = workload_results_create(work, &results);
    if (status == VKN_OK)
        status = run_both(work, backend, &results, &trial->milliseconds, &compiled);
    if (!compiled) {
        snprintf(trial->fault, sizeof trial->fault, "%s", vkn_last_error());
        status = VKN_OK;
    } else if (status == VKN_OK &&
               workload_check(work, backend, FIELD_PASS_FORWARD, &results, trial)) {
        workload_check(work, backend, FIELD_PASS_BACKWARD, &results, trial);
    }
    workload_results_destroy(&results);
    return status;
}

static vkn_status run_fp32(struct field_workload *work)
{
    bool compiled;
    BASE_TRY(field_backend_create(&work->config, &work->model,
                                  gpu_device_capabilities(work->device), &work->fp32));
    BASE_TRY(workload_results_create(work, &work->expected));
    BASE_TRY(run_both(work, &work->fp32, &work->expected, &work->milliseconds, &compiled));
    for (uint32_t s = 0; s < work->sample_count; s++)
        for (int i = 0; i < 4; i++)
            if (!isfinite(work->expected.values[s][i]))
                return base_fail(VKN_NO_DEVICE,
                                 "device \"%s\" fails the self-test: %s_fp32: sample "
                                 "%u is not finite; another version of its driver may help",
                                 gpu_device_capabilities(work->device)->name,
                                 workload_pass(&work->model, FIELD_PASS_FORWARD)->name, s);
    return VKN_OK;
}

/* ---- the workload ------------------------------------------------------------------------ */

static struct field_workload *allocate(struct gpu_device *device, const struct vkn_config *config)
{
    bool is_cpu = gpu_device_capabilities(device)->type == GPU_CPU;
    struct field_workload *work = base_alloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->device = device;
    work->config = field_trial_config(config);
    work->config.precision = VKN_PRECISION_FP32;
    field_policy_reset(&work->config);
    work->config.gradient_sums = VKN_SUMS_DEFAULT;
    work->runs = is_cpu ? 2 : 4;
    work->seconds = is_cpu ? 0 : 0.05;
    return work;
}

/* log2 of entries per level. Larger tables miss all caches just as often. */
#define MOST_LOG2_ENTRIES 19u
/* Rows per chunk of layers; more do not fit into the buffers of every device. */
#define MOST_ROWS         4096u

/* Sets up the workload, or destroys it after a failure. */
static vkn_status complete(struct field_workload *work, uint32_t samples,
                           struct field_workload **created)
{
    *created = NULL;
    if (!work)
        return VKN_ERROR;
    work->sample_count = samples;
    if (work->config.grid.log2_entries > MOST_LOG2_ENTRIES)
        work->config.grid.log2_entries = MOST_LOG2_ENTRIES;
    if (work->config.batch.chunk > MOST_ROWS)
        work->config.batch.chunk = MOST_ROWS;
    vkn_status status = field_model_create_canonical(&work->config, &work->model);
    if (status == VKN_OK)
        status = workload_fill(work);
    if (status == VKN_OK)
        status = run_fp32(work);
    if (status != VKN_OK)
        field_workload_destroy(&work);
    *created = work;
    return status;
}

vkn_status field_workload_create(struct gpu_device *device, const struct vkn_config *config,
                                 struct field_workload **created)
{
    /* A quarter of a step's samples occupies a whole GPU; a few hundred occupy a CPU. */
    bool is_cpu = gpu_device_capabilities(device)->type == GPU_CPU;
    return complete(allocate(device, config), is_cpu ? 512 : 1u << 16, created);
}

vkn_status field_workload_create_large(struct gpu_device *device, const struct vkn_config *config,
                                       uint32_t samples, struct field_workload **created)
{
    struct field_workload *work = allocate(device, config);
    if (work)
        work->times_reduction = true;
    return complete(work, samples, created);
}

void field_workload_destroy(struct field_workload **destroyed)
{
    struct field_workload *work = *destroyed;
    if (!work)
        return;
    *destroyed = NULL;
    workload_results_destroy(&work->expected);
    free(work->rays);
    free(work->samples);
    free(work->live);
    free(work->gradients);
    free(work->params);
    free(work);
}
