/* Tests the reference itself, without a device: gradients against finite differences; steps, Morton
 * codes and harmonics against their definitions. */
#include "pass_fixture.h"

#define STEP 1e-6

static void assert_derivative(double analytic, double above, double below, double scale,
                              const char *what, size_t index)
{
    check_close((above - below) / (2 * STEP), analytic, 1e-6, scale, what, index);
}

/* ---- the field ----------------------------------------------------------------------------- */

/* Checks the gradients of every `stride`th parameter. */
static void check_gradients(const struct vkn_config *config, uint32_t stride)
{
    struct random random = {1000 + config->mlp.density_layers};
    struct field_model model;
    ok(field_model_create(config, &model));
    float *params = base_alloc(model.param_count, sizeof *params);
    field_initialize(config, &model, params);
    for (uint32_t i = model.mlp_params; i < model.param_count; i++)
        params[i] = (float)random_between(&random, -1, 1);
    struct reference_field field = reference_field(config, &model, params);
    const double weights[4] = {0.3, -0.7, 0.5, 0.9}, position[3] = {0.1, 0.83, -0.2};
    double direction[3], *gradients = base_alloc(model.param_count, sizeof *gradients);
    random_direction(&random, direction);
    reference_field_backward(&field, position, direction, weights, gradients);
    uint32_t alive = 0;
    for (uint32_t i = 0; i < model.param_count; i += stride) {
        field.params[i] += STEP;
        double above = reference_field_weighted(&field, position, direction, weights);
        field.params[i] -= 2 * STEP;
        double below = reference_field_weighted(&field, position, direction, weights);
        field.params[i] += STEP;
        assert_derivative(gradients[i], above, below, 1, "gradient of parameter", i);
        alive += gradients[i] != 0;
    }
    assert_true(alive > 100);
    free(gradients);
    free(params);
    reference_field_destroy(&field);
}

static void check_field(uint32_t density_layers, uint32_t color_layers, uint32_t features,
                        enum vkn_density_activation activation)
{
    const struct vkn_config config = {
        .grid = {.levels = 3, .features = features, .log2_entries = 6, .coarsest = 3, .finest = 20},
        .mlp = {.density_width = 16,
                .density_layers = density_layers,
                .geometry = 16,
                .color_width = 32,
                .color_layers = color_layers,
                .sh_degree = 3,
                .density_activation = activation},
        .scene.aabb_scale = 2,
    };
    check_gradients(&config, 1);
}

static void check_vanilla(uint32_t density_layers, uint32_t color_layers, uint32_t skip_layer)
{
    const struct vkn_config config = {
        .model = VKN_MODEL_VANILLA,
        .mlp = {.density_width = 64,
                .density_layers = density_layers,
                .geometry = 32,
                .color_width = 32,
                .color_layers = color_layers,
                .position_octaves = 4,
                .direction_octaves = 2,
                .skip_layer = skip_layer,
                .density_activation = VKN_DENSITY_SOFTPLUS},
        .scene.aabb_scale = 2,
    };
    check_gradients(&config, 7);
}

static void test_field_gradient(void **state)
{
    (void)state;
    check_field(1, 2, 2, VKN_DENSITY_EXP);
    check_field(2, 1, 4, VKN_DENSITY_SOFTPLUS);
    check_field(3, 3, 2, VKN_DENSITY_RELU);
    check_vanilla(1, 2, 1);
    check_vanilla(3, 1, 2);
    check_vanilla(2, 1, 16);
}

/* By hand: x; sines and cosines of half a turn and of whole turns; padding. */
static void test_frequencies(void **state)
{
    const double x[3] = {0.5, -0.25, 1}, half = sqrt(0.5);
    const double expected[3 + 12] = {0.5, -0.25, 1, 1, -half, 0, 0, half, -1, 0, -1, 0, -1, 0, 1};
    double values[32];
    (void)state;
    assert_int_equal(reference_frequencies(2, x, values), 32);
    for (size_t i = 0; i < 32; i++)
        check_close(values[i], i < BASE_COUNT(expected) ? expected[i] : 0, 1e-14, 1, "wave", i);
    double wide[128];
    assert_int_equal(reference_frequencies(10, x, wide), 64);
    assert_int_equal(reference_frequencies(16, x, wide), 128);
    const struct reference_space space = {.side = 4};
    const double position[3] = {0.5, 2.5, -7};
    double stretched[3];
    reference_stretched(&space, position, stretched);
    assert_true(stretched[0] == 0 && stretched[1] == 1 && stretched[2] == -1);
}

/* ---- compositing --------------------------------------------------------------------------- */

#define SAMPLES 12u

#define DISTORTION 0.7

static double loss_of(const struct reference_sample *samples, const double background[3],
                      enum vkn_loss kind)
{
    struct reference_ray ray = reference_ray_start;
    double loss = 0, slope;
    reference_composite(&ray, samples, SAMPLES, 1e-9);
    for (int c = 0; c < 3; c++)
        loss += reference_loss(kind, 0.1, ray.color[c] + ray.transmittance * background[c] - 0.4,
                               &slope);
    return loss + DISTORTION * reference_distortion(&ray, samples, 0, NULL);
}

static void check_composite(enum vkn_loss kind)
{
    struct random random = {1100 + kind};
    struct reference_sample samples[SAMPLES];
    const double background[3] = {0.9, 0.1, 0.45};
    double gradients[SAMPLES][4], color_gradient[3];
    struct reference_ray ray = reference_ray_start;
    for (uint32_t s = 0; s < SAMPLES; s++) {
        samples[s] = (struct reference_sample){.t = s,
                                               .width = random_between(&random, 0.01, 0.3),
                                               .density = exp(random_between(&random, -2, 2)),
                                               .middle = 0.1 * s,
                                               .extent = random_between(&random, 0.01, 0.2)};
        for (int c = 0; c < 3; c++)
            samples[s].color[c] = random_between(&random, 0.1, 0.9);
    }
    reference_composite(&ray, samples, SAMPLES, 1e-9);
    for (int c = 0; c < 3; c++)
        reference_loss(kind, 0.1, ray.color[c] + ray.transmittance * background[c] - 0.4,
                       &color_gradient[c]);
    reference_composite_backward(&ray, samples, background, color_gradient, gradients);
    reference_distortion(&ray, samples, DISTORTION, gradients);
    for (uint32_t s = 0; s < SAMPLES; s++)
        for (int i = 0; i < 4; i++) {
            double *value = i < 3 ? &samples[s].color[i] : &samples[s].density, kept = *value;
            *value = kept + STEP;
            double above = loss_of(samples, background, kind);
            *value = kept - STEP;
            double below = loss_of(samples, background, kind);
            *value = kept;
            assert_derivative(gradients[s][i], above, below, 0.1, "gradient of sample", s);
        }
}

static void test_composite_gradient(void **state)
{
    (void)state;
    check_composite(VKN_LOSS_HUBER);
    check_composite(VKN_LOSS_L2);
    check_composite(VKN_LOSS_L1);
    check_composite(VKN_LOSS_CHARBONNIER);
}

/* A medium of constant density and colour has a closed solution. */
static void test_composite_uniform(void **state)
{
    (void)state;
    struct reference_sample samples[200];
    struct reference_ray ray = reference_ray_start;
    for (int i = 0; i < 200; i++)
        samples[i] = (struct reference_sample){1, 0.01, {0.2, 0.5, 1}, 0.75, 0, 0, 0};
    reference_composite(&ray, samples, 200, 1e-4);
    check_close(ray.transmittance, exp(-1.5), 1e-12, 1, "transmittance", 0);
    check_close(ray.color[1], 0.5 * (1 - exp(-1.5)), 1e-12, 1, "colour", 0);
    check_close(ray.depth, 1 - exp(-1.5), 1e-12, 1, "depth", 0);
    assert_int_equal(ray.live, 200);
}

/* Two samples that absorb all light: the definition's value, in the cube and contracted. */
static void test_distortion(void **state)
{
    (void)state;
    const struct reference_space cube = {.side = 4}, all = {.side = 4, .contracted = true};
    struct reference_sample samples[2] = {{.t = 1, .width = 1, .density = log(4)},
                                          {.t = 8, .width = 1, .density = INFINITY}};
    struct reference_ray ray = reference_ray_start;
    reference_composite(&ray, samples, 2, 1e-4);
    for (int i = 0; i < 2; i++)
        reference_normalize(&cube, 0.4, &samples[i]);
    double own = (0.75 * 0.75 + 0.25 * 0.25) * 0.1 / 3;
    check_close(reference_distortion(&ray, samples, 0, NULL), 2 * 0.75 * 0.25 * 7 / 4 + own, 1e-12,
                1, "distortion", 0);
    reference_normalize(&all, 0, &samples[0]);
    reference_normalize(&all, 16, &samples[1]); /* from 0 to 16: a radius of 8 */
    check_close(samples[0].middle, 0.25, 1e-12, 1, "middle", 0);
    check_close(samples[1].middle, 0.875, 1e-12, 1, "middle", 1);
    check_close(samples[1].extent, 0.9375, 1e-12, 1, "extent", 1);
}

/* By hand: with a near distance of 1 the ladder 5 - 5 (1 + 0.4 t)^(-1/4) is 5 / 2 at t = 37.5,
 * where the root is 2, and 5 at infinity; it is 0 to 1 from the near to the far distance, and far
 * distances count by their ratio rather than their difference. */
static void test_ladder(void **state)
{
    (void)state;
    const struct vkn_config config = {
        .scene.aabb_scale = 4,
        .march.near_distance = 1,
        .loss.distortion_curve = VKN_DISTORTION_LADDER,
    };
    struct reference_space space = reference_space(&config);
    double end = pow(1.4, -0.25);
    check_close(reference_normalized(&space, 1), 0, 1e-12, 1, "near", 0);
    check_close(reference_normalized(&space, 37.5), 1 - 0.5 / end, 1e-12, 1, "middle", 0);
    check_close(reference_normalized(&space, 1e60), 1, 1e-12, 1, "far", 0);
    space.farthest = 37.5;
    check_close(reference_normalized(&space, 37.5), 1, 1e-12, 1, "far", 1);
    for (int i = 0; i < 14; i++) {
        double t = pow(1.5, i);
        double apart = reference_normalized(&space, 2 * t) - reference_normalized(&space, t);
        assert_true(apart > 0.12 && apart < 0.23);
    }
}

/* ---- steps, codes, harmonics --------------------------------------------------------------- */

static void test_stepping(void **state)
{
    (void)state;
    const struct reference_stepping all[] = {{.shortest = 0.003, .longest = 0.2, .cone = 1.0 / 64},
                                             {.shortest = 0.01, .longest = 0.01},
                                             {.shortest = 0.01, .longest = 0.02, .cone = 0.1}};
    for (size_t n = 0; n < BASE_COUNT(all); n++)
        for (int i = 0; i < 700; i++) {
            double steps = i + 0.25, t = reference_distance_after(&all[n], steps);
            check_close(reference_steps_to(&all[n], t), steps, 1e-10, steps, "steps", n);
            double step = reference_distance_after(&all[n], steps + 1) - t;
            double size = reference_step_size(&all[n], t);
            double next = reference_step_size(&all[n], t + step);
            /* The step has the rule's size, except at the transition between two ranges. */
            bool passes = size != next && (size == all[n].shortest || next == all[n].longest);
            check_close(step, size, passes ? all[n].cone : 1e-9, size, "step", (size_t)i);
        }
}

/* Beyond 12.8 steps are even in 1 / t; after 64 more the distance would be infinite. */
static void test_stepping_contracted(void **state)
{
    (void)state;
    const struct reference_stepping stepping = {
        .shortest = 0.003, .longest = 0.2, .cone = 1.0 / 64, .contracted = true};
    double onset = reference_steps_to(&stepping, 12.8);
    for (size_t n = 1; (double)n < onset + 62; n++) {
        double steps = (double)n + 0.25, little = 1e-6;
        double t = reference_distance_after(&stepping, steps);
        double grown = reference_distance_after(&stepping, steps + little) - t;
        check_close(reference_steps_to(&stepping, t), steps, 1e-10, steps, "steps", n);
        check_close(grown / little, reference_step_size(&stepping, t), 0.01, grown / little, "step",
                    n);
    }
    check_close(reference_distance_after(&stepping, onset + 32), 2 * 12.8, 1e-9, 1, "half", 0);
    check_close(reference_distance_after(&stepping, onset + 63), 64 * 12.8, 1e-6, 1, "last", 0);
}

/* Values of equation 10, continuity, and the inverse. */
static void test_contraction(void **state)
{
    (void)state;
    const struct reference_space space = {.side = 2, .contracted = true}, cube = {.side = 4};
    const double inner[3] = {1.25, 0.5, -0.25}, twice[3] = {0.5, -1.5, 1.5},
                 far[3] = {0.5, 0.5, 1e9};
    double unit[3], back[3];
    reference_to_unit(&space, inner, unit); /* norm 0.75: unchanged, in a cube of twice the side */
    check_close(unit[0], 0.5 + 0.75 / 4, 1e-12, 1, "inner", 0);
    check_close(unit[2], 0.5 - 0.75 / 4, 1e-12, 1, "inner", 2);
    reference_to_unit(&space, twice, unit); /* norm 2: contracted to 2 - 1 / 2 */
    check_close(unit[1], 0.5 - 1.5 / 4, 1e-12, 1, "outer", 1);
    check_close(unit[2], 0.5 + 0.75 / 4, 1e-12, 1, "outer", 2);
    reference_to_unit(&space, far, unit);
    check_close(unit[2], 1, 1e-8, 1, "far", 2);
    reference_to_unit(&cube, twice, unit);
    check_close(unit[1], 0, 1e-12, 1, "cube", 1);
    struct random random = {12};
    for (size_t n = 0; n < 1000; n++) {
        double position[3], distance = pow(10, random_between(&random, -1, 3));
        random_direction(&random, position);
        for (int i = 0; i < 3; i++)
            position[i] = 0.5 + distance * position[i];
        reference_to_unit(&space, position, unit);
        reference_from_unit(&space, unit, back);
        for (int i = 0; i < 3; i++)
            check_close(back[i], position[i], 1e-9, distance, "way back", n);
        double shrinking = reference_shrinking(&space, position), norm = 0, longer[3];
        for (int i = 0; i < 3; i++)
            norm = fmax(norm, fabs(unit[i] - 0.5) * 4);
        for (int i = 0; i < 3; i++)
            longer[i] = 0.5 + (position[i] - 0.5) * (1 + 1e-6);
        reference_to_unit(&space, longer, back);
        double grown = -norm, radius = 0;
        for (int i = 0; i < 3; i++) {
            radius = fmax(radius, fabs(position[i] - 0.5));
            grown = fmax(grown, fabs(back[i] - 0.5) * 4 - norm);
        }
        check_close(grown / (1e-6 * radius), shrinking, 1e-4, shrinking, "shrinking", n);
    }
}

static void test_morton(void **state)
{
    (void)state;
    const uint32_t one[3] = {1, 0, 0}, two[3] = {0, 1, 0}, four[3] = {0, 0, 1},
                   far[3] = {511, 511, 511};
    assert_int_equal(reference_morton(one), 1);
    assert_int_equal(reference_morton(two), 2);
    assert_int_equal(reference_morton(four), 4);
    assert_int_equal(reference_morton(far), (1u << 27) - 1);
    for (uint32_t i = 0; i < 1u << 20; i += 37) {
        uint32_t cell[3];
        reference_morton_cell(i, cell);
        assert_int_equal(reference_morton(cell), i);
    }
}

/* Harmonics are orthonormal on the sphere; those above the degree are zero. */
static void test_harmonics(void **state)
{
    (void)state;
    double matmul[REFERENCE_HARMONICS][REFERENCE_HARMONICS] = {{0}};
    const int rings = 60, spokes = 60;
    for (int i = 0; i < rings * spokes; i++) {
        int ring = i / spokes, spoke = i % spokes;
        double z = -1 + (ring + 0.5) * 2 / rings, phi = 2 * M_PI * spoke / spokes;
        double across = sqrt(1 - z * z), values[REFERENCE_HARMONICS];
        const double direction[3] = {across * cos(phi), across * sin(phi), z};
        reference_harmonics(4, direction, values);
        for (int a = 0; a < REFERENCE_HARMONICS; a++)
            for (int b = 0; b < REFERENCE_HARMONICS; b++)
                matmul[a][b] += values[a] * values[b] * 4 * M_PI / (rings * spokes);
    }
    for (int a = 0; a < REFERENCE_HARMONICS; a++)
        for (int b = 0; b < REFERENCE_HARMONICS; b++)
            check_close(matmul[a][b], a == b, 5e-3, 1, "product of harmonics", 16 * a + b);
    const double up[3] = {0, 0, 1};
    double values[REFERENCE_HARMONICS];
    reference_harmonics(2, up, values);
    check_close(values[2], sqrt(3 / (4 * M_PI)), 1e-12, 1, "harmonic", 2);
    for (int i = 4; i < REFERENCE_HARMONICS; i++)
        assert_true(values[i] == 0);
}

/* Conversions to IEEE 754 binary16, ties to even. */
static void test_half(void **state)
{
    (void)state;
    static const struct {
        double exact;
        uint16_t bits;
    } known[] = {{0, 0},
                 {1, 0x3c00},
                 {-2, 0xc000},
                 {1.0 / 3, 0x3555},
                 {65504, 0x7bff},
                 {65520, 0x7c00},
                 {1 + 0x1p-11, 0x3c00},
                 {1 + 0x3p-11, 0x3c02},
                 {0x1p-14, 0x0400},
                 {0x1p-14 - 0x1p-25, 0x0400},
                 {0x3p-25, 0x0002},
                 {-0x1p-24, 0x8001}};
    for (size_t i = 0; i < BASE_COUNT(known); i++)
        assert_true(reference_round_to_f16(known[i].exact) == reference_f16(known[i].bits));
    check_close(reference_f16(0x3555), 1.0 / 3, 0x1p-13, 1, "half", 0);
    assert_true(reference_f16(0x7bff) == 65504 && isnan(reference_f16(0x7e00)));
    assert_true(reference_round_to_bf16(1 + 0x1p-8) == 1 &&
                reference_round_to_bf16(1 + 0x3p-8) == 1 + 0x1p-6 &&
                reference_round_to_bf16(-0x1.ffp127) == -INFINITY &&
                reference_round_to_bf16(0x1p-133) == 0x1p-133);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_field_gradient),     cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_composite_gradient), cmocka_unit_test(test_composite_uniform),
        cmocka_unit_test(test_stepping),           cmocka_unit_test(test_stepping_contracted),
        cmocka_unit_test(test_contraction),        cmocka_unit_test(test_morton),
        cmocka_unit_test(test_harmonics),          cmocka_unit_test(test_half),
        cmocka_unit_test(test_distortion),         cmocka_unit_test(test_ladder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
