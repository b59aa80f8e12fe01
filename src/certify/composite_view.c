/* Tests composite's variants for pictures, normals and surfaces, and rounding by the numeric
 * policy. */
#include "certify/composite.h"

/* ---- rendering ----------------------------------------------------------------------------- */

static void check_view(struct fixture *fixture, const struct inputs *inputs,
                       const struct reference_ray *expected)
{
    struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
    struct Ray *rays = fixture_read(fixture, BIND_RAYS);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        for (int c = 0; c < 3; c++)
            check_close(results[r].color[c], expected[r].color[c], 1e-5, 1, "colour of ray", r);
        check_close(results[r].transmittance, expected[r].transmittance, 1e-5, 1,
                    "transmittance of ray", r);
        check_close(results[r].depth, expected[r].depth, 1e-5, fmax(expected[r].depth, 3),
                    "depth of ray", r);
        bool stops = expected[r].transmittance < fixture->config.early_stop;
        check_that(rays[r].last == (stops ? -1.0f : inputs->rays[r].last));
    }
    free(results);
    free(rays);
}

/* Checks sums of weight * normal, for samples whose normals equal their colours. */
static void check_normals(struct fixture *fixture, const struct inputs *inputs,
                          const struct reference_ray *expected)
{
    float(*normals)[4] = fixture_read(fixture, BIND_NORMALS);
    for (uint32_t r = 0; r < inputs->ray_count; r++)
        for (int c = 0; c < 3; c++)
            check_close(normals[fixture->config.sample_capacity + r][c], expected[r].color[c], 1e-5,
                        1, "normal of ray", r);
    free(normals);
}

/* Runs the pass in rounds of at most 16 samples per ray. */
static void run_rounds(struct fixture *fixture, const struct inputs *inputs, const char *pass)
{
    uint32_t first[301], left[301];
    const struct State state = {.step = inputs->step, .threshold = (float)inputs->threshold};
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        first[r] = inputs->results[r].first;
        left[r] = inputs->results[r].count;
    }
    for (int round = 0; round < 10; round++) {
        struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
        struct Ray *rays = fixture_read(fixture, BIND_RAYS);
        for (uint32_t r = 0; r < inputs->ray_count; r++) {
            results[r].first = first[r];
            results[r].count = rays[r].last < 0 ? 0 : left[r] < 16 ? left[r] : 16;
            first[r] += results[r].count;
            left[r] -= results[r].count;
        }
        fixture_put(fixture, BIND_RESULTS, results, fixture->buffers[BIND_RESULTS].size);
        fixture_run(fixture, pass, (struct Push){.a = 16, .b = inputs->ray_count},
                    fixture_groups(fixture, inputs->ray_count));
        free(results);
        free(rays);
    }
}

/* Composites all samples of every ray at once; the caller frees the result. */
static struct reference_ray *expect_view(const struct fixture *fixture, const struct inputs *inputs)
{
    struct reference_ray *expected = base_alloc(inputs->ray_count, sizeof *expected);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        expected[r] = composite_ray_start(fixture, inputs);
        reference_composite(&expected[r], inputs->expected + inputs->results[r].first,
                            inputs->results[r].count, fixture->config.early_stop);
    }
    return expected;
}

/* Uses the samples' colours as normals. */
static void put_normals(struct fixture *fixture, const struct inputs *inputs)
{
    float(*normals)[4] = base_alloc(fixture->buffers[BIND_NORMALS].size, 1);
    memcpy(normals, inputs->field, inputs->sample_count * sizeof *normals);
    fixture_put(fixture, BIND_NORMALS, normals, fixture->buffers[BIND_NORMALS].size);
    free(normals);
}

/* Rounds give the result of compositing all samples at once; normals are averaged like colours. */
static void check_view_rounds(struct gpu_device *device, bool contracted, bool alpha_threshold)
{
    struct fixture fixture = composite_fixture(device, VKN_LOSS_HUBER, false, 8, contracted);
    struct inputs inputs = composite_inputs_create(&fixture, 301, 60);
    if (alpha_threshold) {
        composite_set_alpha_threshold(&fixture);
        composite_avoid_threshold(&inputs);
    }
    struct reference_ray *expected = expect_view(&fixture, &inputs);
    composite_put_inputs(&fixture, &inputs);
    run_rounds(&fixture, &inputs, "composite_view");
    check_view(&fixture, &inputs, expected);

    composite_put_inputs(&fixture, &inputs);
    put_normals(&fixture, &inputs);
    run_rounds(&fixture, &inputs, "composite_normals");
    check_view(&fixture, &inputs, expected);
    check_normals(&fixture, &inputs, expected);
    free(expected);
    composite_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

void composite_test_view_rounds(struct gpu_device *device)
{
    check_view_rounds(device, false, false);
    check_view_rounds(device, true, false);
    check_view_rounds(device, false, true);
}

/* ---- surfaces ------------------------------------------------------------------------------ */

/* Returns the distance along a ray at which the transmittance is a half; 0 where it stays above. A
 * sample's density holds over the interval whose middle the sample is. */
static double median_distance(const struct fixture *fixture, const struct inputs *inputs,
                              uint32_t r)
{
    const struct reference_ray start = composite_ray_start(fixture, inputs);
    double passed = 0; /* optical thickness */
    for (uint32_t i = 0; i < inputs->results[r].count; i++) {
        const struct reference_sample *sample = &inputs->expected[inputs->results[r].first + i];
        double thickness = sample->density * sample->width, low = 0, high = 1;
        if (!reference_alpha_test(&start, sample))
            continue;
        check_that(fabs(exp(-passed - thickness) - 0.5) > 1e-6); /* holds with this seed */
        if (exp(-passed - thickness) > 0.5) {
            passed += thickness;
            continue;
        }
        for (int round = 0; round < 60; round++) {
            double middle = (low + high) / 2;
            *(exp(-passed - middle * thickness) > 0.5 ? &low : &high) = middle;
        }
        return sample->t + (low - 0.5) * inputs->samples[inputs->results[r].first + i].width;
    }
    return 0;
}

/* Median variants differ only in depth: the surface's distance instead of the mean. */
static void check_surfaces(struct gpu_device *device, bool contracted, bool alpha_threshold)
{
    static const char *const passes[] = {"composite_normals_median", "composite_median"};
    struct fixture fixture = composite_fixture(device, VKN_LOSS_HUBER, false, 8, contracted);
    struct inputs inputs = composite_inputs_create(&fixture, 301, 61);
    if (alpha_threshold) {
        composite_set_alpha_threshold(&fixture);
        composite_avoid_threshold(&inputs);
    }
    struct reference_ray *expected = expect_view(&fixture, &inputs);
    uint32_t hits = 0;
    for (uint32_t r = 0; r < inputs.ray_count; r++) {
        expected[r].depth = median_distance(&fixture, &inputs, r);
        hits += expected[r].depth > 0;
    }
    check_that(hits > 50 && hits < 250);
    for (size_t i = 0; i < BASE_COUNT(passes); i++) {
        composite_put_inputs(&fixture, &inputs);
        put_normals(&fixture, &inputs);
        run_rounds(&fixture, &inputs, passes[i]);
        check_view(&fixture, &inputs, expected);
        if (i == 0)
            check_normals(&fixture, &inputs, expected);
    }
    free(expected);
    composite_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

void composite_test_surfaces(struct gpu_device *device)
{
    check_surfaces(device, false, false);
    check_surfaces(device, true, false);
    check_surfaces(device, false, true);
}

/* By hand: a sample whose transmittance is 2^-n reaches a half at its end (n = 1), in its middle (n
 * = 2), after a quarter (n = 4). */
void composite_test_surface_by_hand(struct gpu_device *device)
{
    static const double halvings[] = {1.001, 2, 4, 0.999};
    static const double offsets[] = {0.5 - 0.001, 0, -0.25};
    struct fixture fixture = composite_fixture(device, VKN_LOSS_HUBER, false, 1, false);
    const struct Ray rays[4] = {{.last = 500}, {.last = 500}, {.last = 500}, {.last = 500}};
    struct RayResult results[4];
    struct Sample samples[4];
    float field[4][4];
    const double width = 0.0078125;
    for (uint32_t r = 0; r < 4; r++) {
        results[r] = (struct RayResult){.transmittance = 1, .first = r, .count = 1};
        samples[r] = (struct Sample){1, (float)width, r};
        field[r][3] = (float)(halvings[r] * log(2) / width);
    }
    fixture_put(&fixture, BIND_RAYS, rays, sizeof rays);
    fixture_put(&fixture, BIND_RESULTS, results, sizeof results);
    fixture_put(&fixture, BIND_SAMPLES, samples, sizeof samples);
    fixture_put(&fixture, BIND_FIELD, field, sizeof field);
    fixture_run(&fixture, "composite_median", (struct Push){.a = 16, .b = 4}, 1);
    fixture_get(&fixture, BIND_RESULTS, results, sizeof results);
    for (uint32_t r = 0; r < 3; r++)
        check_close((results[r].depth - 1) / width, offsets[r], 2e-4, 1, "position in the sample",
                    r);
    check_that(results[3].depth == 0);
    fixture_destroy(&fixture);
}

/* ---- rounding ------------------------------------------------------------------------------ */

/* Types that the policy rounds to, and the spacing of their numbers between 1 and 2. */
static const struct rounding {
    uint32_t constant;
    double (*round)(double);
    double unit;
} f16 = {ROUND_COMPOSITING, reference_round_to_f16, 0x1p-10},
  bf16 = {ROUND_COMPOSITING * ROUND_BF16, reference_round_to_bf16, 0x1p-7};

static struct fixture rounded_bench(struct gpu_device *device, const struct rounding *rounding)
{
    struct fixture fixture = composite_fixture(device, VKN_LOSS_HUBER, false, 1, false);
    fixture_set_constant(&fixture, SPEC_ROUNDED, rounding->constant);
    return fixture;
}

static bool is_rounded(const struct rounding *rounding, float x)
{
    return (double)x == rounding->round((double)x);
}

/* A ray's whole state is rounded. Scans round less often than the sequential reference does. */
static void check_rounded_view(struct gpu_device *device, const struct rounding *rounding)
{
    struct fixture fixture = rounded_bench(device, rounding);
    struct inputs inputs = composite_inputs_create(&fixture, 301, 62);
    bool per_invocation = fixture.constants.values[SPEC_CPU_KERNELS];
    double tolerance = (per_invocation ? 2 : 40) * rounding->unit, difference = 0;
    composite_put_inputs(&fixture, &inputs);
    run_rounds(&fixture, &inputs, "composite_view");
    struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
    for (uint32_t r = 0; r < inputs.ray_count; r++) {
        struct reference_ray exact = reference_ray_start, rounded = reference_ray_start;
        const struct reference_sample *samples = inputs.expected + inputs.results[r].first;
        rounded.round = rounding->round;
        reference_composite(&exact, samples, inputs.results[r].count, fixture.config.early_stop);
        reference_composite(&rounded, samples, inputs.results[r].count, fixture.config.early_stop);
        check_that(is_rounded(rounding, results[r].transmittance) &&
                   is_rounded(rounding, results[r].depth));
        check_close(results[r].transmittance, rounded.transmittance, tolerance, 1,
                    "transmittance of ray", r);
        check_close(results[r].depth, rounded.depth, tolerance, fmax(rounded.depth, 1),
                    "depth of ray", r);
        for (int c = 0; c < 3; c++) {
            check_that(is_rounded(rounding, results[r].color[c]));
            check_close(results[r].color[c], rounded.color[c], tolerance, 1, "colour of ray", r);
            difference = fmax(difference, fabs(results[r].color[c] - exact.color[c]));
        }
    }
    check_that(difference > rounding->unit);
    free(results);
    composite_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

void composite_test_rounded_view(struct gpu_device *device)
{
    check_rounded_view(device, &f16);
    check_rounded_view(device, &bf16);
}

/* Distortion sums of rounded weights stay near those of exact weights. */
void composite_test_rounded_distortion(struct gpu_device *device)
{
    struct fixture fixture = rounded_bench(device, &f16);
    struct inputs inputs = composite_inputs_create(&fixture, 130, 63);
    double losses[2], expected = 0;
    composite_set_distortion(&fixture, 0.7f);
    free(composite_run(&fixture, &inputs, COMPOSITE_ALL, losses));
    for (uint32_t r = 0; r < inputs.ray_count; r++) {
        const struct reference_sample *samples = inputs.expected + inputs.results[r].first;
        struct reference_ray ray = reference_ray_start;
        ray.round = reference_round_to_f16;
        reference_composite(&ray, samples, inputs.results[r].count, fixture.config.early_stop);
        expected += 0.7 * reference_distortion(&ray, samples, 0, NULL);
    }
    check_close(losses[1], expected, 1e-2, expected, "distortion", 0);
    composite_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* By hand: where 1 - exp(-x) rounds to 0 in f16, thin fog is invisible however deep it is, and gets
 * no gradient. Fog three times as thick is visible. */
void composite_test_rounded_fog(struct gpu_device *device)
{
    enum { COUNT = 500 };
    static const float thickness[] = {0x1p-13f, 0x1.8p-12f};
    struct fixture fixture = rounded_bench(device, &f16);
    struct Ray rays[2] = {{.last = 500, .background = {1, 1, 1}},
                          {.last = 500, .background = {1, 1, 1}}};
    struct RayResult results[2];
    struct Sample samples[2 * COUNT];
    float field[2 * COUNT][4], gradients[2 * COUNT][4];
    for (uint32_t r = 0; r < 2; r++) {
        results[r] = (struct RayResult){.transmittance = 1, .first = r * COUNT, .count = COUNT};
        for (uint32_t i = r * COUNT; i < (r + 1) * COUNT; i++) {
            samples[i] = (struct Sample){1, 0x1p-8f, r};
            memcpy(field[i], (float[4]){0.5f, 0.5f, 0.5f, thickness[r] * 0x1p8f}, 16);
        }
    }
    struct State counts = {.ray_count = 2, .sample_count = 2 * COUNT, .loss_scale = LOSS_SCALE};
    fixture_put(&fixture, BIND_RAYS, rays, sizeof rays);
    fixture_put(&fixture, BIND_RESULTS, results, sizeof results);
    fixture_put(&fixture, BIND_SAMPLES, samples, sizeof samples);
    fixture_put(&fixture, BIND_FIELD, field, sizeof field);
    fixture_put(&fixture, BIND_STATE, &counts, sizeof counts);
    fixture_run(&fixture, "composite", (struct Push){.b = fixture.local_size}, 1);
    fixture_get(&fixture, BIND_FIELD_GRADIENTS, gradients, sizeof gradients);
    fixture_run(&fixture, "composite_view", (struct Push){.a = COUNT, .b = 2}, 1);
    fixture_get(&fixture, BIND_RESULTS, results, sizeof results);
    check_that(results[0].transmittance == 1 && results[0].color[0] == 0);
    check_close(results[1].transmittance, exp(-COUNT * 0x1p-11), 0.05, 1, "transmittance", 1);
    for (uint32_t i = 0; i < 2 * COUNT; i++)
        check_that((gradients[i][0] == 0) == (i < COUNT));
    fixture_destroy(&fixture);
}
