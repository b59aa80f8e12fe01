/* Lists the backends that a device supports. */
#include <string.h>

#include "bench/internal.h"
#include "config/config.h"

/* Matrix shapes that the shaders are compiled for. */
static const struct {
    enum vkn_matrix_shape name;
    uint32_t m, n, k;
} shapes[] = {
    {VKN_SHAPE_16X16X16, 16, 16, 16}, {VKN_SHAPE_16X8X16, 16, 8, 16},
    {VKN_SHAPE_8X16X16, 8, 16, 16},   {VKN_SHAPE_8X8X16, 8, 8, 16},
    {VKN_SHAPE_8X8X8, 8, 8, 8},
};

static void add_scalar(struct bench_backend *backends, uint32_t *count,
                       enum vkn_precision precision)
{
    struct bench_backend *backend = &backends[(*count)++];
    *backend = (struct bench_backend){.precision = precision};
    const char *name = precision == VKN_PRECISION_FP16 ? "fp16" : "fp32";
    snprintf(backend->name, sizeof backend->name, "%s", name);
    snprintf(backend->pipeline, sizeof backend->pipeline, "%s", name);
}

static void add_matrix(struct bench_backend *backends, uint32_t *count,
                       const struct gpu_matrix_shape *shape, bool conversions)
{
    struct bench_backend backend = {.precision = VKN_PRECISION_COOPMAT, .shape = *shape};
    char pipeline[64];
    backend.f16_accumulate = strcmp(shape->c_type, "f16") == 0;
    backend.conversions = conversions;
    snprintf(backend.name, sizeof backend.name, "coopmat %ux%ux%u %.3s%s", shape->m, shape->n,
             shape->k, shape->c_type, conversions ? " conversions" : "");
    snprintf(backend.pipeline, sizeof backend.pipeline, "%ux%ux%u%s", shape->m, shape->n, shape->k,
             backend.f16_accumulate ? "_f16" : "");
    snprintf(pipeline, sizeof pipeline, "bench_gemm_%s", backend.pipeline);
    if (*count < BENCH_MAX_BACKENDS && gpu_shader_exists(pipeline))
        backends[(*count)++] = backend;
}

static void add_shape(const struct gpu_capabilities *device, const struct vkn_bench_params *params,
                      size_t index, struct bench_backend *backends, uint32_t *count)
{
    for (uint32_t i = 0; i < device->shape_count; i++) {
        const struct gpu_matrix_shape *shape = &device->shapes[i];
        bool has_f32_sums = strcmp(shape->c_type, "f32") == 0;
        if (shape->m != shapes[index].m || shape->n != shapes[index].n ||
            shape->k != shapes[index].k || strcmp(shape->a_type, "f16") != 0 ||
            !(has_f32_sums || strcmp(shape->c_type, "f16") == 0) ||
            (shape->flexible && !params->flexible))
            continue;
        add_matrix(backends, count, shape, false);
        /* The same condition as in field_backend_create. */
        if (has_f32_sums && device->cooperative_matrix2 && shape->n == shape->k &&
            shape->m <= device->subgroup_size)
            add_matrix(backends, count, shape, true);
    }
}

uint32_t bench_list_backends(const struct gpu_capabilities *device,
                             const struct vkn_bench_params *params,
                             struct bench_backend backends[BENCH_MAX_BACKENDS])
{
    enum vkn_precision wanted = params->precision;
    bool all = wanted == VKN_PRECISION_AUTO, has_f16 = device->float16 && device->storage16;
    uint32_t count = 0;
    if (all || wanted == VKN_PRECISION_FP32)
        add_scalar(backends, &count, VKN_PRECISION_FP32);
    if (has_f16 && (all || wanted == VKN_PRECISION_FP16))
        add_scalar(backends, &count, VKN_PRECISION_FP16);
    if (has_f16 && device->cooperative_matrix && (all || wanted == VKN_PRECISION_COOPMAT))
        for (size_t i = 0; i < BASE_COUNT(shapes); i++)
            add_shape(device, params, i, backends, &count);
    return count;
}

void bench_backend_settings(const struct bench_backend *backend, struct vkn_config *config)
{
    config->precision = backend->precision;
    if (backend->precision != VKN_PRECISION_COOPMAT)
        return;
    for (size_t i = 0; i < BASE_COUNT(shapes); i++)
        if (shapes[i].m == backend->shape.m && shapes[i].n == backend->shape.n &&
            shapes[i].k == backend->shape.k)
            config->matrix.shape = shapes[i].name;
    config->matrix.accumulate = backend->f16_accumulate ? VKN_ACCUMULATE_F16 : VKN_ACCUMULATE_F32;
    config->matrix.conversions = backend->conversions;
}
