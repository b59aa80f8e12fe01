/* Tests cooperative matrices with products of small integers, which are exact in f16. */
#include "gpu/internal.h"

#include <string.h>

#define MAX_EDGE 16u

struct matrix_test {
    struct gpu_device *device;
    struct gpu_matrix_shape shape;
    bool f16_accumulate;
    char shader_name[48];
    struct gpu_arena *arena;
    struct gpu_buffer a, b, sums;
    struct gpu_pipeline *pipeline;
    struct gpu_bindings *bindings;
};

static int a_at(uint32_t m, uint32_t k)
{
    return (int)((7 * m + 3 * k + m * k) % 5) - 2;
}

static int b_at(uint32_t k, uint32_t n)
{
    return (int)((5 * k + 2 * n + k * n) % 7) - 3;
}

static int c_at(uint32_t m, uint32_t n)
{
    return (int)((m + 11 * n) % 9) - 4;
}

static int expected(const struct matrix_test *test, uint32_t m, uint32_t n)
{
    int sum = c_at(m, n);
    for (uint32_t k = 0; k < test->shape.k; k++)
        sum += a_at(m, k) * b_at(k, n);
    return sum;
}

static void write_sum(const struct matrix_test *test, uint32_t at, int value)
{
    if (test->f16_accumulate)
        ((uint16_t *)test->sums.mapped)[at] = base_to_f16((float)value);
    else
        ((float *)test->sums.mapped)[at] = (float)value;
}

static bool sum_is(const struct matrix_test *test, uint32_t at, int value)
{
    if (test->f16_accumulate)
        return ((const uint16_t *)test->sums.mapped)[at] == base_to_f16((float)value);
    return ((const float *)test->sums.mapped)[at] == (float)value;
}

static void fill(struct matrix_test *test)
{
    const struct gpu_matrix_shape *shape = &test->shape;
    uint16_t *a = test->a.mapped, *b = test->b.mapped;
    for (uint32_t k = 0; k < shape->k; k++) {
        for (uint32_t m = 0; m < shape->m; m++)
            a[m * shape->k + k] = base_to_f16((float)a_at(m, k));
        for (uint32_t n = 0; n < shape->n; n++)
            b[n * shape->k + k] = base_to_f16((float)b_at(k, n));
    }
    if (gpu_fault_injected(test->shader_name + strlen("gpu_")))
        a[shape->k] = base_to_f16((float)(a_at(1, 0) + 1));
    for (uint32_t m = 0; m < shape->m; m++)
        for (uint32_t n = 0; n < shape->n; n++)
            write_sum(test, m * shape->n + n, c_at(m, n));
}

static vkn_status run(struct matrix_test *test)
{
    struct gpu_buffer_request requests[] = {
        {&test->a, "self-test A", 2ull * MAX_EDGE * MAX_EDGE, GPU_HOST},
        {&test->b, "self-test B", 2ull * MAX_EDGE * MAX_EDGE, GPU_HOST},
        {&test->sums, "self-test sums", 4ull * MAX_EDGE * MAX_EDGE, GPU_HOST},
    };
    struct gpu_pipeline_options options = {
        .name = test->shader_name,
        .local_size = test->device->support.capabilities.subgroup_size,
    };
    BASE_TRY(gpu_arena_create(test->device, requests, BASE_COUNT(requests), &test->arena));
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {&test->a, &test->b, &test->sums};
    BASE_TRY(gpu_bindings_create(test->device, buffers, &test->bindings));
    BASE_TRY(gpu_pipeline_create(test->device, &options, &test->pipeline));
    fill(test);
    GPU_ONCE(test->device, "matrix self-test");
    gpu_record_dispatch(recording, test->pipeline, test->bindings, NULL, 0, 1);
    return gpu_run_once(&recording);
}

/* Describes the first wrong element in `fault`; empty: all are right. */
static void check_product(const struct matrix_test *test, char *fault, size_t size)
{
    fault[0] = 0;
    for (uint32_t m = 0; m < test->shape.m; m++)
        for (uint32_t n = 0; n < test->shape.n; n++)
            if (!sum_is(test, m * test->shape.n + n, expected(test, m, n))) {
                snprintf(fault, size, "row %u, column %u of a product is not %d", m, n,
                         expected(test, m, n));
                return;
            }
}

void gpu_remove_matrix_shape(struct gpu_device *device, uint32_t index)
{
    struct gpu_capabilities *capabilities = &device->support.capabilities;
    uint32_t following = --capabilities->shape_count - index;
    memmove(&capabilities->shapes[index], &capabilities->shapes[index + 1],
            following * sizeof capabilities->shapes[0]);
    memmove(&device->matrices_tested[index], &device->matrices_tested[index + 1],
            following * sizeof device->matrices_tested[0]);
}

/* Tests one shape. *removed: the test failed, and the shape was removed from the list. */
static vkn_status test_matrix(struct gpu_device *device, uint32_t index, bool *removed)
{
    struct matrix_test test = {.device = device,
                               .shape = device->support.capabilities.shapes[index]};
    const struct gpu_matrix_shape *shape = &test.shape;
    char fault[256] = "";
    *removed = false;
    device->matrices_tested[index] = true;
    test.f16_accumulate = strcmp(shape->c_type, "f16") == 0;
    snprintf(test.shader_name, sizeof test.shader_name, "gpu_matrix_%ux%ux%u%s", shape->m, shape->n,
             shape->k, test.f16_accumulate ? "_f16" : "");
    if (!gpu_shader_exists(test.shader_name))
        return VKN_OK;
    vkn_status status = run(&test);
    if (status == VKN_OK)
        check_product(&test, fault, sizeof fault);
    else if (status != VKN_NO_DEVICE)
        snprintf(fault, sizeof fault, "%s", vkn_last_error());
    gpu_bindings_destroy(&test.bindings);
    gpu_pipeline_destroy(&test.pipeline);
    gpu_arena_destroy(&test.arena);
    if (status == VKN_NO_DEVICE || !fault[0])
        return status;
    base_log(BASE_LOG_WARNING,
             "\"%s\": %ux%ux%u matrices of f16 with %s accumulation are switched off: %s: %s",
             device->support.capabilities.name, shape->m, shape->n, shape->k, shape->c_type,
             test.shader_name, fault);
    gpu_remove_matrix_shape(device, index);
    *removed = true;
    return VKN_OK;
}

vkn_status gpu_self_test_matrices(struct gpu_device *device, uint32_t m, uint32_t n, uint32_t k)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    for (uint32_t i = 0; i < capabilities->shape_count;) {
        const struct gpu_matrix_shape *shape = &capabilities->shapes[i];
        bool removed = false;
        bool matches = shape->m == m && shape->n == n && shape->k == k &&
                       strcmp(shape->a_type, "f16") == 0 &&
                       (strcmp(shape->c_type, "f16") == 0 || strcmp(shape->c_type, "f32") == 0);
        if (matches && !device->matrices_tested[i] && !gpu_disabled("self_test"))
            BASE_TRY(test_matrix(device, i, &removed));
        i += !removed;
    }
    return VKN_OK;
}
