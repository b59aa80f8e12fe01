/* Tests f32 sums that many invocations form at once: by the atomic instruction and by
 * compare-and-swap. */
#include "gpu/internal.h"

#include <stdlib.h>

#define GROUPS     8u
#define LOCAL_SIZE 256u /* most invocations of a workgroup */

/* Additions of a dispatch: each invocation adds `rounds` times to one of `sums` sums. */
static const struct pattern {
    uint32_t sums, rounds;
} patterns[] = {
    {1, 4},                      /* all invocations contend for one address */
    {7, 4},                      /* every subgroup contends within itself for several addresses */
    {1021, 16},                  /* invocations of different workgroups meet at many addresses */
    {GROUPS * LOCAL_SIZE, 256u}, /* long chains without contention */
};
#define SUMS (1u + 7u + 1021u + GROUPS * LOCAL_SIZE)

/* One way to add, its name in VKNERF_SELF_TEST_BREAK, and the start of its warning. */
struct way {
    const char *shader, *fault, *switched_off;
};

struct sums_test {
    struct gpu_device *device;
    uint32_t local_size;
    struct gpu_arena *arena;
    struct gpu_buffer sums, readback;
    struct gpu_pipeline *pipeline;
    struct gpu_bindings *bindings;
};

static vkn_status run(struct sums_test *test, const struct way *way)
{
    struct gpu_buffer_request requests[] = {
        {&test->sums, "self-test sums", SUMS * sizeof(float), GPU_DEVICE},
        {&test->readback, "self-test results", SUMS * sizeof(float), GPU_HOST},
    };
    struct gpu_pipeline_options options = {.name = way->shader, .local_size = test->local_size};
    BASE_TRY(gpu_arena_create(test->device, requests, BASE_COUNT(requests), &test->arena));
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {&test->sums};
    BASE_TRY(gpu_bindings_create(test->device, buffers, &test->bindings));
    BASE_TRY(gpu_pipeline_create(test->device, &options, &test->pipeline));
    GPU_ONCE(test->device, "self-test of sums");
    uint32_t first = 0;
    for (size_t i = 0; i < BASE_COUNT(patterns); i++) {
        const uint32_t push[] = {first, patterns[i].sums, patterns[i].rounds};
        gpu_record_dispatch(recording, test->pipeline, test->bindings, push, sizeof push, GROUPS);
        first += patterns[i].sums;
    }
    gpu_record_barrier(recording);
    gpu_record_copy(recording, &test->sums, 0, &test->readback, 0, SUMS * sizeof(float));
    return gpu_run_once(&recording);
}

/* Adds up what the shader adds in one dispatch, in quarters. */
static void add_pattern(const struct pattern *pattern, uint32_t invocations, uint32_t *sums)
{
    for (uint32_t i = 0; i < invocations; i++)
        for (uint32_t r = 0; r < pattern->rounds; r++)
            sums[i % pattern->sums] += (i + r) & 7u;
}

/* Describes the first wrong sum in `fault`; empty: all are right. */
static vkn_status check(const struct sums_test *test, const struct way *way, char *fault,
                        size_t size)
{
    const float *sums = test->readback.mapped;
    uint32_t *quarters = base_alloc(SUMS, sizeof *quarters), first = 0;
    if (!quarters)
        return VKN_ERROR;
    for (size_t i = 0; i < BASE_COUNT(patterns); first += patterns[i++].sums)
        add_pattern(&patterns[i], GROUPS * test->local_size, quarters + first);
    if (gpu_fault_injected(way->fault))
        quarters[1]++;
    for (uint32_t i = 0; i < SUMS && !fault[0]; i++)
        if ((double)sums[i] != 0.25 * quarters[i])
            snprintf(fault, size, "the self-test's sum %u is %.2f, not %.2f", i, (double)sums[i],
                     0.25 * quarters[i]);
    free(quarters);
    return VKN_OK;
}

/* Sets *passed to whether the sums are right; else warns. VKN_NO_DEVICE: the device was lost. */
static vkn_status test_way(struct gpu_device *device, const struct way *way, bool *passed)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    uint32_t subgroup = capabilities->subgroup_size, local_size = 4 * subgroup;
    uint32_t most = gpu_largest_workgroup(capabilities, subgroup);
    while (local_size > most || local_size > LOCAL_SIZE)
        local_size -= subgroup;
    struct sums_test test = {.device = device, .local_size = local_size};
    char fault[256] = "";
    vkn_status status = run(&test, way);
    if (status == VKN_OK)
        status = check(&test, way, fault, sizeof fault);
    else if (status != VKN_NO_DEVICE)
        snprintf(fault, sizeof fault, "%s", vkn_last_error());
    gpu_bindings_destroy(&test.bindings);
    gpu_pipeline_destroy(&test.pipeline);
    gpu_arena_destroy(&test.arena);
    *passed = status == VKN_OK && !fault[0];
    if (fault[0])
        base_log(BASE_LOG_WARNING, "\"%s\": %s: %s", capabilities->name, way->switched_off, fault);
    return fault[0] ? VKN_OK : status;
}

vkn_status gpu_self_test_sums(struct gpu_device *device)
{
    static const struct way atomic = {
        "gpu_self_test_float",
        "float_atomics",
        "float atomics are switched off, gradients are summed in fixed point instead",
    };
    static const struct way cas = {
        "gpu_self_test_cas",
        "cas_sums",
        "sums by compare-and-swap (gradient_sums=cas) are switched off",
    };
    struct gpu_capabilities *capabilities = &device->support.capabilities;
    struct gpu_self_test *result = &device->self_test;
    if (capabilities->float_atomic_add)
        BASE_TRY(test_way(device, &atomic, &result->float_atomics));
    capabilities->float_atomic_add = result->float_atomics;
    BASE_TRY(test_way(device, &cas, &result->cas_sums));
    capabilities->cas_sums = result->cas_sums;
    return VKN_OK;
}
