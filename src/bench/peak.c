/* Measures peak rates: multiply-adds in registers, for each backend, and copies in memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/internal.h"

/* Sizes as in shaders/bench/peak.comp and peak_matrix.comp. */
#define MOST_CHAINS   12u
#define MATRIX_CHAINS 8u
#define MATRIX_STEPS  8u
#define INPUTS        1024u /* largest number of elements */

struct peak {
    struct bench *bench;
    struct bench_backend *backend; /* NULL: copies */
    struct gpu_arena *arena;
    struct gpu_buffer inputs, outputs;
    struct gpu_pipeline *pipeline;
    struct gpu_bindings *bindings;
    uint32_t groups, local_size;
    uint32_t packed, chains, steps; /* scalar: values per chain; chains; unrolled steps */
    uint32_t push[4];
    uint64_t copy_bytes; /* copies: bytes per iteration */
};

static void record(void *context, struct gpu_recording *recording, uint32_t iteration)
{
    const struct peak *peak = context;
    uint32_t push[4];
    memcpy(push, peak->push, sizeof push);
    if (!peak->backend) /* copies alternate between parts of the buffer */
        push[0] = (uint32_t)(iteration % (peak->inputs.size / peak->copy_bytes) *
                             (peak->copy_bytes / 16));
    gpu_record_dispatch(recording, peak->pipeline, peak->bindings, push, sizeof push, peak->groups);
}

static vkn_status prepare(struct peak *peak, const char *pipeline, uint32_t constant,
                          uint64_t inputs, uint64_t outputs)
{
    struct gpu_device *device = peak->bench->device;
    struct gpu_buffer_request requests[] = {
        {&peak->inputs, "bench inputs", inputs, GPU_DEVICE},
        {&peak->outputs, "bench outputs", outputs, GPU_DEVICE},
    };
    struct gpu_constants constants = {.values = {[GPU_FIRST_CONSTANT] = constant},
                                      .count = GPU_FIRST_CONSTANT + 1};
    struct gpu_pipeline_options options = {
        .name = pipeline, .local_size = peak->local_size, .constants = &constants};
    BASE_TRY(gpu_pipeline_create(device, &options, &peak->pipeline));
    BASE_TRY(gpu_arena_create(device, requests, BASE_COUNT(requests), &peak->arena));
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {&peak->inputs, &peak->outputs};
    return gpu_bindings_create(device, buffers, &peak->bindings);
}

static void destroy(struct peak *peak)
{
    gpu_bindings_destroy(&peak->bindings);
    gpu_pipeline_destroy(&peak->pipeline);
    gpu_arena_destroy(&peak->arena);
}

/* Doubles the iterations within the shader until a dispatch takes long enough. */
static vkn_status measure_long(struct peak *peak, struct bench_times *times)
{
    double seconds = 0, enough = peak->bench->is_cpu ? 4e-3 : 2e-3;
    for (peak->push[0] = 1; peak->push[0] < 1u << 20; peak->push[0] *= 2) {
        BASE_TRY(bench_run(peak->bench, record, peak, 1, &seconds));
        if (seconds >= enough)
            break;
    }
    return bench_measure(peak->bench, record, peak, times);
}

/* ---- scalar ---------------------------------------------------------------------------------- */

/* Uploads x, y = 1 and initial sums. With x = 1 a sum counts the steps; with -1 it stays small. */
static vkn_status put_scalar(struct peak *peak, float x)
{
    float inputs[2 + MOST_CHAINS] = {x, 1};
    for (uint32_t c = 0; c < MOST_CHAINS; c++)
        inputs[2 + c] = (float)c;
    return gpu_upload(peak->bench->device, &peak->inputs, 0, inputs, sizeof inputs);
}

static vkn_status check_scalar(struct peak *peak, struct bench_check *check)
{
    float sums[64];
    double seconds;
    BASE_TRY(put_scalar(peak, gpu_fault_injected("bench_peak") ? 0.5f : 1.0f));
    peak->push[0] = 2;
    BASE_TRY(bench_run(peak->bench, record, peak, 1, &seconds));
    BASE_TRY(gpu_download(peak->bench->device, &peak->outputs, 0, sums, sizeof sums));
    for (uint32_t i = 0; i < BASE_COUNT(sums); i++) {
        double want = 0;
        for (uint32_t c = 0; c < peak->chains; c++)
            want += peak->packed * (c + i % 8 + 2.0 * peak->steps);
        bench_compare(check, (double)sums[i], want, want);
    }
    return VKN_OK;
}

static vkn_status run_scalar(struct peak *peak, struct bench_result *result)
{
    bool f16 = peak->backend->precision == VKN_PRECISION_FP16, is_cpu = peak->bench->is_cpu;
    char pipeline[64];
    snprintf(pipeline, sizeof pipeline, "bench_peak_%s", peak->backend->pipeline);
    peak->local_size = 64;
    peak->groups = is_cpu ? 64 : 1u << 15;
    peak->packed = f16 ? 2 : 1;
    peak->chains = f16 ? 8 : MOST_CHAINS;
    peak->steps = f16 && is_cpu ? 4 : 32; /* lavapipe compiles long sequences of f16 slowly */
    uint64_t invocations = (uint64_t)peak->groups * peak->local_size;
    BASE_TRY(prepare(peak, pipeline, peak->steps, 4ull * (2 + MOST_CHAINS), 4 * invocations));
    BASE_TRY(check_scalar(peak, &result->check));
    if (!bench_passed(result))
        return VKN_OK;
    BASE_TRY(put_scalar(peak, -1));
    BASE_TRY(measure_long(peak, &result->times));
    result->flops =
        2.0 * peak->packed * peak->chains * peak->steps * peak->push[0] * (double)invocations;
    return VKN_OK;
}

/* ---- matrices -------------------------------------------------------------------------------- */

/* Elements are -1, 0 or 1, so that sums are exact in f16. */
static int a_at(uint32_t m, uint32_t k)
{
    return (int)((7 * m + 3 * k + m * k) % 3) - 1;
}

static int b_at(uint32_t k, uint32_t n)
{
    return (int)((5 * k + 2 * n + k * n) % 3) - 1;
}

static vkn_status put_matrices(struct peak *peak)
{
    const struct gpu_matrix_shape *shape = &peak->backend->shape;
    uint16_t inputs[INPUTS] = {0};
    uint32_t b = shape->m * shape->k, negative = b + shape->k * shape->n;
    for (uint32_t k = 0; k < shape->k; k++) {
        for (uint32_t m = 0; m < shape->m; m++)
            inputs[m * shape->k + k] = base_to_f16((float)a_at(m, k));
        for (uint32_t n = 0; n < shape->n; n++) {
            inputs[b + k * shape->n + n] = base_to_f16((float)b_at(k, n));
            inputs[negative + k * shape->n + n] = base_to_f16((float)-b_at(k, n));
        }
    }
    if (gpu_fault_injected("bench_peak"))
        inputs[0] = base_to_f16(2);
    return gpu_upload(peak->bench->device, &peak->inputs, 0, inputs, sizeof inputs);
}

static double expected_sum(const struct gpu_matrix_shape *shape, uint32_t m, uint32_t n)
{
    double product = 0;
    for (uint32_t k = 0; k < shape->k; k++)
        product += a_at(m, k) * b_at(k, n);
    return MATRIX_CHAINS * (MATRIX_CHAINS - 1) / 2.0 + 2.0 * MATRIX_CHAINS * MATRIX_STEPS * product;
}

/* Runs one iteration that multiplies by B twice instead of by B and -B; its sums are exact. */
static vkn_status check_matrices(struct peak *peak, struct bench_check *check)
{
    const struct gpu_matrix_shape *shape = &peak->backend->shape;
    uint32_t count = shape->m * shape->n;
    float sums[256];
    bool f16 = peak->backend->f16_accumulate;
    double seconds;
    peak->push[0] = 1;
    peak->push[3] = peak->push[2];
    BASE_TRY(bench_run(peak->bench, record, peak, 1, &seconds));
    BASE_TRY(gpu_download(peak->bench->device, &peak->outputs, 0, sums, count * (f16 ? 2u : 4u)));
    for (uint32_t i = 0; i < count; i++) {
        double want = expected_sum(shape, i / shape->n, i % shape->n);
        bench_compare(check, bench_read_value(sums, i, f16), want, fmax(1, fabs(want)));
    }
    peak->push[3] = shape->m * shape->k + shape->k * shape->n;
    return VKN_OK;
}

static vkn_status run_matrices(struct peak *peak, struct bench_result *result)
{
    const struct gpu_matrix_shape *shape = &peak->backend->shape;
    const struct gpu_capabilities *device = peak->bench->capabilities;
    char pipeline[64];
    snprintf(pipeline, sizeof pipeline, "bench_peak_%s", peak->backend->pipeline);
    peak->local_size = 4 * device->subgroup_size;
    peak->groups = peak->bench->is_cpu ? 16 : 1u << 14;
    uint64_t subgroups = 4ull * peak->groups;
    peak->push[2] = shape->m * shape->k;
    BASE_TRY(prepare(peak, pipeline, peak->bench->is_cpu, 2ull * INPUTS,
                     4 * subgroups * shape->m * shape->n));
    BASE_TRY(put_matrices(peak));
    BASE_TRY(check_matrices(peak, &result->check));
    if (!bench_passed(result))
        return VKN_OK;
    BASE_TRY(measure_long(peak, &result->times));
    result->flops = 2.0 * shape->m * shape->n * shape->k * 2 * MATRIX_CHAINS * MATRIX_STEPS *
                    peak->push[0] * (double)subgroups;
    return VKN_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

#define COPY_PATTERN 4096u /* bytes, repeated to fill the buffers */

static vkn_status check_copy(struct peak *peak, const uint32_t *pattern, struct bench_check *check)
{
    uint32_t words[16];
    double seconds;
    BASE_TRY(bench_fill(peak->bench, &peak->outputs, UINT32_MAX));
    uint32_t iterations = (uint32_t)(peak->inputs.size / peak->copy_bytes);
    BASE_TRY(bench_run(peak->bench, record, peak, iterations, &seconds));
    for (uint32_t i = 0; i < 16; i++) {
        uint64_t at =
            i == 15 ? peak->inputs.size - sizeof words : peak->inputs.size / 15 * i / 64 * 64;
        BASE_TRY(gpu_download(peak->bench->device, &peak->outputs, at, words, sizeof words));
        for (uint32_t w = 0; w < BASE_COUNT(words); w++)
            bench_compare(check, words[w], pattern[(at / 4 + w) % (COPY_PATTERN / 4)], 1);
    }
    return VKN_OK;
}

static vkn_status run_copy(struct peak *peak, struct bench_result *result)
{
    uint32_t pattern[COPY_PATTERN / 4];
    for (uint32_t i = 0; i < BASE_COUNT(pattern); i++)
        pattern[i] = i * 2654435761u;
    peak->copy_bytes = peak->bench->is_cpu ? 16u << 20 : 64u << 20;
    uint64_t size = peak->copy_bytes * (peak->bench->is_cpu ? 4 : 8);
    peak->local_size = 64;
    peak->groups = peak->bench->is_cpu ? 64 : 16384;
    peak->push[1] = (uint32_t)(peak->copy_bytes / 16);
    BASE_TRY(prepare(peak, "bench_copy", 0, size, size));
    BASE_TRY(bench_upload_pattern(peak->bench, &peak->inputs, pattern, sizeof pattern));
    BASE_TRY(check_copy(peak, pattern, &result->check));
    if (!bench_passed(result))
        return VKN_OK;
    result->bytes = 2.0 * (double)peak->copy_bytes;
    return bench_measure(peak->bench, record, peak, &result->times);
}

/* ---- peaks ----------------------------------------------------------------------------------- */

static vkn_status measure_peak(struct bench *bench, struct bench_backend *backend)
{
    struct bench_result result = {
        .suite = "peak",
        .backend = backend ? backend->name : "copy",
        .unit = backend ? "FLOP/s" : "B/s",
        .check.tolerance = backend ? 1e-6 : 0,
    };
    struct peak peak = {.bench = bench, .backend = backend};
    snprintf(result.name, sizeof result.name, "%s", backend ? "registers" : "memory");
    vkn_status status = !backend                                      ? run_copy(&peak, &result)
                        : backend->precision == VKN_PRECISION_COOPMAT ? run_matrices(&peak, &result)
                                                                      : run_scalar(&peak, &result);
    destroy(&peak);
    BASE_TRY(bench_record_failure(&result, status));
    *(backend ? &backend->peak : &bench->copy_peak) = bench_rate(&result);
    bench_add_result(bench, &result);
    return VKN_OK;
}

/* Conversions of matrices do not change the peak rate in registers. */
static double peak_without_conversions(const struct bench *bench,
                                       const struct bench_backend *backend)
{
    for (uint32_t i = 0; i < bench->backend_count; i++)
        if (!bench->backends[i].conversions &&
            strcmp(bench->backends[i].pipeline, backend->pipeline) == 0)
            return bench->backends[i].peak;
    return 0;
}

vkn_status bench_peaks(struct bench *bench)
{
    if (bench_next(bench))
        BASE_TRY(measure_peak(bench, NULL));
    bool measures_registers = bench->params->suite != VKN_BENCH_GRID;
    for (uint32_t i = 0; i < bench->backend_count && measures_registers; i++) {
        struct bench_backend *backend = &bench->backends[i];
        if (backend->conversions)
            backend->peak = peak_without_conversions(bench, backend);
        else if (bench_next(bench))
            BASE_TRY(measure_peak(bench, backend));
    }
    return VKN_OK;
}
