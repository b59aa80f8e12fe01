/* Tests field_forward, field_backward and scatter_gradients against the reference, for models of
 * many shapes, with every precision, matrix shape and kind of gradient sums that the device offers.
 *
 * Error norms. Forward: largest error of a sample, over max(1, root mean square of the outputs).
 * Backward: Euclidean norm of the error over that of the gradient, for every layer and grid level.
 *
 * Takes more than 20 s with CPU kernels and again with GPU kernels: lavapipe compiles pipelines for
 * every precision, kernel and model. */
#include "certify/field.h"

static const struct shape shapes[] = {
    {64, 1, 64, 2, 16, 16, 2, 4, 1, 777, false}, {16, 1, 16, 1, 16, 1, 2, 1, 1, 1, false},
    {16, 2, 32, 2, 32, 5, 4, 2, 2, 63, true},    {128, 2, 16, 1, 16, 7, 2, 3, 4, 65, false},
    {48, 1, 128, 1, 48, 3, 4, 4, 16, 321, true},
};

/* All shapes; on CPU devices, where compiling takes too long, the most different ones: the default
 * model, the narrowest, one of several layers. test_wide covers wide layers, test_sums four
 * features in contracted space, f16 tests the third degree of harmonics. */
static uint32_t shape_count(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    if (capabilities->type != GPU_CPU)
        return BASE_COUNT(shapes);
    if (capabilities->subgroup_size > 8)
        return 2;
    return check_everything() ? BASE_COUNT(shapes) : 3;
}

/* As field_four_features, but pipelines unroll more layers. */
static const struct shape deep = {16, 2, 16, 2, 16, 3, 4, 4, 16, 321, true};

/* More samples are requested than the capacity. */
static void test_forward_overflow(struct gpu_device *device)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(device, backends);
    for (uint32_t p = 0; p < count && p < 2; p++) {
        struct fixture fixture =
            field_fixture(device, &backends[p], &field_narrow, VKN_SUMS_DEFAULT);
        struct inputs inputs =
            field_inputs_create(&fixture, fixture.config.sample_capacity, false, 7);
        field_put_samples(&fixture, &inputs);
        struct State counts = {.sample_count = fixture.config.sample_capacity + 12345};
        fixture_put(&fixture, BIND_STATE, &counts, sizeof counts);
        field_run_forward(&fixture, 9);
        float(*values)[4] = fixture_read(&fixture, BIND_FIELD);
        field_check_forward(&fixture, &inputs, (const float(*)[4])values);
        free(values);
        field_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* With GPU kernels lavapipe unrolls every matrix product, so only one case has a colour MLP.
 * test_densities_alone covers hidden layers in the middle. Staged matrices and f16 accumulation use
 * a proposal's layers, of which the first has more inputs than a matrix. */
static struct shape matrix_shape_for(struct gpu_device *device, const struct backend_case *backend,
                                     struct shape shape)
{
    shape = shape_for(device, backend, shape);
    if (backend->precision != VKN_PRECISION_COOPMAT || !has_slow_gpu_kernels(device) ||
        backend->conversions)
        return shape;
    if (backend->shape == VKN_SHAPE_8X8X8 && backend->accumulate != VKN_ACCUMULATE_F16)
        return (struct shape){16, 1, 16, 1, 16, 3, 4, 3, 4, 210, false};
    return (struct shape){16, 1, 0, 0, 16, 16, 2, 1, 2, 170, true};
}

static void check_passes(struct gpu_device *device, const struct backend_case *backend,
                         const struct shape *shape, enum vkn_gradient_sums sums, uint32_t seed)
{
    struct fixture fixture = field_fixture(device, backend, shape, sums);
    struct inputs inputs = field_inputs_create(&fixture, shape->samples, backend->along_rays, seed);
    if (differs_forward(backend))
        field_check_forwards(&fixture, &inputs);
    if (differs_backward(backend))
        field_check_backwards(&fixture, &inputs);
    field_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static void test_passes(struct gpu_device *device)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(device, backends);
    for (uint32_t n = 0; n < shape_count(device); n++)
        check_passes(device, &backends[0], &shapes[n], VKN_SUMS_DEFAULT, 200 + n);
    for (uint32_t p = 1; p < count; p++) {
        if (field_is_covered_elsewhere(device, &backends[p]))
            continue;
        const struct shape random = matrix_shape_for(device, &backends[p], random_shape(220 + p));
        check_passes(device, &backends[p], &random, VKN_SUMS_DEFAULT, 220 + p);
    }
}

/* Densities from exp(-60) to exp(60) and beyond, where the slope of exp is clamped. */
static void test_steep_densities(struct gpu_device *device)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct fixture fixture = field_fixture(device, &backend, &shapes[0], VKN_SUMS_DEFAULT);
    struct inputs inputs = field_inputs_of_steepness(&fixture, 500, false, 100, 600);
    struct reference_field field =
        reference_field(&fixture.settings, &fixture.model, inputs.params);
    uint32_t below = 0, above = 0;
    for (uint32_t s = 0; s < inputs.sample_count; s++) {
        double logarithm = reference_log_density(&field, inputs.positions[s]);
        below += logarithm < -20;
        above += logarithm > 20;
    }
    check_that(below > 20 && above > 20 && below + above < 450);
    double *expected = field_expected_gradients(&fixture, &inputs);
    field_check_summed(&fixture, &inputs, 5, expected);
    free(expected);
    reference_field_destroy(&field);
    field_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* More layers than the default model. On CPU devices test_passes covers fp32, test_sums f16. */
static void test_deep(struct gpu_device *device)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(device, backends);
    for (uint32_t p = 0; p < count; p++) {
        if (backends[p].precision == VKN_PRECISION_COOPMAT || backends[p].bound)
            continue;
        const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
        bool tried =
            capabilities->type == GPU_CPU && shape_count(device) > 2 && !check_everything();
        if (!tried)
            check_passes(device, &backends[p], &deep, VKN_SUMS_DEFAULT, 510 + p);
    }
}

/* A proposal's field in every precision: colour gradients are ignored. Matrix layers use both kinds
 * of kernels; with GPU kernels there is also a hidden layer in the middle. */
static void test_densities_alone(struct gpu_device *device)
{
    struct shape shape = {16, 1, 0, 0, 16, 5, 2, 1, 1, 300, false};
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(device, backends);
    bool done[VKN_PRECISION_COOPMAT + 1] = {false};
    for (uint32_t p = 0; p < count; p++) {
        if (done[backends[p].precision])
            continue;
        done[backends[p].precision] = true;
        if (backends[p].precision == VKN_PRECISION_COOPMAT &&
            !gpu_cpu_kernels(gpu_device_capabilities(device))) {
            shape.density_layers = 2;
            /* Fewer subgroups than matrices of inputs, as in a GPU's workgroup: each subgroup keeps
             * several. */
            shape.levels = 16;
            backends[p].tuning.values[FIELD_BACKWARD_SIZE] = 64;
        }
        check_passes(device, &backends[p], &shape, VKN_SUMS_DEFAULT, 700 + p);
    }
}

/* Uses f32 products for f16 with fixed-point sums, to share pipelines with test_f32_products,
 * unless all cases run. */
static struct backend_case with_f32_products(struct backend_case backend)
{
    if (backend.precision == VKN_PRECISION_FP16 && !check_everything())
        backend.matmul = VKN_POLICY_F32;
    return backend;
}

/* Checks a kind of gradient sums in fp32, whether or not the device would choose it. */
static void check_sums(struct gpu_device *device, enum vkn_gradient_sums sums)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct backend_case other = backend;
    check_passes(device, &backend, &field_narrow, sums, 300);
    if (sums != VKN_SUMS_FIXED || check_everything())
        check_passes(device, &backend, &field_four_features, sums, 304);
    other.atomics = sums == VKN_SUMS_F32; /* what a GPU chooses */
    if (other.atomics)
        check_passes(device, &other, &field_narrow, sums, 310);
    other.along_rays = true;
    check_passes(device, &other, &field_narrow, sums, 320);
    other.sample_lanes = 1; /* Intel */
    check_passes(device, &other, &field_narrow, sums, 330);
    check_passes(device, &other, &field_four_features, sums, 334);
}

static void check_f16_sums(struct gpu_device *device, enum vkn_gradient_sums sums)
{
    struct backend_case backend = {.precision = VKN_PRECISION_FP16, .activation = VKN_DENSITY_RELU};
    if (sums == VKN_SUMS_FIXED) {
        backend.activation = VKN_DENSITY_DEFAULT;
        backend = with_f32_products(backend);
        check_passes(device, &backend, &field_four_features, sums, 304);
        return;
    }
    check_passes(device, &backend, &deep, sums, 304);
    backend.atomics = sums == VKN_SUMS_F32;
    if (backend.atomics)
        check_passes(device, &backend, &deep, sums, 311);
}

static void test_sums(struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    for (int sums = VKN_SUMS_F32; sums <= VKN_SUMS_F16; sums++) {
        if (sums == VKN_SUMS_F32 && !capabilities->float_atomic_add)
            continue; /* the capabilities trains with other sums */
        check_sums(device, (enum vkn_gradient_sums)sums);
        if (capabilities->float16 && capabilities->storage16)
            check_f16_sums(device, (enum vkn_gradient_sums)sums);
    }
}

/* Tile sizes other than the backend's own, including those of GPUs, and other activations of the
 * density. Other cases test tuned matrix tiles, to share their pipelines. */
static void test_tuned(struct gpu_device *device)
{
    static const struct {
        bool gpu;
        enum vkn_precision precision;
        bool through_partials;
        enum vkn_density_activation activation;
        struct field_tuning tuning;
    } tunings[] = {
#define TUNING(rounds, owned, backward, backward_size, forward, forward_size) \
    {                                                                         \
        .values = {                                                           \
            [FIELD_TILES_AT_ONCE] = (rounds),                                 \
            [FIELD_OWNED_ROWS] = (owned),                                     \
            [FIELD_BACKWARD_ROWS] = (backward),                               \
            [FIELD_BACKWARD_SIZE] = (backward_size),                          \
            [FIELD_FORWARD_ROWS] = (forward),                                 \
            [FIELD_FORWARD_SIZE] = (forward_size)                             \
        }                                                                     \
    }
        {false, VKN_PRECISION_FP32, false, VKN_DENSITY_SOFTPLUS, TUNING(16, 0, 32, 0, 128, 0)},
        {false, VKN_PRECISION_FP32, false, VKN_DENSITY_RELU, TUNING(1, 0, 128, 0, 32, 0)},
        {false, VKN_PRECISION_FP16, false, VKN_DENSITY_SOFTPLUS, TUNING(8, 0, 256, 0, 256, 0)},
        {true, VKN_PRECISION_FP32, false, VKN_DENSITY_SOFTPLUS, TUNING(0, 0, 16, 128, 16, 64)},
        {true, VKN_PRECISION_FP32, true, VKN_DENSITY_RELU, TUNING(0, 0, 8, 128, 8, 32)},
    };
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(device, backends);
    bool gpu = !gpu_cpu_kernels(gpu_device_capabilities(device));
    for (size_t i = 0; i < BASE_COUNT(tunings); i++)
        for (size_t p = 0; p < count; p++) {
            struct backend_case backend = backends[p];
            if (backend.precision != tunings[i].precision || gpu != tunings[i].gpu)
                continue;
            backend.through_partials = tunings[i].through_partials;
            backend.tuning = tunings[i].tuning;
            backend.activation = tunings[i].activation;
            backend.bound = backend.precision == VKN_PRECISION_FP16;
            /* With CPU kernels each invocation has a row of its own, whatever the layers. */
            const struct shape wider = {32, 2, 48, 1, 16, 5, 4, 2, 2, 900, false};
            struct shape shape =
                gpu || check_everything() ? shape_for(device, &backend, wider) : field_narrow;
            check_passes(device, &backend, &shape, VKN_SUMS_DEFAULT, (uint32_t)(410 + i));
            break; /* the first backend of that precision */
        }
}

/* The widest layers, whose weight gradients do not fit into registers. */
static void test_wide(struct gpu_device *device)
{
    const struct shape wide = {256, 1, 256, 1, 16, 2, 2, 1, 1, 70, false};
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct fixture fixture = field_fixture(device, &backend, &wide, VKN_SUMS_DEFAULT);
    check_that(!fixture.backend.hold_sums);
    fixture_destroy(&fixture);
    check_passes(device, &backend, &wide, VKN_SUMS_DEFAULT, 601);
}

/* Permutes the samples, so that they are in other workgroups. */
static void shuffle(struct inputs *inputs, uint32_t seed)
{
    struct random random = {seed};
    for (uint32_t i = inputs->sample_count - 1; i > 0; i--) {
        uint32_t k = random_below(&random, i + 1);
        struct Sample sample = inputs->samples[i];
        inputs->samples[i] = inputs->samples[k];
        inputs->samples[k] = sample;
        for (int c = 0; c < 4; c++) {
            float value = inputs->field[i][c];
            inputs->field[i][c] = inputs->field[k][c];
            inputs->field[k][c] = value;
        }
    }
}

/* Fixed-point sums are right, repeat bit by bit, and do not depend on the order of samples. */
static void check_repeats(struct gpu_device *device, const struct backend_case *backend,
                          const struct shape *shape)
{
    struct fixture fixture = field_fixture(device, backend, shape, VKN_SUMS_FIXED);
    struct inputs inputs = field_inputs_create(&fixture, shape->samples, false, 11);
    if (field_is_covered_elsewhere(device, backend))
        field_check_forwards(&fixture, &inputs);
    field_check_backwards(&fixture, &inputs);
    field_run_backward(&fixture, &inputs, 4);
    void *sums = fixture_read(&fixture, BIND_ACCUMULATORS),
         *partials = fixture_read(&fixture, BIND_PARTIALS);
    for (int run = 0; run < 3; run++) {
        field_run_backward(&fixture, &inputs, 4);
        void *again = fixture_read(&fixture, BIND_ACCUMULATORS),
             *parts = fixture_read(&fixture, BIND_PARTIALS);
        check_memory(again, sums, fixture.buffers[BIND_ACCUMULATORS].size);
        check_memory(parts, partials, fixture.buffers[BIND_PARTIALS].size);
        free(again);
        free(parts);
    }
    shuffle(&inputs, 12);
    field_run_backward(&fixture, &inputs, 5);
    void *shuffled = fixture_read(&fixture, BIND_ACCUMULATORS);
    check_memory(shuffled, sums, fixture.buffers[BIND_ACCUMULATORS].size);
    free(shuffled);
    free(sums);
    free(partials);
    field_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static void test_backward_repeats(struct gpu_device *device)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(device, backends);
    for (uint32_t p = 0; p < count && p < 3; p++) {
        /* The shapes of test_sums, to share its pipelines. */
        struct shape shape =
            backends[p].precision == VKN_PRECISION_FP16 ? field_four_features : field_narrow;
        backends[p] = with_f32_products(backends[p]);
        if (backends[p].precision == VKN_PRECISION_COOPMAT) {
            const struct shape two_layers = {16, 2, 16, 1, 16, 3, 4, 3, 4, 210, false};
            shape = two_layers;
            if (check_everything())
                shape = shape_for(device, &backends[p], random_shape(220 + p));
            backends[p].tuning = (struct field_tuning){.values = {[FIELD_OWNED_ROWS] = 32,
                                                                  [FIELD_BACKWARD_ROWS] = 32,
                                                                  [FIELD_FORWARD_ROWS] = 128}};
        }
        check_repeats(device, &backends[p], &shape);
    }
}

/* A value that a fixed-point sum cannot hold is reported and does not wrap around. */
static void test_backward_overflow(struct gpu_device *device)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    const float bad[] = {NAN, INFINITY, 1e30f};
    for (size_t n = 0; n < BASE_COUNT(bad); n++) {
        struct fixture fixture = field_fixture(device, &backend, &field_narrow, VKN_SUMS_FIXED);
        struct inputs inputs = field_inputs_create(&fixture, 100, false, 13);
        struct State after;
        field_run_backward(&fixture, &inputs, 2);
        fixture_get(&fixture, BIND_STATE, &after, sizeof after);
        check_equal(after.nonfinite, 0);
        inputs.field[50][3] = bad[n];
        field_run_backward(&fixture, &inputs, 2);
        fixture_get(&fixture, BIND_STATE, &after, sizeof after);
        check_equal(after.nonfinite, 1);
        field_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_passes),
    TEST(test_forward_overflow),
    TEST(test_steep_densities),
    TEST(test_deep),
    TEST_OF(field, test_bf16),
    TEST_BOTH_OF(field, test_rounded),
    TEST_BOTH_OF(field, test_f32_products),
    TEST_BOTH(test_densities_alone),
    TEST(test_sums),
    TEST_BOTH(test_tuned),
    TEST(test_backward_repeats),
    TEST(test_backward_overflow),
    TEST_GPU(test_wide),
};
const struct certify_part certify_field = {"field", tests, BASE_COUNT(tests)};
