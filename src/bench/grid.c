/* Measures the hash grid by itself: gathers features and scatters their gradients with the shaders
 * of the training step, for several table sizes. */
#include "bench/suites.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_SIZE  64u
#define MOST_GROUPS 32768u
#define OUTPUTS     64u /* checked outputs per level */

/* A way to gather or scatter. */
struct kind {
    const char *name; /* name in the results */
    const char *pipeline;
    bool f16;           /* parameters, features and gradients of features are f16 */
    const char *sums;   /* kind of accumulation, see scatter_gradients.comp; NULL: gathers */
    uint32_t sum_bytes; /* bytes of an accumulator */
};

/* Buffers and pipeline of a case. */
struct on_device {
    struct bench *bench;
    const struct grid *grid;
    const struct kind *kind;
    struct gpu_arena *arena;
    struct gpu_buffer config, state, live, params, features, sums;
    struct gpu_buffer rays[GRID_SETS], samples[GRID_SETS];
    struct gpu_bindings *bindings[GRID_SETS];
    struct gpu_pipeline *pipeline;
    uint32_t groups;
};

/* ---- set-up ---------------------------------------------------------------------------------- */

static vkn_status allocate(struct on_device *d)
{
    const struct grid *grid = d->grid;
    uint64_t value_bytes = d->kind->f16 ? 2 : 4;
    struct gpu_buffer_request requests[6 + 2 * GRID_SETS] = {
        {&d->config, "bench config", sizeof(struct Config), GPU_DEVICE},
        {&d->state, "bench state", sizeof(struct State), GPU_DEVICE},
        {&d->live, "bench live", 4ull * grid->samples, GPU_DEVICE},
        {&d->params, "bench parameters", grid->model.param_count * value_bytes, GPU_DEVICE},
        {&d->features, "bench features", grid_features(grid) * value_bytes, GPU_DEVICE},
        {&d->sums, "bench sums", (uint64_t)grid->model.param_count * d->kind->sum_bytes,
         GPU_DEVICE},
    };
    for (uint32_t set = 0; set < GRID_SETS; set++) {
        requests[6 + 2 * set] = (struct gpu_buffer_request){
            &d->rays[set], "bench rays", grid->rays * sizeof(struct Ray), GPU_DEVICE};
        requests[7 + 2 * set] = (struct gpu_buffer_request){
            &d->samples[set], "bench samples", grid->samples * sizeof(struct Sample), GPU_DEVICE};
    }
    return gpu_arena_create(d->bench->device, requests, BASE_COUNT(requests), &d->arena);
}

static vkn_status bind(struct on_device *d)
{
    for (uint32_t set = 0; set < GRID_SETS; set++) {
        const struct gpu_buffer *buffers[GPU_BINDINGS] = {
            [BIND_CONFIG] = &d->config,  [BIND_STATE] = &d->state,
            [BIND_RAYS] = &d->rays[set], [BIND_SAMPLES] = &d->samples[set],
            [BIND_LIVE] = &d->live,      [BIND_FEATURES] = &d->features,
            [BIND_PARAMS] = &d->params,  [BIND_F16_PARAMS] = &d->params,
            [BIND_GRADIENTS] = &d->sums, [BIND_ACCUMULATORS] = &d->sums,
        };
        BASE_TRY(gpu_bindings_create(d->bench->device, buffers, &d->bindings[set]));
    }
    return VKN_OK;
}

/* Returns whether one subgroup accumulates a whole level, without atomics: on CPU devices only. */
static bool is_owned(const struct kind *kind)
{
    return kind->sums && strcmp(kind->sums, "owned") == 0;
}

static vkn_status create_pipeline(struct on_device *d, struct Config *constants)
{
    const struct grid *grid = d->grid;
    struct gpu_constants specialization = {.count = SPEC_COUNT};
    field_configure(&grid->config, &grid->model, constants, &specialization);
    specialization.values[SPEC_F16] = d->kind->f16;
    constants->aabb_scale = 1;
    constants->sample_capacity = grid->samples;
    /* One subgroup per level, or workgroups that loop over tiles of samples and levels. */
    bool owned = is_owned(d->kind);
    uint32_t tiles = grid->samples / LOCAL_SIZE * grid->model.levels;
    d->groups = owned ? grid->model.levels : tiles < MOST_GROUPS ? tiles : MOST_GROUPS;
    uint32_t local_size = owned ? d->bench->capabilities->subgroup_size : LOCAL_SIZE;
    struct gpu_pipeline_options options = {
        .name = d->kind->pipeline, .local_size = local_size, .constants = &specialization};
    return gpu_pipeline_create(d->bench->device, &options, &d->pipeline);
}

static vkn_status upload(struct on_device *d, const struct Config *constants)
{
    const struct grid *grid = d->grid;
    struct gpu_device *device = d->bench->device;
    const struct State state = {.sample_count = grid->samples,
                                .live_count = grid->samples,
                                .ray_count = 1,
                                .loss_scale = 1};
    BASE_TRY(gpu_upload(device, &d->config, 0, constants, sizeof *constants));
    BASE_TRY(gpu_upload(device, &d->state, 0, &state, sizeof state));
    for (uint32_t set = 0; set < GRID_SETS; set++) {
        BASE_TRY(gpu_upload(device, &d->rays[set], 0, grid->ray[set], d->rays[set].size));
        BASE_TRY(gpu_upload(device, &d->samples[set], 0, grid->sample[set], d->samples[set].size));
    }
    if (!d->kind->sums)
        return bench_upload_values(d->bench, &d->params, grid->params, grid->model.param_count,
                                   d->kind->f16);
    BASE_TRY(bench_upload_indices(d->bench, &d->live));
    return bench_upload_values(d->bench, &d->features, grid->gradients, grid_features(grid),
                               d->kind->f16);
}

static vkn_status prepare(struct on_device *d)
{
    struct Config constants = {0};
    BASE_TRY(create_pipeline(d, &constants));
    BASE_TRY(allocate(d));
    BASE_TRY(bind(d));
    BASE_TRY(upload(d, &constants));
    if (!gpu_fault_injected(d->kind->pipeline))
        return VKN_OK;
    constants.levels[0].scale *= 2;
    return gpu_upload(d->bench->device, &d->config, 0, &constants, sizeof constants);
}

static void destroy(struct on_device *d)
{
    for (uint32_t set = 0; set < GRID_SETS; set++)
        gpu_bindings_destroy(&d->bindings[set]);
    gpu_pipeline_destroy(&d->pipeline);
    gpu_arena_destroy(&d->arena);
}

static void record(void *context, struct gpu_recording *recording, uint32_t iteration)
{
    const struct on_device *d = context;
    const struct Push none = {0};
    gpu_record_dispatch(recording, d->pipeline, d->bindings[iteration % GRID_SETS], &none,
                        sizeof none, d->groups);
}

/* ---- checking -------------------------------------------------------------------------------- */

static vkn_status check_gather(struct on_device *d, struct bench_check *check)
{
    const struct grid *grid = d->grid;
    uint32_t features = grid->model.features;
    for (uint32_t i = 0; i < OUTPUTS; i++)
        for (uint32_t level = 0; level < grid->model.levels; level++) {
            float got[4] = {0};
            double want[4] = {0};
            uint32_t s = (uint32_t)((i * 0x9e3779b97f4a7c15u >> 20) % grid->samples);
            uint64_t at = ((uint64_t)level * grid->samples + s) * features;
            uint64_t value_bytes = d->kind->f16 ? 2 : 4;
            BASE_TRY(gpu_download(d->bench->device, &d->features, value_bytes * at, got,
                                  value_bytes * features));
            grid_gather(grid, 0, s, level, want);
            for (uint32_t f = 0; f < features; f++)
                bench_compare(check, bench_read_value(got, f, d->kind->f16), want[f], 1);
        }
    return VKN_OK;
}

static double read_sum(const struct kind *kind, const unsigned char *bytes)
{
    uint32_t words[2] = {0};
    memcpy(words, bytes, kind->sum_bytes);
    if (kind->sum_bytes == 8)
        return ((int32_t)words[1] * 0x1p32 + (int32_t)words[0]) / FIXED_SCALE;
    return bench_read_value(words, 0, kind->sum_bytes == 2);
}

static vkn_status check_level(struct on_device *d, uint32_t level, struct bench_check *check)
{
    const struct grid *grid = d->grid;
    const struct Level *l = &grid->model.level[level];
    uint64_t count = (uint64_t)l->entries * grid->model.features, size = d->kind->sum_bytes;
    double *want = base_alloc(count, sizeof *want);
    unsigned char *got = base_alloc(count, size);
    vkn_status status = want && got ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        status = gpu_download(d->bench->device, &d->sums, l->first * size, got, count * size);
    if (status == VKN_OK) {
        grid_scatter(grid, 0, level, want);
        for (uint64_t i = 0; i < count; i++)
            bench_compare(check, read_sum(d->kind, got + i * size), want[i],
                          fmax(1, fabs(want[i])));
    }
    free(want);
    free(got);
    return status;
}

static vkn_status check_scatter(struct on_device *d, struct bench_check *check)
{
    uint32_t levels = d->grid->model.levels;
    BASE_TRY(check_level(d, 0, check));
    BASE_TRY(check_level(d, levels / 2, check));
    return check_level(d, levels - 1, check);
}

/* Runs the first set once, with accumulators set to zero or features to NaN, and checks outputs. */
static vkn_status check(struct on_device *d, struct bench_check *check)
{
    double seconds;
    const struct gpu_buffer *output = d->kind->sums ? &d->sums : &d->features;
    BASE_TRY(bench_fill(d->bench, output, d->kind->sums ? 0 : UINT32_MAX));
    BASE_TRY(bench_run(d->bench, record, d, 1, &seconds));
    return d->kind->sums ? check_scatter(d, check) : check_gather(d, check);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Returns the bytes that must be moved without any cache, see docs/bench.md. */
static double count_bytes(const struct grid *grid, const struct kind *kind)
{
    double samples = grid->samples, levels = grid->model.levels, features = grid->model.features;
    double value_bytes = kind->f16 ? 2 : 4, sample = sizeof(struct Sample);
    if (!kind->sums)
        return samples * (sample + levels * features * (8 * value_bytes + value_bytes));
    return samples * levels * (sample + 4 + features * (value_bytes + 8 * 2.0 * kind->sum_bytes));
}

static vkn_status measure(struct bench *bench, const struct grid *grid, const struct kind *kind)
{
    struct on_device d = {.bench = bench, .grid = grid, .kind = kind};
    struct bench_result result = {
        .suite = "grid",
        .backend = kind->name,
        .unit = "B/s",
        .bytes = count_bytes(grid, kind),
        .samples = grid->samples,
        .peak = bench->copy_peak,
        /* Positions are f32: rounding moves them by up to 1/8000 of a finest cell. */
        .check.tolerance = kind->sum_bytes == 2 ? 0.1 : 4e-3,
    };
    snprintf(result.name, sizeof result.name, "2^%u entries, %u samples",
             grid->config.grid.log2_entries, grid->samples);
    bench_add_size(&result, "entries", 1u << grid->config.grid.log2_entries);
    bench_add_size(&result, "levels", grid->model.levels);
    bench_add_size(&result, "features", grid->model.features);
    bench_add_size(&result, "samples", grid->samples);
    vkn_status status = prepare(&d);
    if (status == VKN_OK)
        status = check(&d, &result.check);
    if (status == VKN_OK && bench_passed(&result)) {
        BASE_TRY(bench_record_failure(&result, bench_fill(bench, &d.sums, 0)));
        status = bench_measure(bench, record, &d, &result.times);
    }
    destroy(&d);
    BASE_TRY(bench_record_failure(&result, status));
    bench_add_result(bench, &result);
    return VKN_OK;
}

static bool offered(const struct bench *bench, const struct kind *kind)
{
    const struct gpu_capabilities *device = bench->capabilities;
    enum vkn_precision only = bench->params->precision;
    if (only != VKN_PRECISION_AUTO && kind->f16 != (only != VKN_PRECISION_FP32))
        return false;
    if (kind->f16 && !(device->float16 && device->storage16))
        return false;
    if (!gpu_shader_exists(kind->pipeline) || (is_owned(kind) && !bench->is_cpu))
        return false;
    if (kind->sums && strcmp(kind->sums, "float") == 0)
        return device->float_atomic_add;
    if (kind->sums && strstr(kind->sums, "cas"))
        return device->cas_sums;
    return !kind->sums || strcmp(kind->sums, "f16") != 0 || device->packed_f16_atomics;
}

vkn_status bench_grid(struct bench *bench)
{
    static const struct kind kinds[] = {
        {"fp32 gather", "encode_samples", false, NULL, 0},
        {"fp16 gather", "encode_samples_fp16", true, NULL, 0},
        {"fp32 scatter float", "scatter_gradients_float", false, "float", 4},
        {"fp32 scatter owned", "scatter_gradients_owned", false, "owned", 4},
        {"fp32 scatter fixed", "scatter_gradients_fixed", false, "fixed", 8},
        {"fp32 scatter cas", "scatter_gradients_cas", false, "cas", 4},
        {"fp16 scatter float", "scatter_gradients_float", true, "float", 4},
        {"fp16 scatter owned", "scatter_gradients_owned", true, "owned", 4},
        {"fp16 scatter fixed", "scatter_gradients_fixed", true, "fixed", 8},
        {"fp16 scatter cas", "scatter_gradients_cas", true, "cas", 4},
        {"fp16 scatter f16", "scatter_gradients_f16", true, "f16", 2},
        {"fp16 scatter f16 cas", "scatter_gradients_f16_cas", true, "f16_cas", 2},
    };
    for (uint32_t log2 = 14; log2 <= 22; log2++) {
        uint32_t only = bench->params->log2_entries, quick = bench->small ? 14 : 19;
        bool listed = bench->params->quick ? log2 == quick : log2 <= (bench->small ? 18 : 22);
        bool skipped =
            bench->small ? log2 % 4 != 2 && !bench->params->quick : log2 % 2 && log2 != 19;
        if (only ? log2 != only : !listed || skipped)
            continue;
        struct grid grid = {0};
        vkn_status status = bench->counting ? VKN_OK : grid_create(bench, log2, &grid);
        for (size_t i = 0; i < BASE_COUNT(kinds) && status == VKN_OK; i++)
            if (offered(bench, &kinds[i]) && bench_next(bench))
                status = measure(bench, &grid, &kinds[i]);
        grid_free(&grid);
        BASE_TRY(status);
    }
    return VKN_OK;
}
