/* Tests sample_proposal and sample_view_proposal against an integral of the proposal's weights, and
 * uniform bins in each spacing. */
#include "certify/coarse.h"

#define ANNEAL_STEPS 1000u

/* Without fine samples (fine = 0) there is one sample in each bin. */
struct shape {
    struct scenario scenario;
    uint32_t bins, fine;
    double near_distance;
};

static struct fixture fixture_shape(struct gpu_device *device, const struct shape *shape,
                                    struct inputs *inputs, uint32_t seed)
{
    const struct scenario *scenario = &shape->scenario;
    struct random random = {seed};
    struct vkn_config settings = {
        .scene = {.aabb_scale = scenario->aabb_scale,
                  .contraction =
                      scenario->contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .march = {.resolution = scenario->resolution,
                  .sampling = shape->fine ? VKN_SAMPLING_PROPOSAL : VKN_SAMPLING_UNIFORM,
                  .spacing = scenario->spacing,
                  .ray_samples = shape->bins,
                  .coarse_samples = shape->bins,
                  .fine_samples = shape->fine,
                  .near_distance = (float)shape->near_distance,
                  .cone_angle = (float)scenario->cone,
                  .steps_per_unit = scenario->steps_per_unit},
        .proposal.anneal_steps = ANNEAL_STEPS,
        .batch = {.samples = 1u << 15, .max_rays = scenario->rays + 10},
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture.local_size = fixture.subgroup_size * scenario->local_size;
    fixture.config.first_ray = 1000 * seed; /* as on a later rank */
    fixture_allocate(&fixture, 1, 1);
    *inputs = (struct inputs){
        .stepping = reference_stepping(&fixture.config, scenario->contracted),
        .rays = base_alloc(scenario->rays, sizeof *inputs->rays),
        .spans = base_alloc(scenario->rays, sizeof *inputs->spans),
        .ray_count = scenario->rays,
        .step = STEP,
    };
    inputs->stepping.spacing = shader_spacings[scenario->spacing];
    for (uint32_t r = 0; r < inputs->ray_count; r++)
        random_ray(&inputs->rays[r], inputs->spans[r], &fixture.config, &inputs->stepping, &random);
    return fixture;
}

/* Drops rays that hardly touch the cube: floats cannot resolve their samples. */
static void drop_short_rays(struct inputs *inputs)
{
    for (uint32_t r = 0; r < inputs->ray_count; r++)
        if (inputs->spans[r][1] - inputs->spans[r][0] < 0.05)
            inputs->rays[r].last = -1;
}

/* ---- weights of a proposal ----------------------------------------------------------------- */

enum { EMPTY, HAZE, WALL, FIRST, LAST, BUMPS, NOT_A_NUMBER, INFINITE, KINDS };

static double wanted_weight(uint32_t kind, uint32_t bin, uint32_t bins, struct random *random)
{
    double haze = random_between(random, 0, 1) / bins, at = (bin + 0.5) / bins;
    switch (kind) {
    case EMPTY:
        return 0;
    case WALL:
        return bin == bins / 3 ? 0.97 : 0;
    case FIRST:
        return bin == 0 ? 0.97 : 0;
    case LAST:
        return bin == bins - 1 ? 0.97 : 0;
    case BUMPS:
        return (0.4 * exp(-0.5 * pow((at - 0.3) / 0.05, 2)) / 0.05 +
                0.5 * exp(-0.5 * pow((at - 0.7) / 0.1, 2)) / 0.1) /
               sqrt(6.2831853) / bins;
    case NOT_A_NUMBER:
        return bin == 2 * bins / 3 ? (double)NAN : haze;
    case INFINITE:
        return bin == bins / 2 ? (double)INFINITY : haze;
    default:
        return haze;
    }
}

static const struct coarse_weights coarse_weights = {KINDS, wanted_weight};

/* Computes each bin's share of the samples in the inputs' step. */
static void shares_of(const struct fixture *fixture, const struct inputs *inputs,
                      const struct coarse *coarse, uint32_t r, double shares[MOST_BINS])
{
    double slope = reference_annealed_slope(inputs->step, ANNEAL_STEPS);
    reference_proposal_shares(coarse->weights[r], fixture->config.ray_samples, slope, shares);
}

/* ---- edges --------------------------------------------------------------------------------- */

/* Returns an edge between samples; a sample is in the middle of its two edges. */
static double edge_of(const struct Sample *on_ray, uint32_t count, uint32_t edge)
{
    return edge < count ? on_ray[edge].t - (double)on_ray[edge].width / 2
                        : on_ray[count - 1].t + (double)on_ray[count - 1].width / 2;
}

/* Rounding error of an edge that is computed from a middle and a width. */
static double edge_rounding(const struct inputs *inputs, uint32_t r, const struct Sample *on_ray,
                            uint32_t count, uint32_t edge)
{
    const struct Sample *sample = &on_ray[edge < count ? edge : count - 1];
    double t = edge_of(on_ray, count, edge);
    return rounding_at(inputs, r, t) + 2.5e-7 * ((double)sample->t + sample->width);
}

/* Returns the CDF of the shares at an edge: in the middle of the edge's stratum, or at random in
 * it. */
static double wanted_cdf(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                         uint32_t number, bool middle)
{
    uint32_t edges = fixture->config.fine_samples + 1;
    double unit[3] = {0.5, 0, 0};
    if (!middle)
        reference_random_unit(fixture->config.seed, inputs->step,
                              (fixture->config.first_ray + r) * edges + number, 33, unit);
    return (number + unit[0]) / edges;
}

/* The edges of samples from number `begin` on agree with the reference, whose shares come from the
 * device's rounded weights. */
static void check_edges(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                        const double *shares, const struct Sample *on_ray, uint32_t begin,
                        uint32_t count, bool middle)
{
    uint32_t bins = fixture->config.ray_samples;
    for (uint32_t i = 0; i <= count && count > 0; i++) {
        double t = edge_of(on_ray, count, i), around = edge_rounding(inputs, r, on_ray, count, i);
        double low =
            reference_proposal_cdf(shares, bins, bin_position(fixture, inputs, r, t - around));
        double high =
            reference_proposal_cdf(shares, bins, bin_position(fixture, inputs, r, t + around));
        double wanted = wanted_cdf(fixture, inputs, r, begin + i, middle);
        if (!(wanted > low - 1e-5 && wanted < high + 1e-5))
            check_fail("ray %u, kind %u: edge %u at %.9g to %.9g of the shares, not %.9g", r,
                       r % KINDS, begin + i, low, high, wanted);
    }
}

/* Samples of a ray are contiguous, in increasing order and inside the cube. */
static void check_chain(const struct inputs *inputs, uint32_t r, const struct Sample *on_ray,
                        uint32_t count)
{
    const double *span = inputs->spans[r];
    double first = edge_of(on_ray, count, 0), last = edge_of(on_ray, count, count);
    check_that(first > span[0] - edge_rounding(inputs, r, on_ray, count, 0));
    check_that(last < span[1] + edge_rounding(inputs, r, on_ray, count, count));
    for (uint32_t i = 0; i < count; i++) {
        check_equal(on_ray[i].ray, r);
        check_that(on_ray[i].width > 0 && isfinite(on_ray[i].t));
        if (i == 0)
            continue;
        double end = on_ray[i - 1].t + (double)on_ray[i - 1].width / 2;
        check_that(on_ray[i].t > on_ray[i - 1].t);
        check_close(edge_of(on_ray, count, i), end, 2.5e-7, end + on_ray[i].t,
                    "begin of a sample of ray", r);
    }
}

/* ---- training ------------------------------------------------------------------------------ */

/* Every ray with samples of the proposal has all its own samples, in the same order of rays; other
 * rays have none. */
static void check_training(struct fixture *fixture, const struct inputs *inputs,
                           const struct coarse *coarse)
{
    static double shares[MOST_BINS];
    uint32_t bins = fixture->config.ray_samples, fine = fixture->config.fine_samples, total = 0;
    struct State after;
    put_rays(fixture, inputs);
    run_march(fixture, inputs, "sample_proposal");
    fixture_get(fixture, BIND_STATE, &after, sizeof after);
    struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
    struct Sample *samples = fixture_read(fixture, BIND_SAMPLES);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        check_equal(results[r].count, inputs->rays[r].last >= 0 ? fine : 0);
        if (results[r].count == 0)
            continue;
        check_equal(results[r].first, coarse->found[r].first / bins * fine);
        const struct Sample *on_ray = &samples[results[r].first];
        shares_of(fixture, inputs, coarse, r, shares);
        check_edges(fixture, inputs, r, shares, on_ray, 0, fine, false);
        check_chain(inputs, r, on_ray, fine);
        total += fine;
    }
    check_that(total > fine * inputs->ray_count / 3);
    check_equal(after.sample_count, total);
    check_poisoned(results + inputs->ray_count, 0, 10 * sizeof *results / 4);
    check_poisoned(samples, total * SAMPLE_WORDS, fixture->config.sample_capacity * SAMPLE_WORDS);
    free(results);
    free(samples);
}

static void test_training(struct gpu_device *device)
{
    static const struct shape shapes[] = {
        {{1, 16, 512, 120, -1, 8, false, 0, VKN_SPACING_STEPS}, 64, 24, 0.1},
        {{1, 16, 256, 119, 1.0 / 128, 1, false, 0, VKN_SPACING_LINEAR}, 7, 1, 0.05},
        {{1, 16, 256, 125, 1.0 / 64, 4, true, 0, VKN_SPACING_DISPARITY}, 256, 48, 0.1},
        {{4, 16, 256, 117, 1.0 / 256, 2, false, 0, VKN_SPACING_LOG}, 33, 200, 0.01},
        {{2, 16, 256, 131, 1.0 / 64, 3, true, 0, VKN_SPACING_STEPS}, 101, 47, 0.1},
    };
    static const uint32_t steps[] = {1, ANNEAL_STEPS / 2, 5 * ANNEAL_STEPS};
    for (uint32_t n = 0; n < BASE_COUNT(shapes); n++) {
        struct inputs inputs;
        struct fixture fixture = fixture_shape(device, &shapes[n], &inputs, 900 + n);
        drop_short_rays(&inputs);
        for (uint32_t r = 0; r < inputs.ray_count; r += 9)
            inputs.rays[r].last = -3; /* the pixel is masked */
        if (n % 2)                    /* subgroups take several rays */
            fixture.config.group_limit = 3 * n;
        struct coarse coarse = coarse_of(&fixture, &inputs, "sample_uniform", &coarse_weights, -1);
        for (uint32_t k = 0; k < BASE_COUNT(steps); k++) {
            inputs.step = steps[k];
            check_training(&fixture, &inputs, &coarse);
        }
        coarse_destroy(&coarse);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* ---- draws --------------------------------------------------------------------------------- */

#define DRAWN_BINS 64u
#define CLASSES    (4 * DRAWN_BINS)

/* Pearson's test: edges fall into quarters of bins in proportion to the shares. The limit is
 * exceeded at most once in a million runs (Wilson and Hilferty's approximation); strata make it
 * rarer. */
static void check_draws(struct fixture *fixture, const struct inputs *inputs,
                        const struct coarse *coarse)
{
    static double shares[MOST_BINS];
    double limit = CLASSES * pow(1 - 2.0 / 9 / CLASSES + 4.7534 * sqrt(2.0 / 9 / CLASSES), 3);
    double expected[CLASSES] = {0}, drawn[CLASSES] = {0}, chi = 0, all = 0;
    uint32_t edges = fixture->config.fine_samples + 1;
    put_rays(fixture, inputs);
    run_march(fixture, inputs, "sample_proposal");
    struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
    struct Sample *samples = fixture_read(fixture, BIND_SAMPLES);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        const struct Sample *on_ray = &samples[results[r].first];
        for (uint32_t i = 0; i < edges && results[r].count > 0; i++) {
            double position = bin_position(fixture, inputs, r, edge_of(on_ray, edges - 1, i));
            drawn[(uint32_t)fmin(fmax(4 * position, 0), CLASSES - 1)]++;
        }
        shares_of(fixture, inputs, coarse, r, shares);
        for (uint32_t c = 0; c < CLASSES && results[r].count > 0; c++)
            expected[c] += edges * (reference_proposal_cdf(shares, DRAWN_BINS, (c + 1) / 4.0) -
                                    reference_proposal_cdf(shares, DRAWN_BINS, c / 4.0));
        all += results[r].count > 0 ? edges : 0;
    }
    check_that(all > 2e4);
    for (uint32_t c = 0; c < CLASSES; c++) {
        double wanted = inputs->step == 0 ? all / CLASSES : expected[c]; /* at first: uniform */
        chi += pow(drawn[c] - wanted, 2) / wanted;
    }
    if (!(chi < limit))
        check_fail("step %u: chi square %g, at most %g", inputs->step, chi, limit);
    free(results);
    free(samples);
}

static void test_draws(struct gpu_device *device)
{
    const struct shape shape = {
        {1, 16, 512, 1300, -1, 8, false, 0, VKN_SPACING_STEPS}, DRAWN_BINS, 24, 0.1};
    static const uint32_t steps[] = {0, 20, 2 * ANNEAL_STEPS};
    for (int kind = WALL; kind <= BUMPS; kind += BUMPS - WALL) {
        struct inputs inputs;
        struct fixture fixture = fixture_shape(device, &shape, &inputs, 920);
        drop_short_rays(&inputs);
        struct coarse coarse =
            coarse_of(&fixture, &inputs, "sample_uniform", &coarse_weights, kind);
        for (uint32_t k = 0; k < BASE_COUNT(steps); k++) {
            inputs.step = steps[k];
            check_draws(&fixture, &inputs, &coarse);
        }
        coarse_destroy(&coarse);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* ---- pictures ------------------------------------------------------------------------------ */

/* Checks samples from number `begin` on in one round, of rays that go on; returns their number. */
static uint32_t check_round(struct fixture *fixture, const struct inputs *inputs,
                            const struct coarse *coarse, uint32_t begin, uint32_t limit)
{
    static double shares[MOST_BINS];
    uint32_t total = 0, fine = fixture->config.fine_samples;
    uint32_t left = begin < fine ? fine - begin : 0;
    put_rays(fixture, inputs);
    fixture_run(fixture, "sample_view_proposal",
                (struct Push){.a = limit, .b = inputs->ray_count, .c = begin},
                march_groups(fixture, inputs));
    struct State after;
    fixture_get(fixture, BIND_STATE, &after, sizeof after);
    struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
    struct Sample *samples = fixture_read(fixture, BIND_SAMPLES);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        uint32_t count = left < limit ? left : limit;
        check_equal(results[r].count, inputs->rays[r].last >= 0 ? count : 0);
        if (results[r].count == 0)
            continue;
        const struct Sample *on_ray = &samples[results[r].first];
        shares_of(fixture, inputs, coarse, r, shares);
        check_edges(fixture, inputs, r, shares, on_ray, begin, count, true);
        check_chain(inputs, r, on_ray, count);
        total += count;
    }
    check_equal(after.sample_count, total);
    check_poisoned(samples, total * SAMPLE_WORDS, fixture->config.sample_capacity * SAMPLE_WORDS);
    free(results);
    free(samples);
    return total;
}

/* Round by round, samples between the middles of all strata; a ray that has ended gets no more. */
static void test_view(struct gpu_device *device)
{
    const uint32_t limit = 16;
    const struct shape shape = {
        {2, 16, 256, 120, 1.0 / 64, 4, true, 0, VKN_SPACING_STEPS}, 50, 43, 0.1};
    struct inputs inputs;
    struct fixture fixture = fixture_shape(device, &shape, &inputs, 930);
    struct coarse coarse = coarse_of(&fixture, &inputs, "sample_view_uniform", &coarse_weights, -1);
    inputs.step = ANNEAL_STEPS / 2;
    for (uint32_t begin = 0; begin < shape.fine + limit; begin += limit) {
        uint32_t sampled = check_round(&fixture, &inputs, &coarse, begin, limit);
        check_that((sampled > 0) == (begin < shape.fine));
        for (uint32_t r = 0; r < inputs.ray_count; r += 3)
            inputs.rays[r].last = -1; /* the mark that composite_view sets */
    }
    coarse_destroy(&coarse);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* ---- spacing ------------------------------------------------------------------------------- */

/* A ray's bins are contiguous, and of equal length in the spacing. */
static void check_spacing(struct fixture *fixture, const struct inputs *inputs)
{
    uint32_t bins = fixture->config.ray_samples, rays = 0;
    put_rays(fixture, inputs);
    run_march(fixture, inputs, "sample_uniform");
    struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
    struct Sample *samples = fixture_read(fixture, BIND_SAMPLES);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        const struct Sample *on_ray = &samples[results[r].first];
        const double *span = inputs->spans[r];
        double covered = 0;
        check_equal(results[r].count, inputs->rays[r].last >= 0 ? bins : 0);
        for (uint32_t bin = 0; bin < results[r].count; bin++) {
            check_bin(fixture, inputs, r, bin, bin_jitter(fixture, inputs, r, bin), &on_ray[bin]);
            check_that(on_ray[bin].width > 0 && on_ray[bin].t > (bin > 0 ? on_ray[bin - 1].t : 0));
            covered += on_ray[bin].width;
        }
        if (results[r].count > 0)
            check_close(covered, span[1] - span[0], 3, rounding_at(inputs, r, span[1]),
                        "length of ray", r);
        rays += results[r].count > 0;
    }
    check_that(rays > inputs->ray_count / 3);
    free(results);
    free(samples);
}

/* Rays start at the near distance, inside a cube or outside, or 20 sides away from it. */
static void test_spacing(struct gpu_device *device)
{
    static const struct shape shapes[] = {
        {{1, 16, 512, 90, 1.0 / 64, 8, true, 0, 0}, 64, 0, 0.1},
        {{2, 16, 256, 91, 1.0 / 256, 2, true, 0, 0}, 200, 0, 1e-3},
        {{4, 16, 256, 92, 1.0 / 64, 4, false, 0, 0}, 33, 0, 0.05},
        {{1, 16, 4096, 93, -1, 4, false, 0, 0}, 64, 0, 1e-3},
    };
    static const enum vkn_spacing spacings[] = {VKN_SPACING_STEPS, VKN_SPACING_LINEAR,
                                                VKN_SPACING_DISPARITY, VKN_SPACING_LOG};
    for (uint32_t n = 0; n < BASE_COUNT(spacings) * BASE_COUNT(shapes); n++) {
        struct inputs inputs;
        struct shape shape = shapes[n % BASE_COUNT(shapes)];
        shape.scenario.spacing = spacings[n / BASE_COUNT(shapes)];
        struct fixture fixture = fixture_shape(device, &shape, &inputs, 940 + n);
        if (n % BASE_COUNT(shapes) == 3)
            move_rays_back(&inputs, &fixture.config);
        drop_short_rays(&inputs);
        check_spacing(&fixture, &inputs);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

static const struct certify_test tests[] = {
    TEST(test_spacing),
    TEST(test_training),
    TEST(test_draws),
    TEST(test_view),
};
const struct certify_part certify_proposal = {"proposal", tests, BASE_COUNT(tests)};
