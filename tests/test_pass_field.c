/* field_forward and field_backward against the reference, for models of many shapes.
 *
 * Norms. Forward: largest error of a sample, over max(1, root mean square of the outputs).
 * Backward: Euclidean norm of the error over that of the gradient, for every layer and every grid
 * level. */
#include "pass_fixture.h"

#define FORWARD_TOLERANCE  2e-5
#define BACKWARD_TOLERANCE 1e-4

struct shape {
    uint32_t density_width, density_layers, color_width, color_layers, geometry;
    uint32_t levels, features, sh_degree, aabb_scale, samples;
};
static const struct shape shapes[] = {
    {64, 1, 64, 2, 16, 16, 2, 4, 1, 777},  {16, 1, 16, 1, 16, 1, 2, 1, 1, 1},
    {32, 2, 48, 3, 32, 5, 4, 2, 2, 63},    {128, 3, 16, 1, 16, 7, 2, 3, 4, 65},
    {48, 1, 128, 2, 48, 3, 4, 4, 16, 321},
};

struct inputs {
    struct Ray *rays;
    struct Sample *samples;
    float *params;
    uint32_t ray_count, sample_count;
    double (*positions)[3];
    double (*gradients)[4]; /* by raw rgb and raw density */
    float (*field)[4];      /* the same for the device */
    uint32_t *live;         /* samples with a gradient, in random order */
    uint32_t live_count;
};

static struct bench bench_of(struct gpu_device *device, const struct shape *shape,
                             bool deterministic)
{
    struct vkn_config settings = {
        .scene.aabb_scale = shape->aabb_scale,
        .grid = {.levels = shape->levels, .features = shape->features},
        .mlp = {shape->density_width, shape->density_layers, shape->geometry, shape->color_width,
                shape->color_layers, shape->sh_degree},
    };
    struct bench bench = bench_configure(device, settings);
    bench_set_constant(&bench, SPEC_DETERMINISTIC, deterministic);
    bench_allocate(&bench, 1, 1);
    return bench;
}

/* Rays from anywhere, samples in the cube and now and then a little outside. */
static void random_samples(struct inputs *inputs, double side, struct random *random)
{
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        double direction[3];
        random_direction(random, direction);
        memset(&inputs->rays[r], 0xff, sizeof inputs->rays[r]); /* NaN where nothing is needed */
        for (int i = 0; i < 3; i++) {
            inputs->rays[r].origin[i] = (float)(0.5 + side * random_between(random, -0.52, 0.52));
            inputs->rays[r].direction[i] = (float)direction[i];
        }
    }
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        const struct Ray *ray = &inputs->rays[s % inputs->ray_count];
        struct Sample sample = {(float)random_between(random, 0, 0.4 * side),
                                s % inputs->ray_count};
        inputs->samples[s] = sample;
        for (int i = 0; i < 3; i++)
            inputs->positions[s][i] = ray->origin[i] + (double)sample.t * ray->direction[i];
    }
}

/* A quarter of the samples gets no gradient. */
static void random_gradients(struct inputs *inputs, struct random *random)
{
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        bool live = s == 0 || random_below(random, 4) > 0;
        for (int i = 0; i < 4; i++) {
            inputs->field[s][i] = live ? (float)random_between(random, -0.02, 0.02) : 0;
            inputs->gradients[s][i] = inputs->field[s][i];
        }
        if (!live)
            continue;
        uint32_t at = random_below(random, ++inputs->live_count);
        inputs->live[inputs->live_count - 1] = inputs->live[at];
        inputs->live[at] = s;
    }
}

static struct inputs inputs_create(const struct bench *bench, uint32_t samples, uint32_t seed)
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
    random_samples(&inputs, bench->config.aabb_scale, &random);
    random_gradients(&inputs, &random);
    struct vkn_config settings = bench->settings;
    settings.seed = seed;
    field_initialize(&settings, &bench->model, inputs.params);
    for (uint32_t i = bench->model.mlp_params; i < bench->model.param_count; i++)
        inputs.params[i] = (float)random_between(&random, -1, 1);
    return inputs;
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
}

/* ---- forward ------------------------------------------------------------------------------- */

static void check_forward(struct bench *bench, const struct inputs *inputs,
                          const float (*device)[4])
{
    struct reference_field field = reference_field(&bench->settings, &bench->model, inputs->params);
    double(*expected)[4] = base_alloc(inputs->sample_count, sizeof *expected), squared = 0;
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double direction[3];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_forward(&field, inputs->positions[s], direction, expected[s]);
        squared += expected[s][3] * expected[s][3];
    }
    double scale = fmax(1, sqrt(squared / inputs->sample_count));
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        for (int i = 0; i < 4; i++)
            assert_close(device[s][i], expected[s][i], FORWARD_TOLERANCE, scale,
                         i < 3 ? "colour of sample" : "raw density of sample", s);
    free(expected);
    reference_field_destroy(&field);
}

static void test_forward(void **state)
{
    for (uint32_t n = 0; n < BASE_COUNT(shapes); n++) {
        struct bench bench = bench_of(*state, &shapes[n], false);
        struct inputs inputs = inputs_create(&bench, shapes[n].samples, 100 + n);
        put_samples(&bench, &inputs);
        /* Fewer workgroups than tiles of samples, and more. */
        const uint32_t groups[] = {2, bench_groups(&bench, inputs.sample_count) + 3};
        for (size_t g = 0; g < BASE_COUNT(groups); g++) {
            bench_poison(&bench, BIND_FIELD);
            bench_run(&bench, "field_forward", (struct Push){.b = bench.local_size}, groups[g]);
            float(*device)[4] = bench_take(&bench, BIND_FIELD);
            check_forward(&bench, &inputs, (const float(*)[4])device);
            assert_poisoned(device, 4ull * inputs.sample_count,
                            4ull * bench.config.sample_capacity);
            free(device);
        }
        inputs_destroy(&inputs);
        bench_destroy(&bench);
    }
}

/* No sample at all, and more asked for than there is room. */
static void test_forward_limits(void **state)
{
    struct bench bench = bench_of(*state, &shapes[0], false);
    struct inputs inputs = inputs_create(&bench, bench.config.sample_capacity, 7);
    put_samples(&bench, &inputs);
    struct State counts = {.sample_count = 0};
    bench_put(&bench, BIND_STATE, &counts, sizeof counts);
    bench_run(&bench, "field_forward", (struct Push){.b = bench.local_size}, 9);
    void *untouched = bench_take(&bench, BIND_FIELD);
    assert_poisoned(untouched, 0, 4ull * bench.config.sample_capacity);
    free(untouched);

    counts.sample_count = bench.config.sample_capacity + 12345;
    bench_put(&bench, BIND_STATE, &counts, sizeof counts);
    bench_run(&bench, "field_forward", (struct Push){.b = bench.local_size}, 9);
    float(*device)[4] = bench_take(&bench, BIND_FIELD);
    check_forward(&bench, &inputs, (const float(*)[4])device);
    free(device);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
}

/* ---- backward ------------------------------------------------------------------------------ */

static double *expected_gradients(const struct bench *bench, const struct inputs *inputs)
{
    struct reference_field field = reference_field(&bench->settings, &bench->model, inputs->params);
    double *gradients = base_alloc(bench->model.param_count, sizeof *gradients);
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double direction[3];
        for (int i = 0; i < 3; i++)
            direction[i] = inputs->rays[inputs->samples[s].ray].direction[i];
        reference_field_backward(&field, inputs->positions[s], direction, inputs->gradients[s],
                                 gradients);
    }
    reference_field_destroy(&field);
    return gradients;
}

static void check_part(const char *what, uint32_t index, const float *device,
                       const double *expected, uint32_t first, uint32_t count)
{
    double error = relative_error(device + first, expected + first, count), size = 0;
    for (uint32_t i = first; i < first + count; i++)
        size += fabs(expected[i]);
    assert_true(size > 0);
    if (!(error < BACKWARD_TOLERANCE))
        fail_msg("gradient of %s %u: relative error %.3g", what, index, error);
}

static void check_gradients(const struct bench *bench, const float *device, const double *expected)
{
    struct field_layer layers[FIELD_MAX_LAYERS];
    uint32_t count = field_layers(&bench->settings, &bench->model, layers);
    for (uint32_t i = 0; i < count; i++)
        check_part("layer", i, device, expected, layers[i].first,
                   layers[i].inputs * layers[i].outputs);
    for (uint32_t i = 0; i < bench->model.levels; i++)
        check_part("level", i, device, expected, bench->model.level[i].first,
                   bench->model.level[i].entries * bench->model.features);
}

/* Leaves the gradients in BIND_GRADIENTS, as the training step does. */
static void run_backward(struct bench *bench, const struct inputs *inputs, bool fixed,
                         uint32_t groups)
{
    uint32_t *zeros = base_alloc(2ull * bench->model.param_count, sizeof *zeros);
    put_samples(bench, inputs);
    bench_poison(bench, BIND_PARTIALS);
    bench_poison(bench, BIND_FIELD);
    bench_poison(bench, BIND_LIVE);
    bench_put(bench, BIND_FIXED, zeros, 8ull * bench->model.param_count);
    bench_put(bench, BIND_GRADIENTS, zeros, 4ull * bench->model.param_count);
    free(zeros);
    bench_put(bench, BIND_FIELD, inputs->field, inputs->sample_count * sizeof *inputs->field);
    if (!fixed)
        bench_put(bench, BIND_LIVE, inputs->live, 4ull * inputs->live_count);
    bench->config.backward_groups = groups;
    bench_put(bench, BIND_CONFIG, &bench->config, sizeof bench->config);
    bench_run(bench, fixed ? "field_backward_fixed" : "field_backward_float",
              (struct Push){.b = bench->local_size}, groups);
}

static void reduce(struct bench *bench, bool fixed)
{
    bench_run(bench, fixed ? "reduce_gradients_fixed" : "reduce_gradients_float",
              (struct Push){.b = bench->local_size}, 3);
}

static void check_backward(struct gpu_device *device, const struct shape *shape, bool fixed,
                           uint32_t seed)
{
    struct bench bench = bench_of(device, shape, fixed);
    struct inputs inputs = inputs_create(&bench, shape->samples, seed);
    double *expected = expected_gradients(&bench, &inputs);
    const uint32_t groups[] = {5, 1, 3};
    for (size_t g = 0; g < 2; g++) {
        run_backward(&bench, &inputs, fixed, groups[g]);
        reduce(&bench, fixed);
        float *gradients = bench_take(&bench, BIND_GRADIENTS);
        check_gradients(&bench, gradients, expected);
        free(gradients);
    }
    free(expected);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
}

static void test_backward_float(void **state)
{
    if (!gpu_device_capabilities(*state)->float_atomic_add)
        return; /* the device trains with fixed-point sums alone */
    for (uint32_t n = 0; n < BASE_COUNT(shapes); n++)
        check_backward(*state, &shapes[n], false, 200 + n);
}

static void test_backward_fixed(void **state)
{
    for (uint32_t n = 0; n < BASE_COUNT(shapes); n++)
        check_backward(*state, &shapes[n], true, 300 + n);
}

/* The samples in another order, spread over other workgroups. */
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

/* Fixed-point sums are the same bits again, and whatever the order of the samples. */
static void test_backward_repeats(void **state)
{
    struct bench bench = bench_of(*state, &shapes[0], true);
    struct inputs inputs = inputs_create(&bench, shapes[0].samples, 11);
    run_backward(&bench, &inputs, true, 4);
    void *sums = bench_take(&bench, BIND_FIXED), *partials = bench_take(&bench, BIND_PARTIALS);
    for (int run = 0; run < 3; run++) {
        run_backward(&bench, &inputs, true, 4);
        void *again = bench_take(&bench, BIND_FIXED), *parts = bench_take(&bench, BIND_PARTIALS);
        assert_memory_equal(again, sums, bench.buffers[BIND_FIXED].size);
        assert_memory_equal(parts, partials, bench.buffers[BIND_PARTIALS].size);
        free(again);
        free(parts);
    }
    shuffle(&inputs, 12);
    run_backward(&bench, &inputs, true, 5);
    void *shuffled = bench_take(&bench, BIND_FIXED);
    assert_memory_equal(shuffled, sums, bench.buffers[BIND_FIXED].size);
    free(shuffled);
    free(sums);
    free(partials);
    inputs_destroy(&inputs);
    bench_destroy(&bench);
}

/* What a fixed-point sum cannot hold is reported, not wrapped around. */
static void test_backward_overflow(void **state)
{
    const float bad[] = {NAN, INFINITY, 1e30f};
    for (size_t n = 0; n < BASE_COUNT(bad); n++) {
        struct bench bench = bench_of(*state, &shapes[0], true);
        struct inputs inputs = inputs_create(&bench, 100, 13);
        struct State after;
        run_backward(&bench, &inputs, true, 2);
        bench_get(&bench, BIND_STATE, &after, sizeof after);
        assert_int_equal(after.nonfinite, 0);
        inputs.field[50][3] = bad[n];
        run_backward(&bench, &inputs, true, 2);
        bench_get(&bench, BIND_STATE, &after, sizeof after);
        assert_int_equal(after.nonfinite, 1);
        inputs_destroy(&inputs);
        bench_destroy(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward),          cmocka_unit_test(test_forward_limits),
        cmocka_unit_test(test_backward_float),   cmocka_unit_test(test_backward_fixed),
        cmocka_unit_test(test_backward_repeats), cmocka_unit_test(test_backward_overflow),
        cmocka_unit_test(test_no_messages),
    };
    return RUN_PASS_TESTS(tests);
}
