/* Tests sample_uniform against bins computed one by one, and sample_fine against an integral. */
#include "certify/march.h"

/* ---- uniform samples ----------------------------------------------------------------------- */

/* Every ray that meets the cube, and whose pixel is not masked, has one sample in each of its
 * contiguous bins. Returns the number of samples. */
static uint32_t check_uniform(struct fixture *fixture, const struct inputs *inputs,
                              const struct RayResult *results, const struct Sample *samples)
{
    uint32_t total = 0, count = fixture->config.ray_samples;
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        const struct Sample *on_ray = &samples[results[r].first];
        const double *span = inputs->spans[r];
        double covered = 0;
        check_equal(results[r].count, inputs->rays[r].last >= 0 ? count : 0);
        for (uint32_t bin = 0; bin < results[r].count; bin++) {
            check_bin(fixture, inputs, r, bin, bin_jitter(fixture, inputs, r, bin), &on_ray[bin]);
            check_that(bin == 0 || on_ray[bin].t > on_ray[bin - 1].t);
            covered += on_ray[bin].width;
        }
        if (results[r].count > 0)
            check_close(covered, span[1] - span[0], 3, rounding_at(inputs, r, span[1]),
                        "length of ray", r);
        total += results[r].count;
    }
    return total;
}

void march_test_uniform(struct gpu_device *device)
{
    static const uint32_t counts[] = {100, 1, 48, 192, 64, 100, 7};
    for (uint32_t n = 0; n < BASE_COUNT(counts); n++) {
        struct inputs inputs;
        struct fixture fixture =
            march_fixture_sampling(device, &march_scenarios[n], counts[n], &inputs, 540 + n);
        struct State after;
        for (uint32_t r = 0; r < inputs.ray_count; r += 9)
            inputs.rays[r].last = -3; /* the pixel is masked */
        if (n % 2)
            fixture.config.group_limit = 3 * n;
        fixture_poison(&fixture, BIND_OCCUPANCY_BITS); /* uniform sampling must not read it */
        put_rays(&fixture, &inputs);
        run_march(&fixture, &inputs, inputs.shaders->all);
        fixture_get(&fixture, BIND_STATE, &after, sizeof after);
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
        uint32_t total = check_uniform(&fixture, &inputs, results, samples);
        check_that(total > 0 && total < inputs.ray_count * counts[n]);
        check_equal(after.sample_count, total);
        check_poisoned(samples, total * SAMPLE_WORDS,
                       fixture.config.sample_capacity * SAMPLE_WORDS);
        march_check_ordered(&fixture, &inputs, results, samples);
        free(results);
        free(samples);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Round by round, samples in the middle of the same bins; a ray that has ended gets no more. */
void march_test_uniform_view(struct gpu_device *device)
{
    const uint32_t limit = 24, count = 100;
    struct inputs inputs;
    struct fixture fixture =
        march_fixture_sampling(device, &march_scenarios[5], count, &inputs, 550);
    put_rays(&fixture, &inputs);
    for (uint32_t begin = 0; begin < 2 * count; begin += limit) {
        struct State counts = {.sample_count = 0};
        uint32_t left = begin < count ? count - begin : 0, total = 0;
        fixture_put(&fixture, BIND_STATE, &counts, sizeof counts);
        fixture_run(&fixture, "sample_view_uniform",
                    (struct Push){.a = limit, .b = inputs.ray_count, .c = begin},
                    march_groups(&fixture, &inputs));
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
        for (uint32_t r = 0; r < inputs.ray_count; r++) {
            bool goes_on = inputs.rays[r].last >= 0;
            check_equal(results[r].count, !goes_on ? 0 : left < limit ? left : limit);
            for (uint32_t i = 0; i < results[r].count; i++)
                check_bin(&fixture, &inputs, r, begin + i, 0.5, &samples[results[r].first + i]);
            total += results[r].count;
        }
        fixture_get(&fixture, BIND_STATE, &counts, sizeof counts);
        check_equal(counts.sample_count, total);
        check_that((total > 0) == (begin < count));
        free(results);
        free(samples);
        for (uint32_t r = 0; r < inputs.ray_count; r += 3)
            inputs.rays[r].last = -1; /* the mark that composite_view sets */
        fixture_put(&fixture, BIND_RAYS, inputs.rays, inputs.ray_count * sizeof *inputs.rays);
    }
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* ---- hierarchical samples ------------------------------------------------------------------ */

#define KINDS 5u /* of rays, by their coarse weights */
#define TINY  4u

/* Returns a bin's weight in a kind of ray; some transmittance remains at the end. */
static double wanted_weight(uint32_t kind, uint32_t bin, uint32_t bins, struct random *random)
{
    double at = (bin + 0.5) / bins;
    switch (kind) {
    case 0: /* empty */
        return 0;
    case 1:
        return random_between(random, 0, 1) / bins;
    case 2: /* a thin wall */
        return bin == bins / 3 ? 0.97 : 0;
    case TINY: /* rounding errors of a transmittance of 1 */
        return random_between(random, 0, 2e-7);
    default:
        return (0.4 * exp(-0.5 * pow((at - 0.3) / 0.05, 2)) / 0.05 +
                0.5 * exp(-0.5 * pow((at - 0.7) / 0.1, 2)) / 0.1) /
               sqrt(6.2831853) / bins;
    }
}

static const struct coarse_weights coarse_weights = {KINDS, wanted_weight};

/* Lists the positions, in bins, where all samples of a ray belong, in order. */
static void list_positions(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                           const double *weights, bool middle, double positions[MAX_RAY_SAMPLES])
{
    uint32_t bins = fixture->config.ray_samples, fine = fixture->config.fine_samples;
    for (uint32_t i = 0; i < bins; i++)
        positions[i] = i + (middle ? 0.5 : bin_jitter(fixture, inputs, r, i));
    for (uint32_t i = 0; i < fine; i++) {
        double unit[3] = {0.5, 0, 0};
        if (!middle)
            reference_random_unit(fixture->config.seed, STEP, r * fine + i, 33, unit);
        positions[bins + i] = reference_coarse_quantile(weights, bins, (i + unit[0]) / fine);
    }
    qsort(positions, bins + fine, sizeof *positions, compare_doubles);
}

/* Checks samples from number `begin` of a ray on against the reference. Coarse samples are exact;
 * fine ones depend on rounding of summed shares. Tiny weights are rounding errors themselves. */
static void check_positions(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                            const double *weights, const double *positions,
                            const struct Sample *on_ray, uint32_t begin, uint32_t count)
{
    uint32_t bins = fixture->config.ray_samples;
    double slack = r % KINDS == TINY ? 0.01 : 1e-5;
    for (uint32_t i = 0; i < count; i++) {
        double t = on_ray[i].t, position = bin_position(fixture, inputs, r, t);
        double blur = bin_position(fixture, inputs, r, t + rounding_at(inputs, r, t)) - position;
        double low = reference_coarse_cdf(weights, bins, positions[begin + i] - blur);
        double high = reference_coarse_cdf(weights, bins, positions[begin + i] + blur);
        double cdf = reference_coarse_cdf(weights, bins, position);
        check_equal(on_ray[i].ray, r);
        if (!(cdf > low - slack && cdf < high + slack))
            check_fail("ray %u: sample %u at %g of the shares, not %g to %g", r, begin + i, cdf,
                       low, high);
    }
}

/* Distances increase, and each sample's width reaches half-way to its neighbours. */
static void check_order(const struct inputs *inputs, uint32_t r, const struct Sample *on_ray,
                        uint32_t count)
{
    const double *span = inputs->spans[r];
    for (uint32_t i = 0; i < count; i++) {
        double low = i > 0 ? (on_ray[i - 1].t + (double)on_ray[i].t) / 2 : span[0];
        double high = i + 1 < count ? (on_ray[i].t + (double)on_ray[i + 1].t) / 2 : span[1];
        check_that(i == 0 || on_ray[i].t > on_ray[i - 1].t);
        check_that(on_ray[i].width >= 0);
        check_close(on_ray[i].width, high - low, 1, rounding_at(inputs, r, high),
                    "width of a sample of ray", r);
    }
}

/* Every ray with coarse samples has these and the fine ones, in the order of the coarse samples. */
void march_test_hierarchical(struct gpu_device *device)
{
    static const uint32_t counts[][2] = {{64, 128},  {1, 7},    {20, 33}, {256, 512},
                                         {256, 512}, {50, 100}, {64, 1}};
    static const enum vkn_spacing spacings[BASE_COUNT(counts)] = {
        [2] = VKN_SPACING_LINEAR, [3] = VKN_SPACING_LOG, [5] = VKN_SPACING_DISPARITY};
    static double positions[MAX_RAY_SAMPLES];
    for (uint32_t n = 0; n < BASE_COUNT(counts); n++) {
        struct inputs inputs;
        struct scenario scenario = march_scenarios[n];
        scenario.rays = 100 + 3 * n;
        scenario.spacing = spacings[n];
        struct fixture fixture = march_fixture_hierarchical(device, &scenario, counts[n][0],
                                                            counts[n][1], &inputs, 560 + n);
        if (n == 4)
            move_rays_back(&inputs, &fixture.config);
        uint32_t count = counts[n][0] + counts[n][1], total = 0;
        struct State after;
        for (uint32_t r = 0; r < inputs.ray_count; r += 9)
            inputs.rays[r].last = -3; /* the pixel is masked */
        if (n % 2)
            fixture.config.group_limit = 3 * n;
        struct coarse coarse = coarse_of(&fixture, &inputs, "sample_uniform", &coarse_weights, -1);
        put_rays(&fixture, &inputs);
        run_march(&fixture, &inputs, "sample_fine");
        fixture_get(&fixture, BIND_STATE, &after, sizeof after);
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
        for (uint32_t r = 0; r < inputs.ray_count; r++) {
            check_equal(results[r].count, inputs.rays[r].last >= 0 ? count : 0);
            if (results[r].count == 0)
                continue;
            check_equal(results[r].first, coarse.found[r].first / counts[n][0] * count);
            const struct Sample *on_ray = &samples[results[r].first];
            list_positions(&fixture, &inputs, r, coarse.weights[r], false, positions);
            check_positions(&fixture, &inputs, r, coarse.weights[r], positions, on_ray, 0, count);
            check_order(&inputs, r, on_ray, count);
            total += count;
        }
        check_that(total > 0);
        check_equal(after.sample_count, total);
        check_poisoned(samples, total * SAMPLE_WORDS,
                       fixture.config.sample_capacity * SAMPLE_WORDS);
        free(results);
        free(samples);
        coarse_destroy(&coarse);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Pearson's test: 10^5 draws fall into quarters of bins in proportion to the weights. The limit is
 * exceeded once in a thousand runs (Wilson and Hilferty's approximation). */
void march_test_draws(struct gpu_device *device)
{
    enum { BINS = 64, CLASSES = 4 * BINS };
    struct scenario scenario = march_scenarios[0];
    struct inputs inputs;
    double limit = CLASSES * pow(1 - 2.0 / 9 / CLASSES + 3.0902 * sqrt(2.0 / 9 / CLASSES), 3);
    scenario.rays = 1300;
    for (int kind = 0; kind < 4; kind += 3) {
        struct fixture fixture =
            march_fixture_hierarchical(device, &scenario, BINS, 128, &inputs, 570);
        struct coarse coarse =
            coarse_of(&fixture, &inputs, "sample_uniform", &coarse_weights, kind);
        double expected[CLASSES] = {0}, drawn[CLASSES] = {0}, all = 0, chi = 0;
        put_rays(&fixture, &inputs);
        run_march(&fixture, &inputs, "sample_fine");
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
        for (uint32_t r = 0; r < inputs.ray_count; r++) {
            const double *weights = coarse.weights[r];
            for (uint32_t i = 0; i < results[r].count; i++) {
                double position =
                    bin_position(&fixture, &inputs, r, samples[results[r].first + i].t);
                drawn[(uint32_t)fmin(fmax(4 * position, 0), CLASSES - 1)]++;
            }
            for (uint32_t c = 0; c < CLASSES && results[r].count > 0; c++)
                expected[c] += 128 * (reference_coarse_cdf(weights, BINS, (c + 1) / 4.0) -
                                      reference_coarse_cdf(weights, BINS, c / 4.0));
            for (uint32_t i = 0; i < BINS && results[r].count > 0; i++)
                drawn[(uint32_t)(4 * (i + bin_jitter(&fixture, &inputs, r, i)))]--; /* not a draw */
            all += results[r].count > 0 ? 128 : 0;
        }
        check_that(all > 1e5);
        for (uint32_t c = 0; c < CLASSES; c++)
            chi += pow(drawn[c] - expected[c], 2) / expected[c];
        if (!(chi < limit))
            check_fail("kind %d: chi square %g, at most %g", kind, chi, limit);
        free(results);
        free(samples);
        coarse_destroy(&coarse);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Round by round, samples in the middle of all strata; a ray that has ended gets no more. */
void march_test_hierarchical_view(struct gpu_device *device)
{
    const uint32_t limit = 64, count = 150;
    static double positions[MAX_RAY_SAMPLES];
    struct inputs inputs;
    struct scenario scenario = march_scenarios[5];
    scenario.rays = 120;
    struct fixture fixture = march_fixture_hierarchical(device, &scenario, 50, 100, &inputs, 580);
    struct coarse coarse = coarse_of(&fixture, &inputs, "sample_view_uniform", &coarse_weights, -1);
    put_rays(&fixture, &inputs);
    for (uint32_t begin = 0; begin < count + limit; begin += limit) {
        struct State counts = {.sample_count = 0};
        uint32_t left = begin < count ? count - begin : 0, total = 0;
        fixture_put(&fixture, BIND_STATE, &counts, sizeof counts);
        fixture_run(&fixture, "sample_view_fine",
                    (struct Push){.a = limit, .b = inputs.ray_count, .c = begin},
                    march_groups(&fixture, &inputs));
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
        for (uint32_t r = 0; r < inputs.ray_count; r++) {
            bool goes_on = inputs.rays[r].last >= 0;
            check_equal(results[r].count, !goes_on ? 0 : left < limit ? left : limit);
            list_positions(&fixture, &inputs, r, coarse.weights[r], true, positions);
            check_positions(&fixture, &inputs, r, coarse.weights[r], positions,
                            &samples[results[r].first], begin, results[r].count);
            total += results[r].count;
        }
        fixture_get(&fixture, BIND_STATE, &counts, sizeof counts);
        check_equal(counts.sample_count, total);
        free(results);
        free(samples);
        for (uint32_t r = 0; r < inputs.ray_count; r += 3)
            inputs.rays[r].last = -1; /* the mark that composite_view sets */
        fixture_put(&fixture, BIND_RAYS, inputs.rays, inputs.ray_count * sizeof *inputs.rays);
    }
    coarse_destroy(&coarse);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}
