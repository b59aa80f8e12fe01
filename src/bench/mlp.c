/* The fused MLPs of shaders/field/mlp.glsl on rows from a buffer: forward, and forward with
 * backward. */
#include "bench/mlp.h"

#include <math.h>
#include <stdlib.h>

#define LOCAL_SIZE  64u
#define MOST_GROUPS 32768u
#define MOST_CASES  400u

/* A case on the device. */
struct on_device {
    struct bench *bench;
    const struct mlp_model *mlp;
    const struct mlp_case *sizes;
    struct field_backend backend;
    bool training;
    uint32_t sets, groups, number; /* bytes of a value of a row */
    struct gpu_arena *arena;
    struct gpu_buffer config, params, halves, rows, field, inputs, partials, scratch;
    struct gpu_bindings *bindings;
    struct gpu_program *program;
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static uint64_t row_bytes(const struct on_device *d)
{
    return (uint64_t)d->sizes->batch * d->mlp->model.encoded * d->number;
}

/* Of weights, with those stored a second time. */
static uint64_t half_count(const struct on_device *d)
{
    struct buffer_counts counts = {0};
    field_backend_count(&d->backend, &d->mlp->model, &counts);
    return counts.half_params ? counts.half_params : d->mlp->model.param_count;
}

static vkn_status allocate(struct on_device *d)
{
    const struct field_model *model = &d->mlp->model;
    bool training = d->training;
    d->sets = bench_sets(d->bench, row_bytes(d));
    struct gpu_buffer_request requests[] = {
        {&d->config, "bench config", sizeof(struct Config), GPU_DEVICE},
        {&d->params, "bench weights", 4ull * model->param_count, GPU_DEVICE},
        {&d->halves, "bench weights", 2 * half_count(d), GPU_DEVICE},
        {&d->rows, "bench rows", row_bytes(d) * d->sets, GPU_DEVICE},
        {&d->field, "bench outputs", 16ull * d->sizes->batch, GPU_DEVICE},
        {&d->inputs, "bench gradients", training ? row_bytes(d) : 4, GPU_DEVICE},
        {&d->partials, "bench partials", training ? 4ull * d->groups * model->mlp_params : 4,
         GPU_DEVICE},
        {&d->scratch, "bench scratch", training ? d->groups * d->backend.scratch_bytes : 4,
         GPU_DEVICE},
    };
    BASE_TRY(gpu_arena_create(d->bench->device, requests, BASE_COUNT(requests), &d->arena));
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {
        [BIND_CONFIG] = &d->config,     [BIND_PARAMS] = &d->params,
        [BIND_HALVES] = &d->halves,     [BIND_SAMPLES] = &d->rows,
        [BIND_FIELD] = &d->field,       [BIND_INPUT_GRADIENTS] = &d->inputs,
        [BIND_PARTIALS] = &d->partials, [BIND_SCRATCH] = &d->scratch,
    };
    return gpu_bindings_create(d->bench->device, buffers, &d->bindings);
}

static vkn_status create_program(struct on_device *d, struct Config *constants)
{
    const struct mlp_model *mlp = d->mlp;
    struct gpu_constants specialization = {.count = SPEC_COUNT};
    BASE_TRY(field_backend_create(&mlp->config, &mlp->model, d->bench->capabilities, &d->backend));
    field_configure(&mlp->config, &mlp->model, constants, &specialization);
    field_backend_configure(&d->backend, &specialization);
    uint32_t rows = d->training ? d->backend.backward_rows : LOCAL_SIZE, most;
    most = !d->training ? MOST_GROUPS : d->bench->cpu ? 8 : 512;
    d->groups = d->sizes->batch / rows < most ? d->sizes->batch / rows : most;
    d->number = d->backend.half ? 2 : 4;
    return field_backend_create_program(
        d->bench->device, &d->backend, d->training ? "bench_mlp_backward" : "bench_mlp_forward",
        d->training ? FIELD_BACKWARD : FIELD_VALUES, LOCAL_SIZE, &specialization, &d->program);
}

/* [pair of values][row], repeated over the batch. */
static vkn_status upload_rows(struct on_device *d)
{
    uint32_t encoded = d->mlp->model.encoded, batch = d->sizes->batch;
    unsigned char *numbers = base_alloc(row_bytes(d), 1);
    if (!numbers)
        return VKN_ERROR;
    for (uint64_t i = 0; i < (uint64_t)batch * encoded; i++) {
        uint64_t pair = i / 2 / batch, row = i / 2 % batch;
        float value = d->mlp->rows[row % MLP_PATTERN * encoded + 2 * pair + i % 2];
        if (d->number == 2)
            ((uint16_t *)(void *)numbers)[i] = bench_to_half(value);
        else
            ((float *)(void *)numbers)[i] = value;
    }
    vkn_status status = bench_upload_pattern(d->bench, &d->rows, numbers, row_bytes(d));
    free(numbers);
    return status;
}

static vkn_status upload_weights(struct on_device *d)
{
    const struct field_model *model = &d->mlp->model;
    uint32_t count = model->param_count, transposed = d->backend.transposed;
    uint16_t *halves = base_alloc(half_count(d), sizeof *halves);
    if (!halves)
        return VKN_ERROR;
    for (uint32_t i = 0; i < count; i++)
        halves[i] = bench_to_half(d->mlp->weights[i]);
    if (gpu_self_test_breaks("bench_mlp"))
        halves[0] = 0x4800; /* 8 */
    for (uint32_t i = 0; transposed && i < model->mlp_params; i++)
        halves[transposed + field_transposed_place(model, i)] = halves[i];
    vkn_status status = gpu_upload(d->bench->device, &d->halves, 0, halves, 2 * half_count(d));
    free(halves);
    BASE_TRY(status);
    BASE_TRY(gpu_upload(d->bench->device, &d->params, 0, d->mlp->weights, 4ull * count));
    const float eight = 8;
    return gpu_self_test_breaks("bench_mlp")
               ? gpu_upload(d->bench->device, &d->params, 0, &eight, sizeof eight)
               : VKN_OK;
}

static vkn_status prepare(struct on_device *d)
{
    struct Config constants = {0};
    BASE_TRY(create_program(d, &constants));
    BASE_TRY(allocate(d));
    BASE_TRY(gpu_upload(d->bench->device, &d->config, 0, &constants, sizeof constants));
    BASE_TRY(upload_weights(d));
    return upload_rows(d);
}

static void destroy(struct on_device *d)
{
    gpu_bindings_destroy(&d->bindings);
    gpu_program_destroy(&d->program);
    gpu_arena_destroy(&d->arena);
}

static void record(void *context, struct gpu_recording *recording, uint32_t turn)
{
    const struct on_device *d = context;
    uint64_t first = turn % d->sets * (row_bytes(d) / 4);
    const struct Push push = {.a = d->sizes->batch, .b = (uint32_t)first};
    gpu_record_dispatch(recording, d->program, d->bindings, &push, sizeof push, d->groups);
}

/* ---- checking -------------------------------------------------------------------------------- */

/* Euclidean norms: of the difference, over the expected one. */
struct distance {
    double error, size;
};

static void add_distance(struct distance *distance, double got, double want)
{
    distance->error += (got - want) * (got - want);
    distance->size += want * want;
}

static void compare(struct bench_check *check, const struct distance *distance, uint32_t outputs)
{
    bench_compare(check, sqrt(distance->error), 0, sqrt(distance->size));
    check->outputs += outputs - 1;
}

/* The last rows of the batch. */
static vkn_status check_outputs(struct on_device *d, struct bench_check *check)
{
    float got[MLP_PATTERN][4];
    struct distance distance = {0};
    BASE_TRY(
        gpu_download(d->bench->device, &d->field, d->field.size - sizeof got, got, sizeof got));
    for (uint32_t i = 0; i < MLP_PATTERN * MLP_OUTPUTS; i++)
        add_distance(&distance, (double)got[i / 4][i % 4], d->mlp->outputs[i]);
    compare(check, &distance, MLP_PATTERN * MLP_OUTPUTS);
    return VKN_OK;
}

/* Of the first two inputs of the last rows. */
static vkn_status check_input_gradients(struct on_device *d, struct bench_check *check)
{
    union {
        float full[MLP_PATTERN][2];
        uint16_t half[MLP_PATTERN][2];
    } got;
    struct distance distance = {0};
    uint64_t size = 2ull * MLP_PATTERN * d->number;
    uint64_t first = 2ull * (d->sizes->batch - MLP_PATTERN) * d->number;
    BASE_TRY(gpu_download(d->bench->device, &d->inputs, first, &got, size));
    for (uint32_t i = 0; i < 2 * MLP_PATTERN; i++)
        add_distance(&distance,
                     (double)(d->number == 2 ? bench_from_half(got.half[i / 2][i % 2])
                                             : got.full[i / 2][i % 2]),
                     d->mlp->input_gradients[i / 2 * d->mlp->model.encoded + i % 2]);
    compare(check, &distance, 2 * MLP_PATTERN);
    return VKN_OK;
}

/* The workgroups' sums added up, layer by layer. */
static vkn_status check_weight_gradients(struct on_device *d, struct bench_check *check)
{
    uint32_t count = d->mlp->model.mlp_params;
    uint32_t repeats = d->sizes->batch / MLP_PATTERN;
    double *sums = base_alloc(count, sizeof *sums);
    float *partial = base_alloc(count, sizeof *partial);
    vkn_status status = sums && partial ? VKN_OK : VKN_ERROR;
    for (uint32_t g = 0; g < d->groups && status == VKN_OK; g++) {
        status =
            gpu_download(d->bench->device, &d->partials, 4ull * g * count, partial, 4ull * count);
        for (uint32_t i = 0; i < count && status == VKN_OK; i++)
            sums[i] += (double)partial[i];
    }
    for (uint32_t n = 0; n < d->mlp->layer_count && status == VKN_OK; n++) {
        const struct field_layer *layer = &d->mlp->layers[n];
        struct distance distance = {0};
        for (uint32_t i = layer->first; i < layer->first + layer->inputs * layer->outputs; i++)
            add_distance(&distance, sums[i], repeats * d->mlp->weight_gradients[i]);
        compare(check, &distance, layer->inputs * layer->outputs);
    }
    free(sums);
    free(partial);
    return status;
}

/* The gradients of the outputs take the place where forward puts these. */
static vkn_status upload_gradients(struct on_device *d)
{
    return bench_upload_pattern(d->bench, &d->field, d->mlp->gradients,
                                MLP_PATTERN * sizeof d->mlp->gradients[0]);
}

static vkn_status check(struct on_device *d, struct bench_check *check)
{
    double seconds;
    const struct gpu_buffer *outputs[] = {d->training ? &d->inputs : &d->field, &d->partials};
    for (size_t i = 0; i < BASE_COUNT(outputs); i++)
        BASE_TRY(bench_fill(d->bench, outputs[i], UINT32_MAX));
    if (d->training)
        BASE_TRY(upload_gradients(d));
    BASE_TRY(bench_run(d->bench, record, d, d->sets, &seconds));
    if (!d->training)
        return check_outputs(d, check);
    BASE_TRY(check_input_gradients(d, check));
    return check_weight_gradients(d, check);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Rounding of activations and of gradients adds up over the layers. */
static double tolerance(const struct mlp_case *c, const struct bench_backend *backend)
{
    if (backend->precision == VKN_PRECISION_FP32)
        return 1e-4;
    return (backend->half_accumulate ? 1e-2 : 5e-3) * sqrt(2.0 * c->depth + 2);
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
    bench_size(&result, "width", c->width);
    bench_size(&result, "depth", c->depth);
    bench_size(&result, "batch", c->batch);
    bench_size(&result, "training", training);
    result.check.tolerance = tolerance(c, backend);
    vkn_status status = prepare(&d);
    result.flops = c->batch * mlp_flops(mlp, training);
    result.bytes = c->batch * (16.0 + (training ? 2.0 : 1.0) * mlp->model.encoded * d.number);
    result.samples = c->batch;
    if (status == VKN_OK)
        status = check(&d, &result.check);
    if (status == VKN_OK && bench_right(&result))
        status = bench_measure(bench, record, &d, &result.times);
    destroy(&d);
    BASE_TRY(bench_judge(&result, status));
    bench_add(bench, &result);
    return VKN_OK;
}

static vkn_status measure_both(struct bench *bench, const struct mlp_case *c,
                               const struct bench_backend *backend)
{
    struct mlp_model mlp = {0};
    vkn_status status = bench->counting ? VKN_OK : mlp_create(c, backend, &mlp);
    if (status == VKN_OK && bench_next(bench))
        status = measure(bench, c, &mlp, backend, false);
    /* Activations stay in matrices forward alone. */
    if (status == VKN_OK && !backend->conversions && bench_next(bench))
        status = measure(bench, c, &mlp, backend, true);
    mlp_free(&mlp);
    return status;
}

/* GPUs: all models with one batch and all batches with one model, or with --full all with all.
 * CPU devices: one model for matrices, whose programs take long to compile, some for the others. */
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
                bool asked = bench->params->width || bench->params->depth;
                bool round = !(width & (width - 1)) && !(depth & (depth - 1));
                if ((round || asked) && is_listed(bench, &c) && count < MOST_CASES)
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
            bool choosy = bench->small && backend->precision == VKN_PRECISION_COOPMAT &&
                          !bench->params->width && cases[i].width != 64 && !bench->params->quick;
            if (!choosy)
                BASE_TRY(measure_both(bench, &cases[i], backend));
        }
    return VKN_OK;
}
