/* Measures field_forward and field_backward of the training step on repeated features, without the
 * hash grid. */
#include "bench/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_SIZE 64u
#define MOST_CASES 400u
#define MOST_SETS  8u

/* Buffers and pipeline of a case. Iterations alternate between sets of features; all other buffers
 * are shared. */
struct on_device {
    struct bench *bench;
    const struct mlp_model *mlp;
    const struct mlp_case *sizes;
    struct field_backend backend;
    bool training;
    uint32_t sets, groups;
    struct buffers buffers, features[MOST_SETS];
    struct gpu_bindings *bindings[MOST_SETS];
    struct gpu_pipeline *pipeline;
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static uint64_t feature_count(const struct on_device *d)
{
    return (uint64_t)d->sizes->batch * MLP_INPUTS;
}

static vkn_status create_pipeline(struct on_device *d, struct Config *constants)
{
    const struct mlp_model *mlp = d->mlp;
    struct gpu_constants specialization = {.count = SPEC_COUNT};
    BASE_TRY(field_backend_create(&mlp->config, &mlp->model, d->bench->capabilities, &d->backend));
    field_configure(&mlp->config, &mlp->model, constants, &specialization);
    field_backend_configure(&d->backend, &specialization);
    const struct field_backend *backend = &d->backend;
    uint32_t batch = d->sizes->batch;
    uint32_t tiles = batch / (d->training ? backend->backward_rows : backend->forward_rows);
    uint32_t most = d->training ? backend->backward_groups : backend->forward_groups;
    d->groups = tiles < 1 ? 1 : tiles < most ? tiles : most;
    constants->aabb_scale = 1;
    constants->sample_capacity = batch;
    return field_backend_create_pipeline(
        d->bench->device, backend, d->training ? "field_backward" : "field_forward",
        d->training ? FIELD_BACKWARD : FIELD_FORWARD, LOCAL_SIZE, &specialization, &d->pipeline);
}

#define INPUTS   (BUFFERS(CONFIG) | BUFFERS(STATE) | BUFFERS(RAYS) | BUFFERS(SAMPLES) | BUFFERS(LIVE))
#define WEIGHTS  (BUFFERS(PARAMS) | BUFFERS(F16_PARAMS))
#define BACKWARD (BUFFERS(FIELD_GRADIENTS) | BUFFERS(PARTIALS) | BUFFERS(SCRATCH))

static vkn_status allocate(struct on_device *d, struct buffer_counts *counts)
{
    struct gpu_device *device = d->bench->device;
    uint32_t mask = INPUTS | WEIGHTS | BUFFERS(FIELD) | (d->training ? BACKWARD : 0);
    *counts =
        (struct buffer_counts){.rays = MLP_RAYS, .samples = d->sizes->batch, .groups = d->groups};
    field_size_buffers(&d->mlp->model, counts);
    field_backend_size_buffers(&d->backend, &d->mlp->model, counts);
    BASE_TRY(buffers_create(device, BUFFERS_OF_TRIAL, mask, counts, &d->buffers));
    uint64_t bytes = buffers_bytes(BUFFERS_OF_TRIAL, BIND_FEATURES, counts);
    uint32_t wanted = bench_sets(d->bench, bytes);
    for (d->sets = 0; d->sets < wanted && d->sets < MOST_SETS; d->sets++) {
        const struct gpu_buffer *bound[GPU_BINDINGS] = {NULL};
        struct buffers *set = &d->features[d->sets];
        BASE_TRY(buffers_create(device, BUFFERS_OF_TRIAL, BUFFERS(FEATURES), counts, set));
        buffers_bind(&d->buffers, mask, bound);
        buffers_bind(set, BUFFERS(FEATURES), bound);
        BASE_TRY(gpu_bindings_create(device, bound, &d->bindings[d->sets]));
    }
    return VKN_OK;
}

static vkn_status put(struct on_device *d, uint32_t binding, const void *data, uint64_t size)
{
    return gpu_upload(d->bench->device, &d->buffers.at[binding], 0, data, size);
}

/* Uploads rays and samples; all samples are live. */
static vkn_status upload_samples(struct on_device *d)
{
    const struct mlp_model *mlp = d->mlp;
    uint32_t batch = d->sizes->batch;
    const struct State state = {
        .sample_count = batch, .live_count = batch, .ray_count = MLP_RAYS, .loss_scale = 1};
    BASE_TRY(put(d, BIND_STATE, &state, sizeof state));
    BASE_TRY(put(d, BIND_RAYS, mlp->rays, sizeof mlp->rays));
    BASE_TRY(bench_upload_indices(d->bench, &d->buffers.at[BIND_LIVE]));
    return bench_upload_pattern(d->bench, &d->buffers.at[BIND_SAMPLES], mlp->samples,
                                sizeof mlp->samples);
}

static vkn_status upload_features(struct on_device *d)
{
    uint64_t pattern = MLP_PATTERN * MLP_FEATURES, level = (uint64_t)d->sizes->batch * MLP_FEATURES;
    float *numbers = base_alloc(feature_count(d), sizeof *numbers);
    vkn_status status = numbers ? VKN_OK : VKN_ERROR;
    for (uint64_t i = 0; i < feature_count(d) && status == VKN_OK; i++)
        numbers[i] = d->mlp->features[i / level * pattern + i % pattern];
    for (uint32_t set = 0; set < d->sets && status == VKN_OK; set++)
        status = bench_upload_values(d->bench, &d->features[set].at[BIND_FEATURES], numbers,
                                     feature_count(d), d->backend.f16);
    free(numbers);
    return status;
}

/* Uploads f32 weights, and their f16 copies in the backend's layout; f16_count 0: no copies. */
static vkn_status upload_weights(struct on_device *d, uint64_t f16_count)
{
    const struct field_model *model = &d->mlp->model;
    uint32_t count = model->param_count, transposed = d->backend.transposed;
    float *weights = base_alloc(f16_count > count ? f16_count : count, sizeof *weights);
    if (!weights)
        return VKN_ERROR;
    memcpy(weights, d->mlp->weights, count * sizeof *weights);
    if (gpu_fault_injected("bench_mlp"))
        weights[0] = 8;
    for (uint32_t i = 0; transposed && i < model->mlp_params; i++)
        weights[transposed + field_transposed_index(model, i)] = weights[i];
    vkn_status status = put(d, BIND_PARAMS, weights, count * sizeof *weights);
    if (status == VKN_OK && f16_count)
        status = bench_upload_values(d->bench, &d->buffers.at[BIND_F16_PARAMS], weights, f16_count,
                                     true);
    free(weights);
    return status;
}

/* Uploads the inputs of field_backward: the outputs of field_forward and their gradients. */
static vkn_status upload_gradients(struct on_device *d)
{
    BASE_TRY(bench_upload_pattern(d->bench, &d->buffers.at[BIND_FIELD], d->mlp->values,
                                  sizeof d->mlp->values));
    return bench_upload_pattern(d->bench, &d->buffers.at[BIND_FIELD_GRADIENTS], d->mlp->gradients,
                                sizeof d->mlp->gradients);
}

static vkn_status prepare(struct on_device *d)
{
    struct Config constants = {0};
    struct buffer_counts counts;
    BASE_TRY(create_pipeline(d, &constants));
    BASE_TRY(allocate(d, &counts));
    BASE_TRY(put(d, BIND_CONFIG, &constants, sizeof constants));
    BASE_TRY(upload_samples(d));
    BASE_TRY(upload_features(d));
    BASE_TRY(upload_weights(d, counts.f16_params));
    return d->training ? upload_gradients(d) : VKN_OK;
}

static void destroy(struct on_device *d)
{
    for (uint32_t set = 0; set < MOST_SETS; set++) {
        gpu_bindings_destroy(&d->bindings[set]);
        buffers_destroy(&d->features[set]);
    }
    gpu_pipeline_destroy(&d->pipeline);
    buffers_destroy(&d->buffers);
}

/* In training, field_backward overwrites the features by their gradients, so the next iteration
 * with the same set reads gradients. */
static void record(void *context, struct gpu_recording *recording, uint32_t iteration)
{
    const struct on_device *d = context;
    const struct Push push = {.e = ROWS_SAMPLES};
    gpu_record_dispatch(recording, d->pipeline, d->bindings[iteration % d->sets], &push,
                        sizeof push, d->groups);
}

/* ---- checking -------------------------------------------------------------------------------- */

/* Sums of squares: `error` of the differences, `size` of the expected values. */
struct distance {
    double error, size;
    uint32_t outputs;
};

static void add_distance(struct distance *distance, double got, double want)
{
    distance->error += (got - want) * (got - want);
    distance->size += want * want;
    distance->outputs++;
}

static void compare(struct bench_check *check, const struct distance *distance)
{
    bench_compare(check, sqrt(distance->error), 0, sqrt(distance->size));
    check->outputs += distance->outputs - 1;
}

/* Checks colours and densities of the batch's last rows. */
static vkn_status check_values(struct on_device *d, struct bench_check *check)
{
    float got[MLP_PATTERN][4];
    struct distance colors = {0}, densities = {0};
    const struct gpu_buffer *field = &d->buffers.at[BIND_FIELD];
    BASE_TRY(gpu_download(d->bench->device, field, field->size - sizeof got, got, sizeof got));
    for (uint32_t i = 0; i < MLP_PATTERN * 4; i++)
        add_distance(i % 4 == 3 ? &densities : &colors, (double)got[i / 4][i % 4],
                     (double)d->mlp->values[i / 4][i % 4]);
    compare(check, &colors);
    compare(check, &densities);
    return VKN_OK;
}

static vkn_status check_feature_gradients(struct on_device *d, struct bench_check *check)
{
    const struct gpu_buffer *features = &d->features[0].at[BIND_FEATURES];
    float got[MLP_PATTERN * MLP_FEATURES];
    struct distance distance = {0};
    uint64_t size = sizeof got / (d->backend.f16 ? 2 : 1);
    for (uint32_t level = 0; level < MLP_INPUTS / MLP_FEATURES; level++) {
        uint64_t end = (level + 1) * (size * d->sizes->batch / MLP_PATTERN);
        BASE_TRY(gpu_download(d->bench->device, features, end - size, got, size));
        for (uint32_t i = 0; i < BASE_COUNT(got); i++)
            add_distance(&distance, bench_read_value(got, i, d->backend.f16),
                         d->mlp->feature_gradients[level * BASE_COUNT(got) + i]);
    }
    compare(check, &distance);
    return VKN_OK;
}

/* Sums the workgroups' partial sums and checks them layer by layer. */
static vkn_status check_weight_gradients(struct on_device *d, struct bench_check *check)
{
    const struct gpu_buffer *partials = &d->buffers.at[BIND_PARTIALS];
    uint32_t count = d->mlp->model.mlp_params;
    uint32_t repeats = d->sizes->batch / MLP_PATTERN;
    double *sums = base_alloc(count, sizeof *sums);
    float *partial = base_alloc(count, sizeof *partial);
    vkn_status status = sums && partial ? VKN_OK : VKN_ERROR;
    for (uint32_t g = 0; g < d->groups && status == VKN_OK; g++) {
        status = gpu_download(d->bench->device, partials, 4ull * g * count, partial, 4ull * count);
        for (uint32_t i = 0; i < count && status == VKN_OK; i++)
            sums[i] += (double)partial[i];
    }
    for (uint32_t n = 0; n < d->mlp->model.layer_count && status == VKN_OK; n++) {
        const struct field_layer *layer = &d->mlp->model.layers[n];
        struct distance distance = {0};
        for (uint32_t i = layer->first; i < layer->first + layer->inputs * layer->outputs; i++)
            add_distance(&distance, sums[i], repeats * d->mlp->weight_gradients[i]);
        compare(check, &distance);
    }
    free(sums);
    free(partial);
    return status;
}

static vkn_status check(struct on_device *d, struct bench_check *check)
{
    double seconds;
    const struct gpu_buffer *output = &d->buffers.at[d->training ? BIND_PARTIALS : BIND_FIELD];
    BASE_TRY(bench_fill(d->bench, output, UINT32_MAX));
    BASE_TRY(bench_run(d->bench, record, d, 1, &seconds));
    if (!d->training)
        return check_values(d, check);
    BASE_TRY(check_feature_gradients(d, check));
    return check_weight_gradients(d, check);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Rounding errors of activations and gradients accumulate over the layers. */
static double tolerance(const struct mlp_case *c, const struct bench_backend *backend)
{
    if (backend->precision == VKN_PRECISION_FP32)
        return 1e-4;
    return (backend->f16_accumulate ? 1e-2 : 5e-3) * sqrt(2.0 * c->depth + 2);
}

static vkn_status measure(struct bench *bench, const struct mlp_case *c,
                          const struct mlp_model *mlp, const struct bench_backend *backend,
                          bool training)
{
    struct on_device d = {.bench = bench, .mlp = mlp, .sizes = c, .training = training};
    struct bench_result result = {
        .suite = "mlp", .backend = backend->name, .unit = "FLOP/s", .peak = backend->peak};
    snprintf(result.name, sizeof result.name, "%u wide, %u deep, %u%s", c->width, c->depth,
             c->batch, training ? " training" : "");
    bench_add_size(&result, "width", c->width);
    bench_add_size(&result, "depth", c->depth);
    bench_add_size(&result, "batch", c->batch);
    bench_add_size(&result, "training", training);
    result.check.tolerance = tolerance(c, backend);
    vkn_status status = prepare(&d);
    result.flops = c->batch * mlp_flops(mlp, training);
    result.bytes = c->batch * mlp_bytes(mlp, training);
    result.samples = c->batch;
    if (status == VKN_OK)
        status = check(&d, &result.check);
    if (status == VKN_OK && bench_passed(&result))
        status = bench_measure(bench, record, &d, &result.times);
    destroy(&d);
    BASE_TRY(bench_record_failure(&result, status));
    bench_add_result(bench, &result);
    return VKN_OK;
}

static vkn_status measure_both(struct bench *bench, const struct mlp_case *c,
                               const struct bench_backend *backend)
{
    struct mlp_model *mlp = NULL;
    vkn_status status = bench->counting ? VKN_OK : mlp_create(c, backend, &mlp);
    if (status == VKN_OK && bench_next(bench))
        status = measure(bench, c, mlp, backend, false);
    /* With conversions, activations stay in matrices in the forward pass only. */
    if (status == VKN_OK && !backend->conversions && bench_next(bench))
        status = measure(bench, c, mlp, backend, true);
    mlp_free(&mlp);
    return status;
}

/* Selects, on GPUs, all models with one batch and one model with all batches; with --full, all
 * combinations; on CPU devices, one batch and several models. */
static bool is_listed(const struct bench *bench, const struct mlp_case *c)
{
    const struct vkn_bench_params *params = bench->params;
    uint32_t usual = params->batch ? params->batch : bench->small ? 1u << 12 : 1u << 18;
    uint32_t width = params->width ? params->width : params->quick && bench->small ? 32 : 64;
    uint32_t depth = params->depth ? params->depth : params->quick && bench->small ? 1 : 2;
    bool usual_model = c->width == width && c->depth == depth;
    if ((params->batch && c->batch != params->batch) ||
        (params->width && c->width != params->width) ||
        (params->depth && c->depth != params->depth))
        return false;
    if (params->quick || bench->small)
        return c->batch == usual && (usual_model || (!params->quick && c->depth == depth));
    return params->full || c->batch == usual || usual_model;
}

static uint32_t list_cases(const struct bench *bench, struct mlp_case cases[MOST_CASES])
{
    uint32_t count = 0;
    uint32_t batches[12] = {bench->params->batch}, batch_count = 1;
    for (uint32_t log2 = 12; log2 <= 22 && !bench->params->batch; log2++)
        batches[log2 - 12] = 1u << log2;
    if (!bench->params->batch)
        batch_count = 11;
    for (uint32_t width = 16; width <= 128; width += 16)
        for (uint32_t depth = 1; depth <= 8; depth++)
            for (uint32_t b = 0; b < batch_count; b++) {
                struct mlp_case c = {width, depth, batches[b]};
                bool is_given = bench->params->width || bench->params->depth;
                bool is_power_of_two = !(width & (width - 1)) && !(depth & (depth - 1));
                if ((is_power_of_two || is_given) && is_listed(bench, &c) && count < MOST_CASES)
                    cases[count++] = c;
            }
    return count;
}

vkn_status bench_mlp(struct bench *bench)
{
    struct mlp_case cases[MOST_CASES];
    uint32_t count = list_cases(bench, cases);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t p = 0; p < bench->backend_count; p++) {
            const struct bench_backend *backend = &bench->backends[p];
            /* Matrices compile slowly on CPU devices, so only one width is measured. */
            bool skipped = bench->small && backend->precision == VKN_PRECISION_COOPMAT &&
                           !bench->params->width && cases[i].width != 64 && !bench->params->quick;
            if (!skipped)
                BASE_TRY(measure_both(bench, &cases[i], backend));
        }
    return VKN_OK;
}
