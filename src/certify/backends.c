/* Lists the backends of a device for tests of field passes. */
#include "certify/backends.h"

struct shape random_shape(uint32_t seed)
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

struct vkn_config settings_of(const struct backend_case *backend, const struct shape *shape)
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

bool is_tried(const struct gpu_capabilities *device, enum vkn_matrix_shape shape, int variant)
{
    bool all = check_everything();
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

size_t list_backends(struct gpu_device *device, struct backend_case cases[MAX_CASES])
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    size_t count = 0, conversions = 0;
    cases[count++] = (struct backend_case){.precision = VKN_PRECISION_FP32};
    if (fixture_has_f16(device))
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
            if (variant == F16_SUMS && capabilities->type == GPU_CPU && !check_everything())
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
            check_ok(field_model_create(&config, &model));
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
        if (fixture_has_f16(device))
            cases[count++] = (struct backend_case){.precision = VKN_PRECISION_FP16, .bound = true};
    }
    if (capabilities->type == GPU_CPU && capabilities->cooperative_matrix) {
        /* 8x8x16 has no f16 accumulation; conversions need at most as many rows as lanes. Matrices
         * crash lavapipe with 512-bit vectors (src/gpu/matrix_shapes.c). */
        bool matrices = capabilities->subgroup_size == 8;
        bool all = check_everything();
        bool variants = !gpu_cpu_kernels(capabilities);
        check_equal(count, !matrices ? 4 : all ? 4 + 5 + 2 + 2 + 2 : 4 + (variants ? 4 : 1));
        check_equal(conversions, !matrices ? 0 : all ? 2 : variants);
    }
    return count;
}

struct shape shape_for(struct gpu_device *device, const struct backend_case *backend,
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
    if (written && plain && !check_everything())
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

bool differs_forward(const struct backend_case *backend)
{
    return !backend->memory || backend->accumulate == VKN_ACCUMULATE_F16;
}

bool differs_backward(const struct backend_case *backend)
{
    return !backend->conversions;
}

void tune_backend(struct fixture *fixture, const struct field_tuning *wanted)
{
    struct field_tuning tuning = field_backend_tuning(&fixture->backend);
    for (int i = 0; i < FIELD_TUNABLES; i++)
        if (wanted->values[i])
            tuning.values[i] = wanted->values[i];
    check_that(field_backend_tune(&tuning, &fixture->model,
                                  gpu_device_capabilities(fixture->device), &fixture->backend));
    field_backend_configure(&fixture->backend, &fixture->constants);
}

void force_backend(struct fixture *fixture, const struct backend_case *backend)
{
    if (backend->memory) {
        bool cpu = fixture->backend.cpu_kernels;
        fixture->backend.rows_in_memory = true;
        fixture->backend.backward_rows = cpu ? fixture->local_size : fixture->local_size / 2;
        fixture->backend.backward_size = cpu ? fixture->local_size : 4 * fixture->local_size;
    }
    if (backend->by_input)
        fixture->backend.transposed = 0;
    fixture->bound = backend->bound;
    tune_backend(fixture, &backend->tuning);
    fixture_set_constant(fixture, SPEC_HOLD_SUMS, !backend->through_partials);
    /* At most the rows of a tile. */
    uint32_t rows = fixture->backend.backward_rows;
    if (backend->owned_rows)
        fixture_set_constant(fixture, SPEC_OWNED_ROWS,
                             rows < backend->owned_rows ? rows : backend->owned_rows);
}

void fixture_choose_product(struct fixture *fixture, const char *name)
{
    if (!has_slow_gpu_kernels(fixture->device))
        return;
    bool backward = strcmp(name, "layer_backward") == 0;
    fixture_set_constant(fixture, SPEC_PRODUCT_BLOCKS, backward ? 3 : 1);
    fixture_set_constant(fixture, SPEC_PRODUCT_PANELS, backward ? 1 : 3);
}
