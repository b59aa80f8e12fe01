/* Measures the products of gemm.c with the vendor's library. */
#include "bench/suites.h"

#include <math.h>
#include <stdlib.h>

#define MAX_REPETITIONS 100u

static vkn_status check(struct vendor *vendor, const struct gemm_case *c,
                        const struct gemm_patterns *patterns, const struct vendor_product *product,
                        struct bench_check *check)
{
    bool f16_output = product->kind == VENDOR_F16_F16;
    double seconds;
    BASE_TRY(vendor_run(vendor, product->sets, &seconds));
    for (uint32_t i = 0; i < GEMM_OUTPUTS; i++) {
        float f32 = 0;
        uint16_t f16 = 0;
        uint32_t set;
        uint64_t at = gemm_output(c, product->sets, i, &set);
        uint64_t index = (uint64_t)set * c->m * c->n + at;
        BASE_TRY(f16_output ? vendor_download(vendor, &f16, 2 * index, 2)
                            : vendor_download(vendor, &f32, 4 * index, 4));
        gemm_compare(c, patterns, false, set, at, f16_output ? base_from_f16(f16) : f32, check);
    }
    return VKN_OK;
}

static vkn_status repeat(struct bench *bench, struct vendor *vendor, struct bench_times *times)
{
    double seconds[MAX_REPETITIONS], once;
    uint32_t wanted = bench_repetitions(bench), count = 0;
    BASE_TRY(vendor_run(vendor, 1, &once));
    double iterations = ceil(2e-3 / fmax(once, 1e-7));
    times->iterations = iterations < 1 ? 1 : iterations > 4096 ? 4096 : (uint32_t)iterations;
    times->by_device_clock = true;
    for (double began = base_seconds(); base_seconds() - began < 0.05;)
        BASE_TRY(vendor_run(vendor, times->iterations, &once));
    for (; count < wanted && count < MAX_REPETITIONS; count++) {
        if (bench_stopped(bench))
            return base_fail(VKN_INTERRUPTED, "interrupted");
        BASE_TRY(vendor_run(vendor, times->iterations, &seconds[count]));
        seconds[count] /= times->iterations;
    }
    bench_summarize(seconds, count, times);
    return VKN_OK;
}

static vkn_status measure(struct bench *bench, const struct gemm_case *c, enum vendor_kind kind,
                          const struct gemm_patterns *patterns, struct gemm_vendor *vendor)
{
    bool f16_inputs = kind == VENDOR_F16_F32 || kind == VENDOR_F16_F16,
         f16_sums = kind == VENDOR_F16_F16;
    struct bench_result result = {.backend = vendor_names[kind]};
    gemm_describe(c, &result);
    uint64_t bytes = gemm_bytes(c, f16_inputs ? 2 : 4, f16_sums ? 2 : 4);
    const struct vendor_product product = {
        .kind = kind,
        .m = c->m,
        .n = c->n,
        .k = c->k,
        .sets = bench_sets(bench, bytes),
        .a = f16_inputs ? (const void *)patterns->f16_a : patterns->a,
        .b = f16_inputs ? (const void *)patterns->f16_b : patterns->b,
        .pattern = (uint64_t)GEMM_PATTERN * (f16_inputs ? 2 : 4),
    };
    result.bytes = (double)bytes;
    /* TF32 has a 10-bit mantissa like f16, so A and B are exact. */
    result.check.tolerance = gemm_tolerance(c, f16_sums, f16_sums);
    vkn_status status = vendor_begin(vendor->library, &product);
    if (status == VKN_OK)
        status = check(vendor->library, c, patterns, &product, &result.check);
    if (status == VKN_OK && bench_passed(&result))
        status = repeat(bench, vendor->library, &result.times);
    vendor_end(vendor->library);
    BASE_TRY(bench_record_failure(&result, status));
    vendor->rates[kind] = bench_rate(&result);
    bench_add_result(bench, &result);
    return VKN_OK;
}

vkn_status gemm_measure_vendor(struct bench *bench, const struct gemm_case *c,
                               const struct gemm_patterns *patterns, struct gemm_vendor *vendor)
{
    for (int kind = 0; kind < VENDOR_KINDS; kind++)
        if (bench_next(bench))
            BASE_TRY(measure(bench, c, (enum vendor_kind)kind, patterns, vendor));
    return VKN_OK;
}
