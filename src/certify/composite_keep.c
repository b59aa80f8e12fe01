/* Tests that composite drops rays by their losses, and that the others' gradients make up for them.
 */
#include "certify/composite.h"

/* Rays are dropped by their losses: they have no live samples, but count in loss and squared error;
 * the gradients of others are larger. Without a mean loss, and in a coarse field, all are kept. */
void composite_test_keep(struct gpu_device *device)
{
    for (uint32_t n = 0; n < 8; n++) {
        bool deterministic = n % 2;
        struct fixture fixture = composite_fixture(device, n % 3 ? VKN_LOSS_HUBER : VKN_LOSS_L1,
                                                   deterministic, 1, n == 4);
        struct inputs inputs = composite_inputs_create(&fixture, 301 - 20 * n, 200 + n);
        composite_set_keep(&fixture, &inputs, n < 4 ? 0.25f : 0.6f);
        if (n == 2 || n == 3 || n == 6)
            composite_set_distortion(&fixture, 0.7f);
        if (n == 4 || n == 5) {
            composite_set_alpha_threshold(&fixture);
            composite_avoid_threshold(&inputs);
        }
        if (n == 2 || n == 5 || n == 6)
            composite_set_density_losses(&fixture, &inputs, 0.4f, 0.9f);
        if (n == 6)
            inputs.which = COMPOSITE_COARSE;
        if (n == 7)
            inputs.keep.mean_loss = 0;
        for (uint32_t r = 0; n == 0 && r < inputs.ray_count; r += 5)
            inputs.rays[r].last = r % 2 ? -2 : -3; /* not in the loss */
        composite_check_training(&fixture, &inputs, deterministic);
        composite_inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

#define DRAWS       240u
#define PROJECTIONS 8u

/* Sums over draws. */
struct draws {
    double *probabilities; /* [ray], of rays with samples */
    uint32_t *kept;        /* [ray] */
    double correlation[3]; /* of the choice with other random numbers of the ray, normalised */
    double sums[PROJECTIONS], squares[PROJECTIONS];
};

/* Returns the probabilities of rays with a live sample, 0 for others, from losses by the reference.
 */
static double *keep_probabilities(const struct fixture *fixture, const struct inputs *inputs)
{
    double *probabilities = base_alloc(inputs->ray_count, sizeof *probabilities);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        struct outcome one = composite_expect(fixture, &(struct inputs){
                                                           .ray_count = 1,
                                                           .sample_count = inputs->sample_count,
                                                           .step = inputs->step,
                                                           .threshold = inputs->threshold,
                                                           .keep = inputs->keep,
                                                           .rays = inputs->rays + r,
                                                           .results = inputs->results + r,
                                                           .samples = inputs->samples,
                                                           .field = inputs->field,
                                                           .expected = inputs->expected,
                                                       });
        if (one.reached_count > 0)
            probabilities[r] = reference_keep_probability(&fixture->config, &inputs->keep,
                                                          one.loss + one.distortion);
        composite_outcome_destroy(&one);
    }
    return probabilities;
}

/* Adds the gradients of a draw, projected on random signs, and counts kept rays. */
static void add_draw(struct fixture *fixture, const struct inputs *inputs, uint32_t draw,
                     struct draws *draws)
{
    static const uint32_t dimensions[] = {1, 2, 18}; /* pixel, background, jitter */
    double losses[2], sums[PROJECTIONS] = {0};
    struct random signs = {7};
    struct inputs now = *inputs;
    now.step += draw;
    float *gradients = composite_run(fixture, &now, COMPOSITE_ALL, losses);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        bool is_kept = false;
        const struct RayResult *result = &inputs->results[r];
        for (uint32_t s = result->first; s < result->first + result->count; s++) {
            uint32_t bits = random_below(&signs, 1u << 20);
            for (int i = 0; i < 4; i++)
                is_kept = is_kept || gradients[4 * s + i] != 0;
            for (uint32_t i = 0; i < PROJECTIONS; i++)
                sums[i] += (bits >> i & 1 ? 1.0 : -1.0) * gradients[4 * s + i % 4];
        }
        draws->kept[r] += is_kept;
        double p = draws->probabilities[r], unit[3];
        for (uint32_t i = 0; p > 0 && p < 1 && i < BASE_COUNT(dimensions); i++) {
            reference_random_unit(fixture->config.seed, now.step, fixture->config.first_ray + r,
                                  dimensions[i], unit);
            draws->correlation[i] += (is_kept - p) / sqrt(p * (1 - p)) * (unit[0] - 0.5) * sqrt(12);
        }
    }
    for (uint32_t i = 0; i < PROJECTIONS; i++) {
        draws->sums[i] += sums[i];
        draws->squares[i] += sums[i] * sums[i];
    }
    free(gradients);
}

/* Chi-square test of how often each ray is kept, and of the choice's independence. */
static void check_frequencies(const struct inputs *inputs, const struct draws *draws)
{
    double chi_square = 0;
    uint32_t degrees = 0;
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        double p = draws->probabilities[r], expected = DRAWS * p;
        if (p == 1)
            check_equal(draws->kept[r], DRAWS);
        if (p == 0 || p == 1)
            continue;
        chi_square +=
            (draws->kept[r] - expected) * (draws->kept[r] - expected) / (expected * (1 - p));
        degrees++;
    }
    check_that(degrees > 60);
    check_close(chi_square, degrees, 4 * sqrt(2.0 / degrees), degrees, "chi-square", 0);
    for (int i = 0; i < 3; i++)
        check_statistic(draws->correlation[i], 0, 4.5, sqrt((double)degrees * DRAWS), "correlation",
                        i);
}

/* The mean over many steps of the gradients is the gradient of all rays within its standard error.
 */
void composite_test_keep_is_unbiased(struct gpu_device *device)
{
    double losses[2], all[PROJECTIONS] = {0};
    struct fixture fixture = composite_fixture(device, VKN_LOSS_HUBER, true, 1, false);
    struct inputs inputs = composite_inputs_create(&fixture, 150, 191);
    composite_set_keep(&fixture, &inputs, 0.3f);
    composite_set_distortion(&fixture, 0.05f);
    struct draws draws = {
        .probabilities = keep_probabilities(&fixture, &inputs),
        .kept = base_alloc(inputs.ray_count, sizeof *draws.kept),
    };
    for (uint32_t draw = 0; draw < DRAWS; draw++)
        add_draw(&fixture, &inputs, draw, &draws);
    check_frequencies(&inputs, &draws);
    inputs.keep.mean_loss = 0; /* all are kept */
    float *gradients = composite_run(&fixture, &inputs, COMPOSITE_ALL, losses);
    struct random signs = {7};
    for (uint32_t s = 0; s < inputs.sample_count; s++) {
        uint32_t bits = random_below(&signs, 1u << 20);
        for (uint32_t i = 0; i < PROJECTIONS; i++)
            all[i] += (bits >> i & 1 ? 1.0 : -1.0) * gradients[4 * s + i % 4];
    }
    for (uint32_t i = 0; i < PROJECTIONS; i++) {
        double mean = draws.sums[i] / DRAWS;
        double error = sqrt((draws.squares[i] / DRAWS - mean * mean) / (DRAWS - 1));
        check_that(error > 0);
        check_statistic(mean, all[i], 4, error, "mean gradient", i);
    }
    free(gradients);
    free(draws.probabilities);
    free(draws.kept);
    composite_inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}
