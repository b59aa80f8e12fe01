/* Tests f16 numbers: whether subnormal numbers survive loads, arithmetic, conversions and stores,
 * and whether conversions from f32 round to nearest, ties to even. */
#include "gpu/internal.h"

#include <math.h>

#define TINIEST 0x1p-24f /* smallest subnormal f16 */

/* Subnormal numbers that are exact in f16, then numbers that f16 rounds. */
static const float numbers[] = {
    TINIEST,
    3 * TINIEST,
    -0x1p-15f,
    0x1p-14f - TINIEST,        /* the largest subnormal number */
    1.5f * TINIEST,            /* a tie, rounds up to 2^-23 */
    0.5f * TINIEST,            /* a tie, rounds to zero */
    0.75f * TINIEST,           /* rounds up to 2^-24 */
    0x1p-14f - 0.5f * TINIEST, /* a tie, rounds up to the smallest normal number */
    1 + 0x1p-11f,              /* a tie, rounds down */
    1 + 0x3p-11f,              /* a tie, rounds up */
    1 + 0x1p-11f + 0x1p-20f,
    -(1 + 0x5p-12f),
    2047.5f,
    65503,
    0.1f,
    -3.3f,
};
#define PAIRS (BASE_COUNT(numbers) / 2)

/* Results of a pair, as in shaders/gpu/self_test_f16.comp. */
struct result {
    uint16_t copied[2], product[2], sum[2], converted[2];
    float widened[2];
};

struct f16_test {
    struct gpu_device *device;
    struct gpu_arena *arena;
    struct gpu_buffer floats, f16s, factors, results;
    struct gpu_pipeline *pipeline;
    struct gpu_bindings *bindings;
};

static vkn_status run(struct f16_test *test)
{
    struct gpu_buffer_request requests[] = {
        {&test->floats, "self-test f32", sizeof numbers, GPU_HOST},
        {&test->f16s, "self-test f16", sizeof numbers / 2, GPU_HOST},
        {&test->factors, "self-test factors", 2 * sizeof(uint16_t), GPU_HOST},
        {&test->results, "self-test results", PAIRS * sizeof(struct result), GPU_HOST},
    };
    uint32_t subgroup = test->device->support.capabilities.subgroup_size, pairs = PAIRS;
    struct gpu_pipeline_options options = {.name = "gpu_self_test_f16", .local_size = subgroup};
    BASE_TRY(gpu_arena_create(test->device, requests, BASE_COUNT(requests), &test->arena));
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {&test->floats, &test->f16s, &test->factors,
                                                      &test->results};
    BASE_TRY(gpu_bindings_create(test->device, buffers, &test->bindings));
    BASE_TRY(gpu_pipeline_create(test->device, &options, &test->pipeline));
    float *floats = test->floats.mapped;
    uint16_t *f16s = test->f16s.mapped, *ones = test->factors.mapped;
    ones[0] = ones[1] = base_to_f16(1);
    for (size_t i = 0; i < BASE_COUNT(numbers); i++) {
        floats[i] = numbers[i];
        f16s[i] = base_to_f16(numbers[i]);
    }
    GPU_ONCE(test->device, "self-test of f16");
    gpu_record_dispatch(recording, test->pipeline, test->bindings, &pairs, sizeof pairs,
                        ((uint32_t)PAIRS + subgroup - 1) / subgroup);
    return gpu_run_once(&recording);
}

/* Compares the results of one number with what f16 must give. A device that flushes subnormal
 * numbers need not round them. */
static void check_number(const struct result *result, size_t at, float number,
                         struct gpu_self_test *found)
{
    uint16_t f16 = base_to_f16(number);
    float widened = base_from_f16(f16);
    bool computed = result->copied[at] == f16 && result->product[at] == f16 &&
                    result->sum[at] == base_to_f16(2 * widened) && result->widened[at] == widened;
    bool converted = result->converted[at] == f16, subnormal = fabsf(number) < 0x1p-14f;
    if (number == widened)
        found->f16_subnormals = found->f16_subnormals && computed && converted;
    else if (!subnormal || found->f16_subnormals)
        found->f16_rounding = found->f16_rounding && converted;
}

static void check(const struct f16_test *test, struct gpu_self_test *found)
{
    const struct result *results = test->results.mapped;
    found->f16_subnormals = !gpu_fault_injected("f16_subnormals");
    found->f16_rounding = !gpu_fault_injected("f16_rounding");
    for (size_t i = 0; i < BASE_COUNT(numbers); i++)
        check_number(&results[i / 2], i % 2, numbers[i], found);
}

vkn_status gpu_self_test_f16(struct gpu_device *device)
{
    struct gpu_capabilities *capabilities = &device->support.capabilities;
    struct f16_test test = {.device = device};
    if (!capabilities->float16 || !capabilities->storage16)
        return VKN_OK;
    vkn_status status = run(&test);
    if (status == VKN_OK)
        check(&test, &device->self_test);
    gpu_bindings_destroy(&test.bindings);
    gpu_pipeline_destroy(&test.pipeline);
    gpu_arena_destroy(&test.arena);
    capabilities->f16_subnormals = device->self_test.f16_subnormals;
    capabilities->f16_rounding = device->self_test.f16_rounding;
    return status == VKN_NO_DEVICE ? status : VKN_OK;
}
