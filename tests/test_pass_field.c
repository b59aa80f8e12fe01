/* Tests field_forward, field_backward and scatter_gradients against the reference, for models of
 * many shapes, with every precision, matrix shape and kind of gradient sums that the device offers.
 *
 * Error norms. Forward: largest error of a sample, over max(1, root mean square of the outputs).
 * Backward: Euclidean norm of the error over that of the gradient, for every layer and grid level.
 *
 * Takes more than 20 s with CPU kernels and again with GPU kernels: lavapipe compiles pipelines for
 * every precision, kernel and model. */
#include "backend_cases.h"

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
    return tries_all() ? BASE_COUNT(shapes) : 3;
}

/* Shapes for tests where widths do not matter; they compile in a tenth of the default's time. */
static const struct shape narrow = {16, 1, 16, 1, 16, 16, 2, 4, 1, 777, false};
static const struct shape four_features = {16, 1, 16, 1, 16, 3, 4, 4, 16, 321, true};
/* As four_features, but pipelines unroll more layers. */
static const struct shape deep = {16, 2, 16, 2, 16, 3, 4, 4, 16, 321, true};

static double forward_tolerance(const struct bench *bench)
{
    return bench->backend.f16 ? 2e-3 : 1e-5;
}

static double backward_tolerance(const struct bench *bench)
{
    return bench->backend.f16 || bench->backend.sums == VKN_SUMS_F16 ? 1e-2 : 1e-4;
}

struct inputs {
    struct Ray *rays;
    struct Sample *samples;
    float *params;
    uint32_t ray_count, sample_count;
    double (*positions)[3];
    double (*gradients)[4]; /* by rgb and density */
    float (*field)[4];      /* the same for the device */
    uint32_t *live;         /* samples with a gradient, in random order */
    uint32_t live_count;
};

/* A field without a colour MLP is a proposal's, which has densities only. */
static bool is_colored(const struct bench *bench)
{
    return bench->settings.mlp.color_layers > 0;
}

/* Replaces the settings by a proposal's of the given shape, without a colour MLP. */
static void become_proposal(struct bench *bench, const struct shape *shape)
{
    bench->settings.proposal.levels = shape->levels;
    bench->settings.proposal.log2_entries = 10;
    bench->settings.proposal.finest = 64;
    bench->settings.proposal.width = shape->density_width;
    bench->settings = field_proposal_config(&bench->settings);
    bench->settings.mlp.density_layers = shape->density_layers;
    bench_set_up(bench);
}

static struct bench bench_of(struct gpu_device *device, const struct backend_case *backend,
                             const struct shape *shape, enum vkn_gradient_sums sums)
{
    struct vkn_config settings = settings_of(backend, shape);
    settings.gradient_sums = sums;
    settings.deterministic = sums == VKN_SUMS_FIXED;
    struct bench bench = bench_configure(device, settings);
    if (shape->color_layers == 0)
        become_proposal(&bench, shape);
    force_backend(&bench, backend);
    if (backend->atomics) {
        bench.backend.scatter_suffix = "float";
        bench.backend.sums_size = 0;
        bench_set_constant(&bench, SPEC_SAMPLE_LANES, 4); /* what most GPUs choose */
    }
    if (backend->sample_lanes)
        bench_set_constant(&bench, SPEC_SAMPLE_LANES, backend->sample_lanes);
    bench_allocate(&bench, 1, 1);
    return bench;
}

/* Relative error of an activation after several layers. */
static double kink_margin(bool half)
{
    return half ? 4e-3 : 1e-5;
}

/* Moves a sample to distance t on its ray; returns its distance from a ReLU's kink. */
static double move_sample(struct inputs *inputs, const struct reference_field *field, uint32_t s,
                          uint32_t of_ray, double t)
{
    const struct Ray *ray = &inputs->rays[of_ray];
    double direction[3], *position = inputs->positions[s];
    inputs->samples[s] = (struct Sample){.t = (float)t, .ray = of_ray};
    for (int i = 0; i < 3; i++) {
        direction[i] = ray->direction[i];
        position[i] = ray->origin[i] + (double)inputs->samples[s].t * ray->direction[i];
    }
    return reference_field_kink(field, position, direction);
}

/* Moves samples whose ReLUs rounding might switch, because their gradients cannot be compared. */
static void place_sample(struct inputs *inputs, const struct reference_field *field, uint32_t s,
                         double margin, struct random *random)
{
    double kink;
    int tries = 0;
    double farthest = (field->space.contracted ? 8 : 0.4) * field->space.side;
    do {
        kink = move_sample(inputs, field, s, s % inputs->ray_count,
                           random_between(random, 0, farthest));
        assert_true(++tries < 10000);
    } while (kink < margin);
}

/* Random rays with samples in the cube, sometimes a little outside, or far outside in contracted
 * space. */
static void random_samples(struct inputs *inputs, const struct reference_field *field,
                           double margin, struct random *random)
{
    double side = field->space.side;
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        double direction[3];
        random_direction(random, direction);
        memset(&inputs->rays[r], 0xff, sizeof inputs->rays[r]); /* NaN where nothing is read */
        for (int i = 0; i < 3; i++) {
            inputs->rays[r].origin[i] = (float)(0.5 + side * random_between(random, -0.52, 0.52));
            inputs->rays[r].direction[i] = (float)direction[i];
        }
    }
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        place_sample(inputs, field, s, margin, random);
}

/* Puts samples in ray order, several in each cell of a coarse level. */
static void line_up_samples(struct inputs *inputs, const struct reference_field *field,
                            struct random *random)
{
    uint32_t each = (inputs->sample_count + inputs->ray_count - 1) / inputs->ray_count;
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        while (move_sample(inputs, field, s, s / each,
                           0.004 * (s % each + random_between(random, 0, 0.5))) <
               kink_margin(false))
            continue;
}

/* Lists samples with a gradient in sample order. */
static void line_up_gradients(struct inputs *inputs)
{
    inputs->live_count = 0;
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        if (inputs->gradients[s][3] != 0)
            inputs->live[inputs->live_count++] = s;
}

/* A quarter of the samples gets no gradient; the others' gradients are of equal size at the MLPs'
 * outputs. */
static void random_gradients(struct inputs *inputs, const struct reference_field *field,
                             bool colored, struct random *random)
{
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        bool live = s == 0 || random_below(random, 4) > 0;
        double direction[3], slopes[4];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_slopes(field, inputs->positions[s], direction, slopes);
        for (int i = 0; i < 4; i++) {
            /* Where a ReLU's slope is zero any gradient ends there. */
            inputs->field[s][i] =
                live
                    ? (float)(random_between(random, -0.02, 0.02) / (slopes[i] > 0 ? slopes[i] : 1))
                    : 0;
            inputs->gradients[s][i] = colored || i == 3 ? inputs->field[s][i] : 0;
        }
        if (!live)
            continue;
        uint32_t at = random_below(random, ++inputs->live_count);
        inputs->live[inputs->live_count - 1] = inputs->live[at];
        inputs->live[at] = s;
    }
}

/* `steepness` scales the logarithm of the density. */
static struct inputs create_inputs(const struct bench *bench, uint32_t samples, bool along_rays,
                                   float steepness, uint32_t seed)
{
    struct random random = {seed};
    struct inputs inputs = {.ray_count = samples < 40 ? samples : 40, .sample_count = samples};
    inputs.rays = base_alloc(inputs.ray_count, sizeof *inputs.rays);
    inputs.samples = base_alloc(samples, sizeof *inputs.samples);
    inputs.positions = base_alloc(samples, sizeof *inputs.positions);
    inputs.gradients = base_alloc(samples, sizeof *inputs.gradients);
    inputs.field = base_alloc(samples, sizeof *inputs.field);
    inputs.live = base_alloc(samples, sizeof *inputs.live);
    inputs.params = base_alloc(bench->model.param_count, sizeof *inputs.params);
    struct vkn_config settings = bench->settings;
    settings.seed = seed;
    field_initialize(&settings, &bench->model, inputs.params);
    for (uint32_t i = bench->model.mlp_params; i < bench->model.param_count; i++)
        inputs.params[i] = (float)random_between(&random, -1, 1);
    const struct field_layer *last = &bench->model.layers[bench->settings.mlp.density_layers];
    for (uint32_t i = 0; i < last->inputs; i++)
        inputs.params[reference_weight(last, i, 0)] *= steepness;
    struct reference_field field = reference_field(&bench->settings, &bench->model, inputs.params);
    random_samples(&inputs, &field, kink_margin(bench->backend.f16), &random);
    if (along_rays)
        line_up_samples(&inputs, &field, &random);
    random_gradients(&inputs, &field, is_colored(bench), &random);
    if (along_rays)
        line_up_gradients(&inputs);
    reference_field_destroy(&field);
    return inputs;
}

static struct inputs inputs_create(const struct bench *bench, uint32_t samples, bool along_rays,
                                   uint32_t seed)
{
    return create_inputs(bench, samples, along_rays, 1, seed);
}

static void inputs_destroy(struct inputs *inputs)
{
    void *all[] = {inputs->rays,  inputs->samples, inputs->positions, inputs->gradients,
                   inputs->field, inputs->live,    inputs->params};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

static void put_samples(struct bench *bench, const struct inputs *inputs)
{
    struct State state = {
        .sample_count = inputs->sample_count,
        .live_count = inputs->live_count,
        .ray_count = 64,
        .loss_scale = 8,
    };
    bench_put(bench, BIND_STATE, &state, sizeof state);
    bench_put(bench, BIND_RAYS, inputs->rays, inputs->ray_count * sizeof *inputs->rays);
    bench_put(bench, BIND_SAMPLES, inputs->samples, inputs->sample_count * sizeof *inputs->samples);
    bench_put(bench, BIND_PARAMS, inputs->params, 4ull * bench->model.param_count);
    if (bench->backend.f16)
        bench_run(bench, "round_parameters", (struct Push){0}, 3);
}

/* ---- forward ------------------------------------------------------------------------------- */

static void check_forward(struct bench *bench, const struct inputs *inputs,
                          const float (*device)[4])
{
    struct reference_field field = reference_field(&bench->settings, &bench->model, inputs->params);
    double(*expected)[4] = base_alloc(inputs->sample_count, sizeof *expected), squared = 0;
    bool logarithms = field.activation == VKN_DENSITY_EXP; /* errors grow with it */
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double direction[3];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_forward(&field, inputs->positions[s], direction, expected[s]);
        if (logarithms)
            expected[s][3] = log(expected[s][3]);
        for (int i = 0; i < 3 && !is_colored(bench); i++)
            expected[s][i] = 0;
        squared += expected[s][3] * expected[s][3];
    }
    double scale = fmax(1, sqrt(squared / inputs->sample_count));
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        for (int i = 0; i < 4; i++)
            assert_close(i < 3 || !logarithms ? device[s][i] : log((double)device[s][i]),
                         expected[s][i], forward_tolerance(bench), scale,
                         i < 3 ? "colour of sample" : "density of sample", s);
    free(expected);
    reference_field_destroy(&field);
}

static void run_forward(struct bench *bench, uint32_t groups)
{
    bench_run_variant(bench, "encode_samples", FIELD_F16_PARAMS, (struct Push){0}, groups);
    bench_run_variant(bench, "field_forward", FIELD_FORWARD, (struct Push){0}, groups);
}

static float (*run_rows(struct bench *bench, uint32_t rows, uint32_t groups))[4]
{
    bench_run_variant(bench, "field_forward", FIELD_FORWARD, (struct Push){.e = rows}, groups);
    return bench_read(bench, BIND_FIELD);
}

/* Computes densities of all samples, then colours of the listed ones, whose densities stay. The
 * device already holds complete values. */
static void check_densities_first(struct bench *bench, const struct inputs *inputs, uint32_t groups)
{
    bool all = bench->settings.deterministic; /* without a list */
    bool *listed = base_alloc(inputs->sample_count, sizeof *listed);
    float(*values)[4] = bench_read(bench, BIND_FIELD);
    for (uint32_t i = 0; i < inputs->live_count; i++)
        listed[inputs->live[i]] = true;
    bench_put(bench, BIND_LIVE, inputs->live, 4ull * inputs->live_count);
    bench_poison(bench, BIND_FIELD);
    float(*before)[4] = run_rows(bench, ROWS_DENSITIES, groups);
    assert_poisoned(before, 4ull * inputs->sample_count, 4ull * bench->config.sample_capacity);
    float(*after)[4] = run_rows(bench, ROWS_LIVE, groups);
    assert_poisoned(after, 4ull * inputs->sample_count, 4ull * bench->config.sample_capacity);
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        values[s][3] = before[s][3];
        assert_memory_equal(&before[s][3], &after[s][3], sizeof(float));
        for (int i = 0; i < 3; i++) {
            assert_true(before[s][i] == 0);
            assert_true(all || listed[s] || after[s][i] == 0);
            values[s][i] = all || listed[s] ? after[s][i] : values[s][i];
        }
    }
    check_forward(bench, inputs, (const float(*)[4])values);
    free(values);
    free(before);
    free(after);
    free(listed);
}

static void check_forwards(struct bench *bench, const struct inputs *inputs)
{
    put_samples(bench, inputs);
    /* Fewer workgroups than tiles of samples, and more. */
    const uint32_t groups[] = {2, bench_groups(bench, inputs->sample_count) + 3};
    for (size_t g = 0; g < BASE_COUNT(groups); g++) {
        bench_poison(bench, BIND_FIELD);
        bench_poison(bench, BIND_FEATURES);
        run_forward(bench, groups[g]);
        float(*values)[4] = bench_read(bench, BIND_FIELD);
        check_forward(bench, inputs, (const float(*)[4])values);
        assert_poisoned(values, 4ull * inputs->sample_count, 4ull * bench->config.sample_capacity);
        free(values);
    }
    check_densities_first(bench, inputs, groups[0]);
    struct State none = {.sample_count = 0};
    bench_put(bench, BIND_STATE, &none, sizeof none);
    bench_poison(bench, BIND_FIELD);
    run_forward(bench, 9);
    void *untouched = bench_read(bench, BIND_FIELD);
    assert_poisoned(untouched, 0, 4ull * bench->config.sample_capacity);
    free(untouched);
}

/* More samples are requested than the capacity. */
static void test_forward_overflow(void **state)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(*state, backends);
    for (uint32_t p = 0; p < count && p < 2; p++) {
        struct bench bench = bench_of(*state, &backends[p], &narrow, VKN_SUMS_DEFAULT);
        struct inputs inputs = inputs_create(&bench, bench.config.sample_capacity, false, 7);
        put_samples(&bench, &inputs);
        struct State counts = {.sample_count = bench.config.sample_capacity + 12345};
        bench_put(&bench, BIND_STATE, &counts, sizeof counts);
        run_forward(&bench, 9);
        float(*values)[4] = bench_read(&bench, BIND_FIELD);
        check_forward(&bench, &inputs, (const float(*)[4])values);
        free(values);
        inputs_destroy(&inputs);
        bench_destroy(&bench);
    }
}

/* ---- backward ------------------------------------------------------------------------------ */

static double *sum_gradients(const struct bench *bench, const struct inputs *inputs,
                             const struct reference_field *field)
{
    double *gradients = base_alloc(bench->model.param_count, sizeof *gradients);
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double direction[3];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_backward(field, inputs->positions[s], direction, inputs->gradients[s],
                                 gradients);
    }
    return gradients;
}

static double *expected_gradients(const struct bench *bench, const struct inputs *inputs)
{
    struct reference_field field = reference_field(&bench->settings, &bench->model, inputs->params);
    double *gradients = sum_gradients(bench, inputs, &field);
    reference_field_destroy(&field);
    return gradients;
}

static void check_part(const char *what, uint32_t index, const float *device,
                       const double *expected, uint32_t first, uint32_t count, double tolerance)
{
    double error = relative_error(device + first, expected + first, count), size = 0;
    for (uint32_t i = first; i < first + count; i++)
        size += fabs(expected[i]);
    assert_true(size > 0);
    if (!(error < tolerance))
        fail_msg("gradient of %s %u: relative error %.3g", what, index, error);
}

static void check_gradients(const struct bench *bench, const float *device, const double *expected)
{
    const struct field_layer *layers = bench->model.layers;
    for (uint32_t i = 0; i < bench->model.layer_count; i++)
        check_part("layer", i, device, expected, layers[i].first,
                   layers[i].inputs * layers[i].outputs, backward_tolerance(bench));
    for (uint32_t i = 0; i < bench->model.levels; i++)
        check_part("level", i, device, expected, bench->model.level[i].first,
                   bench->model.level[i].entries * bench->model.features,
                   backward_tolerance(bench));
}

/* Spoils values of samples without a gradient: no pass may read them. */
static void spoil_values(struct bench *bench, const struct inputs *inputs)
{
    float(*values)[4] = bench_read(bench, BIND_FIELD);
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        for (int i = 0; i < 4 && inputs->field[s][3] == 0; i++)
            values[s][i] = NAN;
    bench_put(bench, BIND_FIELD, values, inputs->sample_count * sizeof *values);
    free(values);
}

/* Runs the backward passes; they leave gradient sums as in a training step. */
static void run_backward(struct bench *bench, const struct inputs *inputs, uint32_t groups)
{
    bool fixed = bench->backend.sums == VKN_SUMS_FIXED;
    uint32_t *zeros = base_alloc(2ull * bench->model.param_count, sizeof *zeros);
    put_samples(bench, inputs);
    bench_poison(bench, BIND_PARTIALS);
    bench_poison(bench, BIND_FIELD);
    bench_poison(bench, BIND_FIELD_GRADIENTS);
    bench_poison(bench, BIND_LIVE);
    bench_poison(bench, BIND_FEATURES);
    bench_put(bench, BIND_ACCUMULATORS, zeros, 8ull * bench->model.param_count);
    bench_put(bench, BIND_GRADIENTS, zeros, 4ull * bench->model.param_count);
    free(zeros);
    bench_put(bench, BIND_FIELD_GRADIENTS, inputs->field,
              inputs->sample_count * sizeof *inputs->field);
    if (!fixed)
        bench_put(bench, BIND_LIVE, inputs->live, 4ull * inputs->live_count);
    bench->config.backward_groups = groups;
    bench_put(bench, BIND_CONFIG, &bench->config, sizeof bench->config);
    run_forward(bench, groups);
    spoil_values(bench, inputs);
    bench_run_variant(bench, "field_backward", FIELD_BACKWARD, (struct Push){0}, groups);
    bench_run_variant(bench, "scatter_gradients", FIELD_SCATTER, (struct Push){0}, groups);
}

/* Compares the results of the backward passes with the reference. */
static void check_summed(struct bench *bench, const struct inputs *inputs, uint32_t groups,
                         const double *expected)
{
    run_backward(bench, inputs, groups);
    bench_run_variant(bench, "reduce_gradients", FIELD_REDUCE, (struct Push){0}, 3);
    float *gradients = bench_read_gradients(bench);
    check_gradients(bench, gradients, expected);
    free(gradients);
}

static void check_backwards(struct bench *bench, const struct inputs *inputs)
{
    double *expected = expected_gradients(bench, inputs);
    const uint32_t groups[] = {5, 1};
    for (size_t g = 0; g < BASE_COUNT(groups); g++)
        check_summed(bench, inputs, groups[g], expected);
    free(expected);
}

/* Cases that lavapipe compiles longest and that other tests cover on CPU devices: matrices in
 * test_rounded and test_backward_repeats; f16 in test_sums, with weights through bindings in
 * test_tuned; with GPU kernels f16 rows in memory in test_f32_products. */
static bool is_covered_elsewhere(struct gpu_device *device, const struct backend_case *backend)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    if (backend->precision == VKN_PRECISION_FP32 || capabilities->type != GPU_CPU || tries_all())
        return false;
    return gpu_cpu_kernels(capabilities) ||
           (backend->precision == VKN_PRECISION_FP16 && backend->memory);
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
    struct bench bench = bench_of(device, backend, shape, sums);
    struct inputs inputs = inputs_create(&bench, shape->samples, backend->along_rays, seed);
    if (differs_forward(backend))
        check_forwards(&bench, &inputs);
    if (differs_backward(backend))
        check_backwards(&bench, &inputs);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
}

static void test_passes(void **state)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(*state, backends);
    for (uint32_t n = 0; n < shape_count(*state); n++)
        check_passes(*state, &backends[0], &shapes[n], VKN_SUMS_DEFAULT, 200 + n);
    for (uint32_t p = 1; p < count; p++) {
        if (is_covered_elsewhere(*state, &backends[p]))
            continue;
        const struct shape random = matrix_shape_for(*state, &backends[p], random_shape(220 + p));
        check_passes(*state, &backends[p], &random, VKN_SUMS_DEFAULT, 220 + p);
    }
}

/* Densities from exp(-60) to exp(60) and beyond, where the slope of exp is clamped. */
static void test_steep_densities(void **state)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct bench bench = bench_of(*state, &backend, &shapes[0], VKN_SUMS_DEFAULT);
    struct inputs inputs = create_inputs(&bench, 500, false, 100, 600);
    struct reference_field field = reference_field(&bench.settings, &bench.model, inputs.params);
    uint32_t below = 0, above = 0;
    for (uint32_t s = 0; s < inputs.sample_count; s++) {
        double logarithm = reference_log_density(&field, inputs.positions[s]);
        below += logarithm < -20;
        above += logarithm > 20;
    }
    assert_true(below > 20 && above > 20 && below + above < 450);
    double *expected = expected_gradients(&bench, &inputs);
    check_summed(&bench, &inputs, 5, expected);
    free(expected);
    reference_field_destroy(&field);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
}

/* Results of both shaders with SPEC_ROUNDED: values of samples, partial sums of three workgroups.
 */
struct rounded_results {
    float (*values)[4];
    float *partials;
    uint32_t partial_count;
};

/* Gradients that mostly survive f16 at the outputs and mostly underflow before the last layer. */
static void check_underflow(struct bench *bench, struct inputs *inputs)
{
    struct State state;
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        for (int i = 0; i < 4; i++)
            inputs->field[s][i] *= 0x1p-18f; /* of 0.02 raw: half a step of 2^-24 */
    run_backward(bench, inputs, 3);
    bench_get(bench, BIND_STATE, &state, sizeof state);
    assert_true(state.underflowed > state.rounded / 8 && state.underflowed < state.rounded);
}

static struct rounded_results run_rounded(struct gpu_device *device,
                                          const struct backend_case *backend, uint32_t rounded)
{
    struct bench bench = bench_of(device, backend, &narrow, VKN_SUMS_DEFAULT);
    struct inputs inputs = inputs_create(&bench, narrow.samples, false, 15);
    bench_set_constant(&bench, SPEC_ROUNDED, rounded);
    if (is_covered_elsewhere(device, backend) && !(rounded & ROUND_SUMS) && rounded < ROUND_BF16)
        check_forwards(&bench, &inputs);
    run_backward(&bench, &inputs, 3);
    bench_run_variant(&bench, "reduce_gradients", FIELD_REDUCE, (struct Push){0}, 3);
    double *expected = expected_gradients(&bench, &inputs);
    float *gradients = bench_read_gradients(&bench);
    for (uint32_t i = 0; i < bench.model.layer_count; i++) {
        const struct field_layer *layer = &bench.model.layers[i];
        check_part("layer", i, gradients, expected, layer->first, layer->inputs * layer->outputs,
                   rounded < ROUND_BF16 ? 2e-2 : 0.1);
    }
    struct rounded_results rounded_results = {bench_read(&bench, BIND_FIELD),
                                              bench_read(&bench, BIND_PARTIALS),
                                              3 * bench.model.mlp_params};
    run_forward(&bench, 3); /* overwrites what spoil_values wrote */
    bench_get(&bench, BIND_FIELD, rounded_results.values,
              inputs.sample_count * sizeof *rounded_results.values);
    if (bench.backend.f16)
        check_underflow(&bench, &inputs);
    free(expected);
    free(gradients);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
    return rounded_results;
}

static uint32_t count_unrounded(const struct rounded_results *rounded_results)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rounded_results->partial_count; i++)
        count += (double)rounded_results->partials[i] !=
                 reference_round_to_f16((double)rounded_results->partials[i]);
    return count;
}

/* Returns the largest difference of the values from values with unrounded sums. */
static double rounded_by(struct gpu_device *device, const struct backend_case *backend,
                         const struct rounded_results *rounded)
{
    struct bench bench = bench_of(device, backend, &narrow, VKN_SUMS_DEFAULT);
    struct inputs inputs = inputs_create(&bench, narrow.samples, false, 15);
    double difference = 0;
    put_samples(&bench, &inputs);
    run_forward(&bench, 3);
    float(*values)[4] = bench_read(&bench, BIND_FIELD);
    for (uint32_t s = 0; s < narrow.samples; s++)
        difference = fmax(difference, fabs((double)rounded->values[s][0] - (double)values[s][0]));
    free(values);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
    return difference;
}

/* Sums rounded to f16: weight gradients in every precision, products in fp16. Unless all cases run,
 * matrices use CPU kernels only, which round in the same place, and unrounded fp32 only the kernels
 * that test_sums compiles anyway. */
static void test_rounded(void **state)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(*state, backends);
    bool done[VKN_PRECISION_COOPMAT + 1] = {false};
    const bool elsewhere = has_slow_gpu_kernels(*state);
    done[VKN_PRECISION_COOPMAT] = elsewhere;
    for (uint32_t p = 0; p < count; p++) {
        enum vkn_precision precision = backends[p].precision;
        if (done[precision])
            continue;
        done[precision] = true;
        bool sums = precision == VKN_PRECISION_FP16;
        backends[p].through_partials |= precision == VKN_PRECISION_COOPMAT;
        struct rounded_results rounded =
            run_rounded(*state, &backends[p], ROUND_WEIGHT_SUMS | (sums ? ROUND_SUMS : 0));
        assert_int_equal(count_unrounded(&rounded), 0);
        if (precision == VKN_PRECISION_FP32 && !elsewhere) {
            struct rounded_results plain = run_rounded(*state, &backends[p], 0);
            assert_true(count_unrounded(&plain) > plain.partial_count / 2);
            free(plain.values);
            free(plain.partials);
        }
        if (sums) {
            double difference = rounded_by(*state, &backends[p], &rounded);
            assert_true(difference > 1e-6 && difference < 1e-2);
        }
        free(rounded.values);
        free(rounded.partials);
    }
}

/* Activations, their gradients and all sums of fp32, rounded to bf16. */
static void test_bf16(void **state)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct rounded_results rounded =
        run_rounded(*state, &backend,
                    ROUND_BF16 * (ROUND_ACTIVATIONS | ROUND_ACTIVATION_GRADIENTS | ROUND_SUMS |
                                  ROUND_WEIGHT_SUMS));
    double difference = rounded_by(*state, &backend, &rounded);
    assert_true(difference > 1e-4 && difference < 5e-2);
    for (uint32_t i = 0; i < rounded.partial_count; i++)
        assert_true((double)rounded.partials[i] ==
                    reference_round_to_bf16((double)rounded.partials[i]));
    free(rounded.values);
    free(rounded.partials);
}

/* ---- f32 products of f16 ------------------------------------------------------------------- */

/* Relative error in the Euclidean norm. The reference stores f16 and computes in double precision.
 */
static double value_error(const struct reference_field *field, const struct inputs *inputs,
                          const float (*device)[4])
{
    double squared = 0, size = 0;
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double direction[3], expected[4];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_forward(field, inputs->positions[s], direction, expected);
        for (int i = 0; i < 4; i++) {
            double given = i < 3 ? (double)device[s][i] : log((double)device[s][i]);
            double right = i < 3 ? expected[i] : log(expected[i]);
            squared += (given - right) * (given - right);
            size += right * right;
        }
    }
    return sqrt(squared / size);
}

/* Returns the largest relative error of a layer's weight gradients. */
static double layer_error(const struct bench *bench, const struct inputs *inputs,
                          const struct reference_field *field, const float *device)
{
    double *expected = sum_gradients(bench, inputs, field), largest = 0;
    for (uint32_t i = 0; i < bench->model.layer_count; i++) {
        const struct field_layer *layer = &bench->model.layers[i];
        largest = fmax(largest, relative_error(device + layer->first, expected + layer->first,
                                               layer->inputs * layer->outputs));
    }
    free(expected);
    return largest;
}

/* Returns the derivative by one parameter of the sum over samples of gradients times values, by
 * central differences. */
static double difference_of(const struct reference_field *field, const struct inputs *inputs,
                            uint32_t parameter)
{
    const double reach = 1e-4, before = field->params[parameter];
    double sums[2] = {0};
    for (int side = 0; side < 2; side++) {
        field->params[parameter] = before + (side ? reach : -reach);
        for (uint32_t i = 0; i < inputs->live_count; i++) {
            uint32_t s = inputs->live[i];
            double direction[3];
            for (int k = 0; k < 3; k++)
                direction[k] = inputs->rays[inputs->samples[s].ray].direction[k];
            sums[side] += reference_field_weighted(field, inputs->positions[s], direction,
                                                   inputs->gradients[s]);
        }
    }
    field->params[parameter] = before;
    return (sums[1] - sums[0]) / (2 * reach);
}

/* Compares a few weights of each layer with finite differences of a field that rounds nothing. */
static void check_differences(const struct bench *bench, const struct inputs *inputs,
                              const float *device)
{
    struct reference_field field = reference_field(&bench->settings, &bench->model, inputs->params);
    for (uint32_t i = 0; i < bench->model.layer_count; i++) {
        const struct field_layer *layer = &bench->model.layers[i];
        uint32_t count = layer->inputs * layer->outputs;
        double largest = 0;
        for (uint32_t w = 0; w < count; w++)
            largest = fmax(largest, fabs((double)device[layer->first + w]));
        for (uint32_t n = 0; n < 4; n++) {
            uint32_t output = 5 * n % layer->used_outputs, input = 7 * n % layer->used_inputs;
            size_t weight = reference_weight(layer, input, output);
            assert_close(device[weight], difference_of(&field, inputs, (uint32_t)weight), 1e-2,
                         largest, "gradient of weight", (uint32_t)weight);
        }
    }
    reference_field_destroy(&field);
}

/* Packed f16 products have five times the error in values and twice in gradients. CPU kernels use
 * fixed-point sums, whose pipelines other tests compile too; GPU kernels on a CPU device keep rows
 * in device memory. */
static void test_f32_products(void **state)
{
    const struct gpu_capabilities *device = gpu_device_capabilities(*state);
    const bool cpu = gpu_cpu_kernels(device), memory = device->type == GPU_CPU && !cpu;
    const struct backend_case backend = {.precision = VKN_PRECISION_FP16,
                                         .matmul = VKN_POLICY_F32,
                                         .memory = memory,
                                         .through_partials = memory};
    if (!device->float16)
        return;
    enum vkn_gradient_sums sums = cpu ? VKN_SUMS_FIXED : VKN_SUMS_DEFAULT;
    struct bench bench = bench_of(*state, &backend, &four_features, sums);
    struct inputs inputs = inputs_create(&bench, four_features.samples, false, 16);
    struct reference_field field = reference_field(&bench.settings, &bench.model, inputs.params);
    reference_field_round(&field);
    put_samples(&bench, &inputs);
    run_forward(&bench, 3);
    float(*values)[4] = bench_read(&bench, BIND_FIELD);
    double error = value_error(&field, &inputs, (const float(*)[4])values);
    run_backward(&bench, &inputs, 3);
    bench_run_variant(&bench, "reduce_gradients", FIELD_REDUCE, (struct Push){0}, 3);
    float *gradients = bench_read_gradients(&bench);
    double layers = layer_error(&bench, &inputs, &field, gradients);
    print_message("f32 products: errors %.2g of values, %.2g of gradients\n", error, layers);
    assert_true(error < 1e-4 && layers < 6e-4);
    check_differences(&bench, &inputs, gradients);
    free(values);
    free(gradients);
    reference_field_destroy(&field);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
}

/* More layers than the default model. On CPU devices test_passes covers fp32, test_sums f16. */
static void test_deep(void **state)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(*state, backends);
    for (uint32_t p = 0; p < count; p++) {
        if (backends[p].precision == VKN_PRECISION_COOPMAT || backends[p].bound)
            continue;
        const struct gpu_capabilities *capabilities = gpu_device_capabilities(*state);
        bool tried = capabilities->type == GPU_CPU && shape_count(*state) > 2 && !tries_all();
        if (!tried)
            check_passes(*state, &backends[p], &deep, VKN_SUMS_DEFAULT, 510 + p);
    }
}

/* A proposal's field in every precision: colour gradients are ignored. Matrix layers use both kinds
 * of kernels; with GPU kernels there is also a hidden layer in the middle. */
static void test_densities_alone(void **state)
{
    struct shape shape = {16, 1, 0, 0, 16, 5, 2, 1, 1, 300, false};
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(*state, backends);
    bool done[VKN_PRECISION_COOPMAT + 1] = {false};
    for (uint32_t p = 0; p < count; p++) {
        if (done[backends[p].precision])
            continue;
        done[backends[p].precision] = true;
        if (backends[p].precision == VKN_PRECISION_COOPMAT &&
            !gpu_cpu_kernels(gpu_device_capabilities(*state))) {
            shape.density_layers = 2;
            /* Fewer subgroups than matrices of inputs, as in a GPU's workgroup: each subgroup keeps
             * several. */
            shape.levels = 16;
            backends[p].tuning.values[FIELD_BACKWARD_SIZE] = 64;
        }
        check_passes(*state, &backends[p], &shape, VKN_SUMS_DEFAULT, 700 + p);
    }
}

/* Uses f32 products for f16 with fixed-point sums, to share pipelines with test_f32_products,
 * unless all cases run. */
static struct backend_case with_f32_products(struct backend_case backend)
{
    if (backend.precision == VKN_PRECISION_FP16 && !tries_all())
        backend.matmul = VKN_POLICY_F32;
    return backend;
}

/* Checks a kind of gradient sums in fp32, whether or not the device would choose it. */
static void check_sums(struct gpu_device *device, enum vkn_gradient_sums sums)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct backend_case other = backend;
    check_passes(device, &backend, &narrow, sums, 300);
    if (sums != VKN_SUMS_FIXED || tries_all())
        check_passes(device, &backend, &four_features, sums, 304);
    other.atomics = sums == VKN_SUMS_F32; /* what a GPU chooses */
    if (other.atomics)
        check_passes(device, &other, &narrow, sums, 310);
    other.along_rays = true;
    check_passes(device, &other, &narrow, sums, 320);
    other.sample_lanes = 2; /* AMD */
    check_passes(device, &other, &narrow, sums, 330);
    check_passes(device, &other, &four_features, sums, 334);
}

static void check_f16_sums(struct gpu_device *device, enum vkn_gradient_sums sums)
{
    struct backend_case backend = {.precision = VKN_PRECISION_FP16, .activation = VKN_DENSITY_RELU};
    if (sums == VKN_SUMS_FIXED) {
        backend.activation = VKN_DENSITY_DEFAULT;
        backend = with_f32_products(backend);
        check_passes(device, &backend, &four_features, sums, 304);
        return;
    }
    check_passes(device, &backend, &deep, sums, 304);
    backend.atomics = sums == VKN_SUMS_F32;
    if (backend.atomics)
        check_passes(device, &backend, &deep, sums, 311);
}

static void test_sums(void **state)
{
    const struct gpu_capabilities *device = gpu_device_capabilities(*state);
    for (int sums = VKN_SUMS_F32; sums <= VKN_SUMS_F16; sums++) {
        if (sums == VKN_SUMS_F32 && !device->float_atomic_add)
            continue; /* the device trains with other sums */
        check_sums(*state, (enum vkn_gradient_sums)sums);
        if (device->float16 && device->storage16)
            check_f16_sums(*state, (enum vkn_gradient_sums)sums);
    }
}

/* Tile sizes other than the backend's own, including those of GPUs, and other activations of the
 * density. Other cases test tuned matrix tiles, to share their pipelines. */
static void test_tuned(void **state)
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
    size_t count = list_backends(*state, backends);
    bool gpu = !gpu_cpu_kernels(gpu_device_capabilities(*state));
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
            struct shape shape = gpu || tries_all() ? shape_for(*state, &backend, wider) : narrow;
            check_passes(*state, &backend, &shape, VKN_SUMS_DEFAULT, (uint32_t)(410 + i));
            break; /* the first backend of that precision */
        }
}

/* The widest layers, whose weight gradients do not fit into registers. */
static void test_wide(void **state)
{
    const struct shape wide = {256, 1, 256, 1, 16, 2, 2, 1, 1, 70, false};
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    struct bench bench = bench_of(*state, &backend, &wide, VKN_SUMS_DEFAULT);
    assert_false(bench.backend.hold_sums);
    bench_destroy(&bench);
    check_passes(*state, &backend, &wide, VKN_SUMS_DEFAULT, 601);
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
    struct bench bench = bench_of(device, backend, shape, VKN_SUMS_FIXED);
    struct inputs inputs = inputs_create(&bench, shape->samples, false, 11);
    if (is_covered_elsewhere(device, backend))
        check_forwards(&bench, &inputs);
    check_backwards(&bench, &inputs);
    run_backward(&bench, &inputs, 4);
    void *sums = bench_read(&bench, BIND_ACCUMULATORS),
         *partials = bench_read(&bench, BIND_PARTIALS);
    for (int run = 0; run < 3; run++) {
        run_backward(&bench, &inputs, 4);
        void *again = bench_read(&bench, BIND_ACCUMULATORS),
             *parts = bench_read(&bench, BIND_PARTIALS);
        assert_memory_equal(again, sums, bench.buffers[BIND_ACCUMULATORS].size);
        assert_memory_equal(parts, partials, bench.buffers[BIND_PARTIALS].size);
        free(again);
        free(parts);
    }
    shuffle(&inputs, 12);
    run_backward(&bench, &inputs, 5);
    void *shuffled = bench_read(&bench, BIND_ACCUMULATORS);
    assert_memory_equal(shuffled, sums, bench.buffers[BIND_ACCUMULATORS].size);
    free(shuffled);
    free(sums);
    free(partials);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
}

static void test_backward_repeats(void **state)
{
    struct backend_case backends[MAX_CASES];
    size_t count = list_backends(*state, backends);
    for (uint32_t p = 0; p < count && p < 3; p++) {
        /* The shapes of test_sums, to share its pipelines. */
        struct shape shape = backends[p].precision == VKN_PRECISION_FP16 ? four_features : narrow;
        backends[p] = with_f32_products(backends[p]);
        if (backends[p].precision == VKN_PRECISION_COOPMAT) {
            const struct shape two_layers = {16, 2, 16, 1, 16, 3, 4, 3, 4, 210, false};
            shape = two_layers;
            if (tries_all())
                shape = shape_for(*state, &backends[p], random_shape(220 + p));
            backends[p].tuning = (struct field_tuning){.values = {[FIELD_OWNED_ROWS] = 32,
                                                                  [FIELD_BACKWARD_ROWS] = 32,
                                                                  [FIELD_FORWARD_ROWS] = 128}};
        }
        check_repeats(*state, &backends[p], &shape);
    }
}

/* A value that a fixed-point sum cannot hold is reported and does not wrap around. */
static void test_backward_overflow(void **state)
{
    const struct backend_case backend = {.precision = VKN_PRECISION_FP32};
    const float bad[] = {NAN, INFINITY, 1e30f};
    for (size_t n = 0; n < BASE_COUNT(bad); n++) {
        struct bench bench = bench_of(*state, &backend, &narrow, VKN_SUMS_FIXED);
        struct inputs inputs = inputs_create(&bench, 100, false, 13);
        struct State after;
        run_backward(&bench, &inputs, 2);
        bench_get(&bench, BIND_STATE, &after, sizeof after);
        assert_int_equal(after.nonfinite, 0);
        inputs.field[50][3] = bad[n];
        run_backward(&bench, &inputs, 2);
        bench_get(&bench, BIND_STATE, &after, sizeof after);
        assert_int_equal(after.nonfinite, 1);
        inputs_destroy(&inputs);
        bench_destroy(&bench);
    }
}

/* Tests that depend on GPU kernels run again with VKNERF_DISABLE=cpu_kernels, with which CPU
 * devices use GPU kernels. */
static bool has_gpu_kernels(void)
{
    const char *disabled = getenv("VKNERF_DISABLE");
    return disabled && strstr(disabled, "cpu_kernels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_forward_overflow),
        cmocka_unit_test(test_steep_densities),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_f32_products),
        cmocka_unit_test(test_densities_alone),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_tuned),
        cmocka_unit_test(test_backward_repeats),
        cmocka_unit_test(test_backward_overflow),
        cmocka_unit_test(test_no_messages),
    };
    const struct CMUnitTest shaped[] = {
        cmocka_unit_test(test_passes),       cmocka_unit_test(test_tuned),
        cmocka_unit_test(test_wide),         cmocka_unit_test(test_rounded),
        cmocka_unit_test(test_f32_products), cmocka_unit_test(test_densities_alone),
        cmocka_unit_test(test_no_messages),
    };
    return has_gpu_kernels() ? RUN_PASS_TESTS(shaped) : RUN_PASS_TESTS(tests);
}
