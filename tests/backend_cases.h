/* Lists the backends of a device for tests of field passes, and models to test them with: few per
 * backend, because lavapipe takes seconds to compile a shader with cooperative matrices. */
#ifndef TESTS_BACKEND_CASES_H
#define TESTS_BACKEND_CASES_H

#include "pass_fixture.h"

struct shape {
    uint32_t density_width, density_layers, color_width, color_layers, geometry;
    uint32_t levels, features, sh_degree, aabb_scale, samples;
    bool contracted;
};

/* Returns a random model with widths of multiples of 16 up to 128, and MLPs of up to 3 layers. */
static inline struct shape random_shape(uint32_t seed)
{
    struct random random = {seed};
    return (struct shape){
        .density_width = 16 * (1 + random_below(&random, 8)),
        .density_layers = 1 + random_below(&random, 3),
        .color_width = 16 * (1 + random_below(&random, 8)),
        .color_layers = 1 + random_below(&random, 3),
        .geometry = 16 * (1 + random_below(&random, 3)),
        .levels = 1 + random_below(&random, 16),
        .features = 2 + 2 * random_below(&random, 2),
        .sh_degree = 1 + random_below(&random, 4),
        .aabb_scale = 1u << random_below(&random, 4),
        .samples = 1 + random_below(&random, 900),
        .contracted = seed % 2,
    };
}

/* Settings of a backend, and deviations from what field_backend_create() chooses. */
struct backend_case {
    enum vkn_precision precision;
    enum vkn_matrix_shape shape;
    enum vkn_accumulate accumulate;
    bool conversions;
    bool by_input;                 /* weights are read by input, as with NVIDIA's driver */
    bool memory, through_partials; /* rows in device memory; weight gradients in PARTIALS */
    uint32_t owned_rows;           /* 0: as chosen */
    bool atomics;                  /* grid gradients are accumulated by atomics */
    uint32_t sample_lanes;         /* 0: as chosen; with atomics 4 */
    bool along_rays;               /* neighbouring samples share cells, as in training */
    struct field_tuning tuning;    /* values other than 0 are applied */
    bool bound;                    /* weights through the binding, not by address */
    enum vkn_density_activation activation; /* 0: the default */
    enum vkn_policy matmul;                 /* fp16: f32 instead of packed f16 */
    enum vkn_policy stored;                 /* fp32: activations and their gradients in bf16 */
};
#define MAX_CASES 32

static inline struct vkn_config settings_of(const struct backend_case *backend,
                                            const struct shape *shape)
{
    return (struct vkn_config){
        .precision = backend->precision,
        .scene = {.aabb_scale = shape->aabb_scale,
                  .contraction = shape->contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .grid = {.levels = shape->levels, .features = shape->features},
        .mlp = {.density_width = shape->density_width,
                .density_layers = shape->density_layers,
                .geometry = shape->geometry,
                .color_width = shape->color_width,
                .color_layers = shape->color_layers,
                .sh_degree = shape->sh_degree,
                .density_activation = backend->activation},
        .matrix = {backend->shape, backend->accumulate, backend->conversions},
        .policy = {.matmul = backend->matmul},
    };
}

/* Variants of a matrix backend: plain, f16 accumulation, conversions, rows in device memory. */
enum { PLAIN, F16_SUMS, CONVERSIONS, IN_MEMORY, MATRIX_VARIANTS };

/* lavapipe compiles a shader for up to half a minute: it runs one shape per variant, and all shapes
 * with VKNERF_TEST_ALL; f16 accumulation and rows in memory do not depend on the shape. */
static inline bool is_tried(const struct gpu_capabilities *device, enum vkn_matrix_shape shape,
                            int variant)
{
    bool all = tries_all();
    if (device->type != GPU_CPU)
        return true;
    /* Variants run with GPU kernels; CPU kernels differ only in their loops. */
    bool variants = all || !gpu_cpu_kernels(device);
    if (shape == VKN_SHAPE_8X8X8)
        return variant == PLAIN ||
               (variants && (all || variant != IN_MEMORY)); /* F16_SUMS also has rows in memory */
    if (variant == PLAIN)
        return all || (variants && shape == VKN_SHAPE_8X8X16); /* with a staging area */
    if (variant == F16_SUMS)
        return all && shape == VKN_SHAPE_16X8X16;
    if (variant == IN_MEMORY)
        return all && shape == VKN_SHAPE_8X8X16;
    return all;
}

/* Lists the backends that the device supports. lavapipe must support all, so that CI tests all. */
static inline size_t list_backends(struct gpu_device *device, struct backend_case cases[MAX_CASES])
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    size_t count = 0, conversions = 0;
    cases[count++] = (struct backend_case){.precision = VKN_PRECISION_FP32};
    if (capabilities->float16 && capabilities->storage16)
        cases[count++] = (struct backend_case){.precision = VKN_PRECISION_FP16};
    for (int shape = VKN_SHAPE_8X8X8; shape <= VKN_SHAPE_16X16X16; shape++) {
        for (int variant = PLAIN; variant < MATRIX_VARIANTS; variant++) {
            if (!is_tried(capabilities, (enum vkn_matrix_shape)shape, variant))
                continue;
            struct backend_case backend = {
                .precision = VKN_PRECISION_COOPMAT,
                .shape = (enum vkn_matrix_shape)shape,
                .accumulate = variant == F16_SUMS ? VKN_ACCUMULATE_F16 : VKN_ACCUMULATE_F32,
                .conversions = variant == CONVERSIONS,
                .by_input = variant == CONVERSIONS,
                .memory = variant == IN_MEMORY,
                .through_partials = variant & 1,
                /* lavapipe treats subgroup barriers of 8x8x16 as workgroup barriers. */
                .owned_rows = variant & 1 && shape != VKN_SHAPE_8X8X16 ? 32 : 0,
            };
            /* Combines two independent variants, as each backward shader compiles for seconds. */
            if (variant == F16_SUMS && capabilities->type == GPU_CPU && !tries_all())
                backend.memory = true;
            /* Uses other workgroup sizes than those chosen for a GPU. */
            if (variant == F16_SUMS && !gpu_cpu_kernels(capabilities))
                backend.tuning = (struct field_tuning){.values = {[FIELD_BACKWARD_ROWS] = 16,
                                                                  [FIELD_BACKWARD_SIZE] = 64,
                                                                  [FIELD_FORWARD_ROWS] = 32,
                                                                  [FIELD_FORWARD_SIZE] = 256}};
            const struct shape shape = {64, 1, 64, 2, 16, 16, 2, 4, 1, 1, false};
            struct vkn_config config = settings_of(&backend, &shape);
            struct field_model model;
            struct field_backend created;
            config.grid.log2_entries = 10;
            config.grid.coarsest = 5;
            config.grid.finest = 64;
            ok(field_model_create(&config, &model));
            if (field_backend_create(&config, &model, capabilities, &created) != VKN_OK)
                continue;
            cases[count++] = backend;
            conversions += backend.conversions;
        }
    }
    /* Adds rows in device memory, and weight gradients that do not stay in registers. */
    for (int precision = VKN_PRECISION_FP32;
         precision <= VKN_PRECISION_FP16 && !gpu_cpu_kernels(capabilities); precision++)
        if (precision == VKN_PRECISION_FP32 || cases[1].precision == VKN_PRECISION_FP16)
            cases[count++] = (struct backend_case){.precision = (enum vkn_precision)precision,
                                                   .memory = true,
                                                   .through_partials = true};
    if (gpu_cpu_kernels(capabilities)) {
        cases[count++] = (struct backend_case){.precision = VKN_PRECISION_FP32, .bound = true};
        cases[count++] = (struct backend_case){.precision = VKN_PRECISION_FP16, .bound = true};
    }
    if (capabilities->type == GPU_CPU) {
        /* 8x8x16 has no f16 accumulation; conversions need at most as many rows as lanes. Matrices
         * crash lavapipe with 512-bit vectors (src/gpu/matrix_shapes.c). */
        bool matrices = capabilities->subgroup_size == 8;
        bool all = tries_all();
        bool variants = !gpu_cpu_kernels(capabilities);
        assert_int_equal(count, !matrices ? 4 : all ? 4 + 5 + 2 + 2 + 2 : 4 + (variants ? 4 : 1));
        assert_int_equal(conversions, !matrices ? 0 : all ? 2 : variants);
    }
    return count;
}

/* Returns the model for a backend: `shape`, or a smaller one where lavapipe compiles f16 for
 * minutes: matrices and f16 rows other than the default model's; bindings, whose loads become
 * branches; 512-bit vectors, whose conversions become integer arithmetic. */
static inline struct shape shape_for(struct gpu_device *device, const struct backend_case *backend,
                                     struct shape shape)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    const struct shape model = {64, 1, 64, 2, 16, 16, 2, 4, 1, 0, false};
    bool is_default =
        shape.density_width == model.density_width && shape.color_width == model.color_width;
    if (capabilities->type != GPU_CPU ||
        (backend->precision == VKN_PRECISION_FP32 && !backend->bound))
        return shape;
    /* The kernels of GPUs are unrolled, so every matrix and f16 operation is compiled separately:
     * only one case has a hidden layer. */
    bool written = !gpu_cpu_kernels(capabilities);
    bool plain = backend->precision == VKN_PRECISION_COOPMAT && backend->shape == VKN_SHAPE_8X8X8 &&
                 backend->accumulate != VKN_ACCUMULATE_F16 && !backend->conversions &&
                 !backend->memory;
    if (written && plain && !tries_all())
        return (struct shape){16, 2, 16, 1, 16, 3, 4, 3, 4, 210, false};
    if (written && plain)
        return (struct shape){16, 2, 16, 2,   16,   3,
                              4,  3, 4,  210, false}; /* more layers than the default */
    if (backend->bound || written ||
        (backend->precision == VKN_PRECISION_FP16 && capabilities->subgroup_size > 8))
        return (struct shape){16, 1, written ? 16 : 32, 1, 16, 3, 2, 2, 2, 170, true};
    if (is_default && backend->accumulate != VKN_ACCUMULATE_F16)
        return shape;
    shape.density_width = 16 + shape.density_width % 32;
    shape.color_width = 16 + shape.color_width % 32;
    shape.geometry = 16 + shape.geometry % 32;
    shape.density_layers = shape.density_layers > 1 ? 2 : 1;
    shape.color_layers = shape.density_layers > 1 ? 1 : 2;
    shape.levels = shape.levels > 8 ? 8 : shape.levels;
    return shape;
}

/* Return whether the backend has forward or backward shaders of its own. */
static inline bool differs_forward(const struct backend_case *backend)
{
    return !backend->memory || backend->accumulate == VKN_ACCUMULATE_F16;
}

static inline bool differs_backward(const struct backend_case *backend)
{
    return !backend->conversions;
}

static inline void tune_backend(struct bench *bench, const struct field_tuning *wanted)
{
    struct field_tuning tuning = field_backend_tuning(&bench->backend);
    for (int i = 0; i < FIELD_TUNABLES; i++)
        if (wanted->values[i])
            tuning.values[i] = wanted->values[i];
    assert_true(field_backend_tune(&tuning, &bench->model, gpu_device_capabilities(bench->device),
                                   &bench->backend));
    field_backend_configure(&bench->backend, &bench->constants);
}

/* Applies the case's deviations from field_backend_create(). */
static inline void force_backend(struct bench *bench, const struct backend_case *backend)
{
    if (backend->memory) {
        bool cpu = bench->backend.cpu_kernels;
        bench->backend.rows_in_memory = true;
        bench->backend.backward_rows = cpu ? bench->local_size : bench->local_size / 2;
        bench->backend.backward_size = cpu ? bench->local_size : 4 * bench->local_size;
    }
    if (backend->by_input)
        bench->backend.transposed = 0;
    bench->bound = backend->bound;
    tune_backend(bench, &backend->tuning);
    bench_set_constant(bench, SPEC_HOLD_SUMS, !backend->through_partials);
    /* At most the rows of a tile. */
    uint32_t rows = bench->backend.backward_rows;
    if (backend->owned_rows)
        bench_set_constant(bench, SPEC_OWNED_ROWS,
                           rows < backend->owned_rows ? rows : backend->owned_rows);
}

/* With the kernels of GPUs a CPU device compiles each matrix of a product separately, 2 blocks by 4
 * panels in 6 s. A third of it covers several panels in one pass, several blocks in another, and
 * incomplete ones at the end. */
static inline void bench_choose_product(struct bench *bench, const char *name)
{
    if (!has_slow_gpu_kernels(bench->device))
        return;
    bool backward = strcmp(name, "layer_backward") == 0;
    bench_set_constant(bench, SPEC_PRODUCT_BLOCKS, backward ? 3 : 1);
    bench_set_constant(bench, SPEC_PRODUCT_PANELS, backward ? 1 : 3);
}

#endif
