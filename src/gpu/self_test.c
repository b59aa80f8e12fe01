/* Tests a device with small problems, whose results are computed on the host. This file tests
 * subgroup operations and integer atomics. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

#define BINS           7u
#define GROUPS         8u
#define MAX_LOCAL_SIZE 1024u

/* Results per invocation, as in shaders/gpu/self_test.comp. */
struct slot {
    uint32_t subgroup_size, visits;
    uint32_t ballot_word, ones_before, ones;
    uint32_t sum, shuffled, unused;
};
struct bin {
    uint32_t sum, maximum, bits;
};

struct results {
    struct slot slots[MAX_LOCAL_SIZE];
    struct bin bins[BINS];
};

struct test {
    struct gpu_device *device;
    uint32_t local_size, subgroup_size;
    struct gpu_arena *arena;
    struct gpu_buffer values, slots, bins, readback;
    struct gpu_pipeline *pipeline;
    struct gpu_bindings *bindings;
};

static uint32_t value_at(uint32_t index)
{
    return (index * 2654435761u >> 13) % 1000u;
}

bool gpu_fault_injected(const char *name)
{
    static const char variable[] = "VKNERF_SELF_TEST_BREAK";
    const char *list = getenv(variable);
    return name ? gpu_environment_lists(variable, name) : list && list[0];
}

/* ---- running --------------------------------------------------------------------------------- */

static vkn_status create_buffers(struct test *test)
{
    struct gpu_buffer_request requests[] = {
        {&test->values, "self-test values", GROUPS * test->local_size * sizeof(uint32_t), GPU_HOST},
        {&test->slots, "self-test slots", sizeof(struct slot) * MAX_LOCAL_SIZE, GPU_DEVICE},
        {&test->bins, "self-test bins", sizeof(struct bin) * BINS, GPU_DEVICE},
        {&test->readback, "self-test results", sizeof(struct results), GPU_HOST},
    };
    BASE_TRY(gpu_arena_create(test->device, requests, BASE_COUNT(requests), &test->arena));
    uint32_t *values = test->values.mapped;
    for (uint32_t i = 0; i < GROUPS * test->local_size; i++)
        values[i] = value_at(i);
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {
        &test->values,
        &test->slots,
        &test->bins,
    };
    return gpu_bindings_create(test->device, buffers, &test->bindings);
}

static vkn_status run(struct test *test)
{
    const uint32_t bin_count = BINS;
    BASE_TRY(create_buffers(test));
    struct gpu_pipeline_options options = {.name = "gpu_self_test", .local_size = test->local_size};
    BASE_TRY(gpu_pipeline_create(test->device, &options, &test->pipeline));
    GPU_ONCE(test->device, "self-test");
    gpu_record_dispatch(recording, test->pipeline, test->bindings, &bin_count, sizeof bin_count,
                        GROUPS);
    gpu_record_barrier(recording);
    gpu_record_copy(recording, &test->slots, 0, &test->readback, offsetof(struct results, slots),
                    sizeof(struct slot) * MAX_LOCAL_SIZE);
    gpu_record_copy(recording, &test->bins, 0, &test->readback, offsetof(struct results, bins),
                    sizeof(struct bin) * BINS);
    return gpu_run_once(&recording);
}

/* ---- checking -------------------------------------------------------------------------------- */

static bool equals(const struct test *test, const char *what, const char *where, uint32_t index,
                   uint32_t got, uint32_t expected)
{
    if (got == expected)
        return true;
    base_fail(
        VKN_NO_DEVICE,
        "device \"%s\" fails the self-test: %s of %s %u is %u, not %u; another version of its "
        "driver may help",
        test->device->support.capabilities.name, what, where, index, got, expected);
    return false;
}

static bool check_subgroup(const struct test *test, const struct slot *slots, uint32_t first)
{
    uint32_t size = test->subgroup_size, ones = 0, sum = 0, words[4] = {0};
    for (uint32_t lane = 0; lane < size; lane++)
        words[lane / 32] |= (value_at(first + lane) & 1u) << lane % 32;
    for (uint32_t lane = 0; lane < size; lane++)
        ones += value_at(first + lane) & 1u;
    uint32_t ones_before = 0;
    for (uint32_t lane = 0; lane < size; lane++) {
        const struct slot *slot = &slots[first + lane];
        uint32_t i = first + lane, value = value_at(i);
        sum += value;
        if (!equals(test, "subgroup size", "invocation", i, slot->subgroup_size, size) ||
            !equals(test, "number of runs", "invocation", i, slot->visits, 1) ||
            !equals(test, "ballot", "invocation", i, slot->ballot_word, words[lane / 32]) ||
            !equals(test, "exclusive bit count", "invocation", i, slot->ones_before, ones_before) ||
            !equals(test, "bit count", "invocation", i, slot->ones, ones) ||
            !equals(test, "inclusive add", "invocation", i, slot->sum, sum) ||
            !equals(test, "shuffle", "invocation", i, slot->shuffled,
                    value_at(first + size - 1 - lane)))
            return false;
        ones_before += value & 1u;
    }
    return true;
}

static bool check_subgroups(const struct test *test, struct slot *slots)
{
    char device[24];
    snprintf(device, sizeof device, "device_%u", test->device->index);
    if (gpu_fault_injected("subgroups") || gpu_fault_injected(device))
        slots[1].sum++;
    for (uint32_t first = 0; first < test->local_size; first += test->subgroup_size)
        if (!check_subgroup(test, slots, first))
            return false;
    return true;
}

static bool check_bins(const struct test *test, struct bin *bins)
{
    struct bin expected[BINS] = {{0}};
    for (uint32_t i = 0; i < GROUPS * test->local_size; i++) {
        struct bin *bin = &expected[value_at(i) % BINS];
        bin->sum += value_at(i);
        bin->bits |= value_at(i);
        if (bin->maximum < value_at(i))
            bin->maximum = value_at(i);
    }
    if (gpu_fault_injected("integer_atomics"))
        bins[2].sum++;
    for (uint32_t i = 0; i < BINS; i++)
        if (!equals(test, "atomic add", "bin", i, bins[i].sum, expected[i].sum) ||
            !equals(test, "atomic maximum", "bin", i, bins[i].maximum, expected[i].maximum) ||
            !equals(test, "atomic or", "bin", i, bins[i].bits, expected[i].bits))
            return false;
    return true;
}

static vkn_status check_results(struct test *test)
{
    struct gpu_self_test *result = &test->device->self_test;
    struct results *results = test->readback.mapped;
    result->subgroups = check_subgroups(test, results->slots);
    if (!result->subgroups)
        return VKN_NO_DEVICE;
    result->integer_atomics = check_bins(test, results->bins);
    return result->integer_atomics ? VKN_OK : VKN_NO_DEVICE;
}

static vkn_status skip_tests(struct gpu_device *device)
{
    struct gpu_capabilities *capabilities = &device->support.capabilities;
    bool f16 = capabilities->float16 && capabilities->storage16;
    capabilities->cas_sums = true;
    capabilities->f16_subnormals = capabilities->f16_rounding = f16;
    device->self_test =
        (struct gpu_self_test){true, true, capabilities->float_atomic_add, true, f16, f16};
    return VKN_OK;
}

vkn_status gpu_self_test_run(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    if (gpu_disabled("self_test"))
        return skip_tests(device);
    struct test test = {
        .device = device,
        .subgroup_size = capabilities->subgroup_size,
        .local_size = 4 * capabilities->subgroup_size,
    };
    uint32_t most = gpu_largest_workgroup(capabilities, test.subgroup_size);
    while (test.local_size > most || test.local_size > MAX_LOCAL_SIZE)
        test.local_size -= test.subgroup_size;
    vkn_status status = run(&test);
    if (status == VKN_OK)
        status = check_results(&test);
    gpu_bindings_destroy(&test.bindings);
    gpu_pipeline_destroy(&test.pipeline);
    gpu_arena_destroy(&test.arena);
    if (status == VKN_OK)
        status = gpu_self_test_sums(device);
    return status == VKN_OK ? gpu_self_test_f16(device) : status;
}
