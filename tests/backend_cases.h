/* The backends on which a device can compute the field, and models to try them with. Compiling a
 * program of cooperative matrices takes lavapipe seconds, so a backend is tried with few models. */
#ifndef TESTS_BACKEND_CASES_H
#define TESTS_BACKEND_CASES_H

#include "pass_fixture.h"

struct shape {
    uint32_t density_width, density_layers, color_width, color_layers, geometry;
    uint32_t levels, features, sh_degree, aabb_scale, samples;
    bool contracted;
};

/* Multiples of 16 up to 128 and everything else at random; MLPs up to 3 layers. */
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

/* Settings of a backend, and what field_backend_create would choose otherwise. */
struct backend_case {
    enum vkn_precision precision;
    enum vkn_matrix_shape shape;
    enum vkn_accumulate accumulate;
    bool conversions;
    bool memory, through_partials;          /* rows in device memory; weight gradients not held */
    uint32_t owned_rows;                    /* 0: the backend's own */
    bool atomics;                           /* grid gradients added up by atomics */
    bool along_rays;                        /* neighbouring samples share cells, as in training */
    struct field_tuning tuning;             /* what is not 0 of it */
    bool bound;                             /* weights through the binding, not by address */
    enum vkn_density_activation activation; /* 0: the default */
    enum vkn_policy matmul;                 /* of fp16: f32 instead of packed */
    enum vkn_policy stored;                 /* activations and their gradients of fp32: bf16 */
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

/* Forms of a matrix backend: plain, f16 sums, conversions, rows in memory. */
enum { PLAIN, F16_SUMS, CONVERSIONS, IN_MEMORY, FORMS };

/* lavapipe compiles each program for up to half a minute: it tries one of each kind, and with
 * VKNERF_TEST_ALL every shape; f16 sums and rows in memory do not depend on the shape. */
static inline bool is_tried(const struct gpu_capabilities *device, enum vkn_matrix_shape shape,
                            int form)
{
    bool all = tries_all();
    if (device->type != GPU_CPU)
        return true;
    /* The forms with the shapes of GPUs: those of CPU devices differ in their loops alone. */
    bool forms = all || !gpu_cpu_kernels(device);
    if (shape == VKN_SHAPE_8X8X8)
        return form == PLAIN || (forms && (all || form != IN_MEMORY)); /* F16_SUMS is in memory */
    if (form == PLAIN)
        return all || (forms && shape == VKN_SHAPE_8X8X16); /* staged */
    if (form == F16_SUMS)
        return all && shape == VKN_SHAPE_16X8X16;
    if (form == IN_MEMORY)
        return all && shape == VKN_SHAPE_8X8X16;
    return all;
}

/* The backends that the device takes. lavapipe must take all: no form goes untested in CI. */
static inline size_t list_backends(struct gpu_device *device, struct backend_case cases[MAX_CASES])
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    size_t count = 0, conversions = 0;
    cases[count++] = (struct backend_case){.precision = VKN_PRECISION_FP32};
    if (capabilities->float16 && capabilities->storage16)
        cases[count++] = (struct backend_case){.precision = VKN_PRECISION_FP16};
    for (int shape = VKN_SHAPE_8X8X8; shape <= VKN_SHAPE_16X16X16; shape++) {
        for (int form = PLAIN; form < FORMS; form++) {
            if (!is_tried(capabilities, (enum vkn_matrix_shape)shape, form))
                continue;
            struct backend_case backend = {
                .precision = VKN_PRECISION_COOPMAT,
                .shape = (enum vkn_matrix_shape)shape,
                .accumulate = form == F16_SUMS ? VKN_ACCUMULATE_F16 : VKN_ACCUMULATE_F32,
                .conversions = form == CONVERSIONS,
                .memory = form == IN_MEMORY,
                .through_partials = form & 1,
                /* lavapipe takes the subgroup barriers of 8x8x16 for the workgroup's. */
                .owned_rows = form & 1 && shape != VKN_SHAPE_8X8X16 ? 32 : 0,
            };
            /* Neither depends on the other, and each backward program is compiled for seconds. */
            if (form == F16_SUMS && capabilities->type == GPU_CPU && !tries_all())
                backend.memory = true;
            /* Not the sizes that a GPU's workgroups have by themselves. */
            if (form == F16_SUMS && !gpu_cpu_kernels(capabilities))
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
    /* Rows that do not fit into shared memory, weight gradients that are not held. */
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
        /* No f16 sums of 8x8x16; conversions where a matrix has no more rows than the subgroup
         * lanes. With 512-bit vectors lavapipe's matrices crash it (src/gpu/matrix_shapes.c). */
        bool matrices = capabilities->subgroup_size == 8;
        bool all = tries_all();
        bool forms = !gpu_cpu_kernels(capabilities);
        assert_int_equal(count, !matrices ? 4 : all ? 4 + 5 + 2 + 2 + 2 : 4 + (forms ? 4 : 1));
        assert_int_equal(conversions, !matrices ? 0 : all ? 2 : forms);
    }
    return count;
}

/* What to try a backend with: `shape`, but a smaller one where lavapipe takes minutes to compile
 * 16-bit arithmetic: matrices and rows of f16 that are not the default model's; worse, through
 * bindings every load becomes a branch, and with 512-bit vectors every conversion integer
 * arithmetic. */
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
    /* Written out as for GPUs, every matrix and every 16-bit number is compiled where it stands:
     * one case has a layer between the first and the last. */
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

/* Backends whose forward and backward programs are not another's. */
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

/* What a test wants otherwise than field_backend_create chose. */
static inline void force_backend(struct bench *bench, const struct backend_case *backend)
{
    if (backend->memory) {
        bool cpu = bench->backend.cpu_kernels;
        bench->backend.rows_in_memory = true;
        bench->backend.backward_rows = cpu ? bench->local_size : bench->local_size / 2;
        bench->backend.backward_size = cpu ? bench->local_size : 4 * bench->local_size;
    }
    bench->bound = backend->bound;
    tune_backend(bench, &backend->tuning);
    bench_set_constant(bench, SPEC_HOLD_SUMS, !backend->through_partials);
    /* Not more than a tile has. */
    uint32_t rows = bench->backend.backward_rows;
    if (backend->owned_rows)
        bench_set_constant(bench, SPEC_OWNED_ROWS,
                           rows < backend->owned_rows ? rows : backend->owned_rows);
}

/* A CPU device in the shapes of GPUs compiles each matrix of a product where it stands, those of 2
 * blocks by 4 panels for 6 s. A third of it: several panels in one pass, several blocks in
 * another, of which the last are not all there. */
static inline void bench_choose_product(struct bench *bench, const char *name)
{
    if (!tries_shapes(bench->device))
        return;
    bool backward = strcmp(name, "layer_backward") == 0;
    bench_set_constant(bench, SPEC_PRODUCT_BLOCKS, backward ? 3 : 1);
    bench_set_constant(bench, SPEC_PRODUCT_PANELS, backward ? 1 : 3);
}

#endif
