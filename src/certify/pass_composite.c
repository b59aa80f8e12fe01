/* Tests composite in training against the reference. */
#include "certify/composite.h"

/* ---- training ------------------------------------------------------------------------------ */

static void test_training(struct gpu_device *device)
{
    static const enum vkn_loss losses[] = {VKN_LOSS_HUBER, VKN_LOSS_L2, VKN_LOSS_L1,
                                           VKN_LOSS_CHARBONNIER};
    for (uint32_t n = 0; n < 10; n++) {
        bool deterministic = n >= 4 && n < 9, contracted = n % 5 == 3 || n == 9;
        struct fixture fixture = composite_fixture_of_curve(
            device, losses[n % 4], deterministic, n % 2 ? 8 : 1, contracted,
            n < 8 ? VKN_DISTORTION_LINEAR : VKN_DISTORTION_LADDER);
        struct inputs inputs = composite_inputs_create(&fixture, 301 - 30 * n, 40 + n);
        if (n == 1 || n == 3 || n == 6 || n >= 8)
            composite_set_distortion(&fixture, 0.7f);
        if (n == 0 || n == 3 || n == 6 || n == 9)
            composite_set_density_losses(&fixture, &inputs, 0.4f, 0.9f);
        composite_check_training(&fixture, &inputs, deterministic);
        composite_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Known depths train densities: with and without distortion and keep, in contracted space, in
 * deterministic mode, with an alpha threshold; not with coarse samples. */
static void test_known_depth(struct gpu_device *device)
{
    for (uint32_t n = 0; n < 6; n++) {
        struct fixture fixture =
            composite_fixture(device, VKN_LOSS_HUBER, n == 1, n == 2 ? 8 : 1, n == 2);
        struct inputs inputs = composite_inputs_create(&fixture, 301 - 30 * n, 110 + n);
        composite_set_known_depth(&fixture, &inputs, 0.3f);
        if (n == 1 || n == 2)
            composite_set_distortion(&fixture, 0.7f);
        if (n == 3)
            composite_set_keep(&fixture, &inputs, 0.5f);
        if (n == 4) {
            composite_set_alpha_threshold(&fixture);
            composite_avoid_threshold(&inputs);
        }
        inputs.which = n == 5 ? COMPOSITE_COARSE : COMPOSITE_ALL;
        composite_check_training(&fixture, &inputs, n == 1);
        composite_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Samples below the alpha threshold are skipped: they have no gradient and are not listed as live.
 */
static void test_alpha_threshold(struct gpu_device *device)
{
    for (uint32_t n = 0; n < 5; n++) {
        bool deterministic = n % 2;
        struct fixture fixture =
            composite_fixture(device, VKN_LOSS_HUBER, deterministic, 1, n == 2);
        struct inputs inputs = composite_inputs_create(&fixture, 280, 90 + n);
        uint32_t below = 0;
        composite_set_alpha_threshold(&fixture);
        if (n < 3)
            composite_set_distortion(&fixture, 0.7f);
        composite_avoid_threshold(&inputs);
        inputs.threshold = n < 2 ? (double)THRESHOLD : n == 3 ? 0 : 1;
        if (n == 3) /* without an occupancy grid, whose threshold stays 0 */
            fixture_set_constant(&fixture, SPEC_SAMPLING, SAMPLING_UNIFORM);
        inputs.step -= n == 4;
        for (uint32_t s = 0; s < inputs.sample_count; s++)
            below += inputs.expected[s].density * inputs.expected[s].width < 0.006;
        check_that(below > 1000 && below < inputs.sample_count - 1000);
        composite_check_training(&fixture, &inputs, deterministic);
        composite_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Compositing keeps the list that was made from densities: with a threshold, in contracted space,
 * with rays outside the loss, and in deterministic mode, which only counts. */
static void test_visibility(struct gpu_device *device)
{
    for (uint32_t n = 0; n < 5; n++) {
        bool deterministic = n == 4;
        struct fixture fixture =
            composite_fixture(device, VKN_LOSS_HUBER, deterministic, 1, n == 2);
        struct inputs inputs = composite_inputs_create(&fixture, 301 - 40 * n, 70 + n);
        fixture_set_constant(&fixture, SPEC_VISIBILITY, 1);
        if (n % 2) {
            composite_set_alpha_threshold(&fixture);
            composite_avoid_threshold(&inputs);
        }
        for (uint32_t r = 0; n == 3 && r < inputs.ray_count; r += 3)
            inputs.rays[r].last = r % 2 ? -2 : -3; /* not in the loss */
        if (n == 3)
            composite_set_distortion(&fixture, 0.7f);
        composite_check_training(&fixture, &inputs, deterministic);
        composite_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Coarse samples, and those with a weight of zero, have the colour loss only, which distortion does
 * not change. */
static void test_no_distortion(struct gpu_device *device)
{
    static const float weights[] = {0, 0, 0.7f, 0.7f};
    static const uint32_t which[] = {COMPOSITE_ALL, COMPOSITE_ALL, COMPOSITE_COARSE, COMPOSITE_ALL};
    float *gradients[4];
    double losses[4][2];
    for (uint32_t n = 0; n < 4; n++) {
        struct fixture fixture = composite_fixture(device, VKN_LOSS_HUBER, true, 1, false);
        struct inputs inputs = composite_inputs_create(&fixture, 130, 50);
        if (n > 0)
            composite_set_distortion(&fixture, weights[n]);
        gradients[n] = composite_run(&fixture, &inputs, which[n], losses[n]);
        for (uint32_t s = 0; n > 0 && n < 3 && s < 4 * inputs.sample_count; s++)
            check_close(gradients[n][s], gradients[0][s], 1e-6, 1, "gradient", s);
        composite_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
    for (uint32_t n = 0; n < 4; n++) {
        check_close(losses[n][0], losses[0][0], 1e-6, losses[0][0], "loss", n);
        check_that(n < 3 ? losses[n][1] == 0 : losses[n][1] > 0.1 * losses[0][0]);
        free(gradients[n]);
    }
}

/* Gradients are those of the sum of the reported parts: finite differences of the device's losses
 * by the densities that matter most, on both curves. */
static void test_parts_sum(struct gpu_device *device)
{
    enum { RAYS = 9 };
    for (uint32_t n = 0; n < 2; n++) {
        struct fixture fixture = composite_fixture_of_curve(
            device, VKN_LOSS_L2, true, 4, false, n ? VKN_DISTORTION_LADDER : VKN_DISTORTION_LINEAR);
        struct inputs inputs = composite_inputs_create(&fixture, RAYS, 54);
        double losses[2], without = 0;
        composite_set_distortion(&fixture, 2);
        float *gradients = composite_run(&fixture, &inputs, COMPOSITE_ALL, losses);
        for (uint32_t r = 0; r < RAYS; r++) {
            uint32_t first = inputs.results[r].first, end = first + inputs.results[r].count;
            uint32_t most = first;
            for (uint32_t s = first; s < end; s++)
                if (fabsf(gradients[4 * s + 3] * inputs.field[s][3]) >
                    fabsf(gradients[4 * most + 3] * inputs.field[most][3]))
                    most = s;
            if (end == first)
                continue;
            double above[2], below[2], kept = inputs.field[most][3], by = 0.03 * kept;
            inputs.field[most][3] = (float)(kept + by);
            free(composite_run(&fixture, &inputs, COMPOSITE_ALL, above));
            inputs.field[most][3] = (float)(kept - by);
            free(composite_run(&fixture, &inputs, COMPOSITE_ALL, below));
            inputs.field[most][3] = (float)kept;
            double color = (above[0] - below[0]) / (2 * by) / RAYS * LOSS_SCALE;
            double all = color + (above[1] - below[1]) / (2 * by) / RAYS * LOSS_SCALE;
            check_close(gradients[4 * most + 3], all, 0.01, fabs(all) + 0.1 / kept,
                        "derivative by density", most);
            without = fmax(without, fabs(color - all) * kept);
        }
        check_that(without > 0.05); /* the distortion loss matters */
        free(gradients);
        composite_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Rays whose samples did not fit, and rays of masked pixels, are not in the loss but count in the
 * mean's divisor. Rays that miss the cube are in the loss: they show the background. */
static void test_excluded(struct gpu_device *device)
{
    struct fixture fixture = composite_fixture(device, VKN_LOSS_HUBER, false, 1, false);
    struct inputs inputs = composite_inputs_create(&fixture, 130, 50);
    for (uint32_t r = 0; r < inputs.ray_count; r += 3) {
        inputs.rays[r].last = r % 2 ? -2 : -3; /* the marks that march_rays and generate_rays set */
        inputs.results[r].count = 0;
    }
    for (uint32_t r = 1; r < inputs.ray_count; r += 7) {
        inputs.rays[r].last = fminf(inputs.rays[r].last, -1);
        inputs.results[r].count = 0;
    }
    composite_check_training(&fixture, &inputs, false);
    composite_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* Deterministic: where a ray's samples did not fit, the end of the sample buffer belongs to no ray.
 * Field values that the forward pass left there must not be taken for gradients. */
static void test_overflow_leaves_no_gradient(struct gpu_device *device)
{
    struct fixture fixture = composite_fixture(device, VKN_LOSS_HUBER, true, 1, false);
    struct inputs inputs = composite_inputs_create(&fixture, 130, 51);
    uint32_t last = inputs.ray_count - 1;
    while (inputs.results[last].count < 20)
        last--;
    for (uint32_t r = last; r < inputs.ray_count; r++) {
        inputs.rays[r].last = -2;
        inputs.results[r].count = 0;
    }
    uint32_t fitting = inputs.results[last].first;
    for (uint32_t r = last + 1; r < inputs.ray_count; r++)
        inputs.results[r].first = inputs.sample_count + 10 * (r - last);
    fixture.config.sample_capacity = inputs.sample_count;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    composite_put_inputs(&fixture, &inputs);
    struct State counts = {
        .ray_count = inputs.ray_count,
        .sample_count = inputs.sample_count + 1000,
        .loss_scale = LOSS_SCALE,
    };
    fixture_put(&fixture, BIND_STATE, &counts, sizeof counts);
    fixture_run(&fixture, "composite", (struct Push){.b = fixture.local_size},
                fixture_groups(&fixture, inputs.ray_count));
    float(*result)[4] = fixture_read(&fixture, BIND_FIELD_GRADIENTS);
    for (uint32_t s = fitting; s < inputs.sample_count; s++)
        for (int i = 0; i < 4; i++)
            check_close(result[s][i], 0, 0, 0, "gradient of a sample of no ray", s);
    free(result);
    composite_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* ---- extreme densities --------------------------------------------------------------------- */

static const float densities[] = {0,     1e-30f, 1e-9f, 1e-7f, 3e-7f, 5e-7f,   6e-6f,
                                  3e-5f, 1e4f,   6e4f,  4e5f,  2e6f,  3e6f,    5e6f,
                                  2e7f,  2e8f,   7e10f, 1e26f, 1e38f, INFINITY};
#define EXTREMES BASE_COUNT(densities)

/* A ray per density, with one sample in front of a background of another colour. */
static struct inputs extreme_inputs(float width)
{
    struct inputs inputs = {.ray_count = EXTREMES, .sample_count = EXTREMES};
    inputs.rays = base_alloc(EXTREMES, sizeof *inputs.rays);
    inputs.results = base_alloc(EXTREMES, sizeof *inputs.results);
    inputs.samples = base_alloc(EXTREMES, sizeof *inputs.samples);
    inputs.field = base_alloc(EXTREMES, sizeof *inputs.field);
    inputs.expected = base_alloc(EXTREMES, sizeof *inputs.expected);
    for (uint32_t r = 0; r < EXTREMES; r++) {
        const float field[4] = {0.25f, 0.5f, 0.75f, densities[r]};
        inputs.rays[r] =
            (struct Ray){.last = 500, .target = {0, 0, 0, 1}, .background = {1, 0.9f, 0.1f}};
        inputs.results[r] = (struct RayResult){.transmittance = 1, .first = r, .count = 1};
        inputs.samples[r] = (struct Sample){1.5f, width, r};
        inputs.expected[r] = (struct reference_sample){
            1.5, width, {0.25, 0.5, 0.75}, densities[r], 1.5, width, width};
        memcpy(inputs.field[r], field, sizeof field);
    }
    return inputs;
}

static void check_extremes(struct fixture *fixture, float width)
{
    struct inputs inputs = extreme_inputs(width);
    struct State state = {
        .ray_count = EXTREMES, .sample_count = EXTREMES, .loss_scale = LOSS_SCALE};
    composite_put_inputs(fixture, &inputs);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_run(fixture, "composite", (struct Push){.b = fixture->local_size},
                fixture_groups(fixture, EXTREMES));
    struct outcome outcome = composite_expect(fixture, &inputs);
    float(*device)[4] = fixture_read(fixture, BIND_FIELD_GRADIENTS);
    for (uint32_t s = 0; s < EXTREMES; s++) {
        const double *exact = outcome.gradients[s];
        for (int c = 0; c < 3; c++)
            check_close(device[s][c], exact[c], 1e-5, 1, "colour gradient of density", s);
        /* The error is that of a rounded difference of two colours, times the width. */
        check_close(device[s][3], exact[3], 1e-5, fabs(exact[3]) + 0.3 * (double)width,
                    "gradient of density", s);
    }
    free(device);
    composite_outcome_destroy(&outcome);
    composite_inputs_destroy(&inputs);
}

/* Densities of any size, including infinity, with samples so narrow that the densest are
 * translucent, and with wide ones. */
static void test_extreme_densities(struct gpu_device *device)
{
    struct fixture fixture = composite_fixture(device, VKN_LOSS_L2, false, 1, false);
    composite_set_distortion(&fixture, 0.7f);
    check_extremes(&fixture, 0x1p-8f);
    check_extremes(&fixture, 0x1p-26f);
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_training),
    TEST_BOTH(test_alpha_threshold),
    TEST_BOTH(test_known_depth),
    TEST_BOTH(test_visibility),
    TEST_BOTH_OF(composite, test_keep),
    TEST_BOTH_OF(composite, test_keep_is_unbiased),
    TEST_BOTH(test_no_distortion),
    TEST_BOTH(test_parts_sum),
    TEST_BOTH(test_excluded),
    TEST_BOTH(test_overflow_leaves_no_gradient),
    TEST_BOTH(test_extreme_densities),
    TEST_BOTH_OF(composite, test_view_rounds),
    TEST_BOTH_OF(composite, test_surfaces),
    TEST_BOTH_OF(composite, test_surface_by_hand),
    TEST_BOTH_OF(composite, test_rounded_view),
    TEST_BOTH_OF(composite, test_rounded_distortion),
    TEST_BOTH_OF(composite, test_rounded_fog),
};
const struct certify_part certify_composite = {"composite", tests, BASE_COUNT(tests)};
