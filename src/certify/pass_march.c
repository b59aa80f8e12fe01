/* Tests march_rays and its variants against a march without skipping. */
#include "certify/march.h"

#include "rays/rays.h"

/* ---- training ------------------------------------------------------------------------------ */

static void test_training(struct gpu_device *device)
{
    for (uint32_t n = 0; n < BASE_COUNT(march_scenarios); n++) {
        struct inputs inputs;
        struct fixture fixture = march_fixture(device, &march_scenarios[n], &inputs, 500 + n);
        struct State counts;
        if (n % 2) /* subgroups take several rays */
            fixture.config.group_limit = 3 * n;
        put_rays(&fixture, &inputs);
        run_march(&fixture, &inputs, inputs.shaders->all);
        fixture_get(&fixture, BIND_STATE, &counts, sizeof counts);
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
        struct tally tally = march_check_samples(&fixture, &inputs, results, samples);
        check_that(tally.occupied > 500 && tally.occupied < tally.steps * 0.9);
        if (!(tally.either < tally.steps / 100))
            check_fail("%u: %llu of %llu steps undecided", n, (unsigned long long)tally.either,
                       (unsigned long long)tally.steps);
        uint64_t sum = 0;
        for (uint32_t r = 0; r < inputs.ray_count; r++)
            sum += results[r].count;
        check_equal(counts.sample_count, sum);
        check_poisoned(samples, sum * SAMPLE_WORDS, fixture.config.sample_capacity * SAMPLE_WORDS);
        check_poisoned(results + inputs.ray_count, 0, 10 * sizeof *results / 4);
        march_check_ordered(&fixture, &inputs, results, samples);
        free(results);
        free(samples);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Marches with a capacity of `capacity` samples. Rays whose samples do not all fit have none and
 * are left out of the step. Returns the number of such rays. */
static uint32_t check_capacity(struct fixture *fixture, const struct inputs *inputs,
                               const struct RayResult *whole, uint32_t capacity, bool ordered)
{
    struct State counts;
    uint32_t placed = 0, left_out = 0;
    uint64_t words = fixture->buffers[BIND_SAMPLES].size / 4;
    fixture->config.sample_capacity = capacity;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    if (ordered) {
        march_run_ordered(fixture, inputs);
    } else {
        put_rays(fixture, inputs);
        run_march(fixture, inputs, inputs->shaders->all);
    }
    fixture_get(fixture, BIND_STATE, &counts, sizeof counts);
    struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
    struct Ray *rays = fixture_read(fixture, BIND_RAYS);
    struct Sample *samples = fixture_read(fixture, BIND_SAMPLES);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        bool fits = results[r].first + whole[r].count <= capacity;
        counts.sample_count -= whole[r].count; /* counted whether they fit or not */
        check_equal(results[r].count, fits ? whole[r].count : 0);
        check_that(rays[r].last == (fits ? inputs->rays[r].last : -2));
        for (uint32_t s = 0; s < results[r].count; s++)
            check_equal(samples[results[r].first + s].ray, r);
        placed += results[r].count;
        left_out += whole[r].count - results[r].count > 0;
    }
    check_equal(counts.sample_count, 0);
    check_that(placed <= capacity && (!left_out || placed > capacity - MAX_RAY_SAMPLES));
    check_poisoned(samples, capacity * SAMPLE_WORDS, words);
    free(results);
    free(rays);
    free(samples);
    return left_out;
}

/* Returns where the samples of a ray in the middle end if rays are in order. */
static uint32_t end_in_the_middle(const struct inputs *inputs, const struct RayResult *whole)
{
    uint32_t end = 0, r = 0;
    while (r < inputs->ray_count / 2 || whole[r - 1].count == 0)
        end += whole[r++].count;
    return end;
}

/* Checks capacities of exactly the samples needed, of fewer, and up to the end of a ray; one sample
 * less leaves that ray out. */
static void check_overflow(struct fixture *fixture, const struct inputs *inputs)
{
    struct State counts;
    put_rays(fixture, inputs);
    run_march(fixture, inputs, inputs->shaders->all);
    fixture_get(fixture, BIND_STATE, &counts, sizeof counts);
    struct RayResult *whole = fixture_read(fixture, BIND_RESULTS);
    uint32_t asked = counts.sample_count, end = end_in_the_middle(inputs, whole);
    for (int ordered = 0; ordered < 2; ordered++) {
        check_equal(check_capacity(fixture, inputs, whole, asked, ordered), 0);
        check_equal(check_capacity(fixture, inputs, whole, asked - 1, ordered), 1);
        check_that(check_capacity(fixture, inputs, whole, asked / 2, ordered) > 0);
    }
    uint32_t behind = check_capacity(fixture, inputs, whole, end, true);
    check_equal(check_capacity(fixture, inputs, whole, end - 1, true), behind + 1);
    free(whole);
}

static void test_overflow(struct gpu_device *device)
{
    for (uint32_t samples = 0; samples <= 20; samples += 20) {
        struct inputs inputs;
        struct fixture fixture =
            march_fixture_sampling(device, &march_scenarios[0], samples, &inputs, 510);
        check_overflow(&fixture, &inputs);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* A full grid and steps so short that rays reach the maximum number of samples. */
static void test_cap(struct gpu_device *device)
{
    const struct scenario scenario = {1, 16, 4000, 60, -1, 2, false, 0, 0};
    struct inputs inputs;
    struct fixture fixture = march_fixture(device, &scenario, &inputs, 520);
    uint32_t capped = 0;
    memset(inputs.grid.occupied, 1, 16 * 16 * 16);
    march_put_grid(&fixture, &inputs);
    put_rays(&fixture, &inputs);
    run_march(&fixture, &inputs, inputs.shaders->all);
    struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
    struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
    march_check_samples(&fixture, &inputs, results, samples);
    for (uint32_t r = 0; r < inputs.ray_count; r++)
        capped += results[r].count == MAX_RAY_SAMPLES;
    check_that(capped > 5 && capped < 55);
    march_check_ordered(&fixture, &inputs, results, samples);
    free(results);
    free(samples);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* ---- far away ------------------------------------------------------------------------------ */

/* Makes rays end at 9000 sides of the cube, 18000 times its half side. */
static void extend_rays(struct fixture *fixture, struct inputs *inputs)
{
    fixture->config.far_distance = 9000 * fixture->config.aabb_scale;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    for (uint32_t r = 0; r < inputs->ray_count; r++)
        inputs->rays[r].last =
            (float)reference_steps_to(&inputs->stepping, fixture->config.far_distance);
}

/* Marches and checks all samples. Returns how many are beyond 1000 sides, each ray's at distinct
 * distances. */
static uint32_t check_far(struct fixture *fixture, const struct inputs *inputs)
{
    uint32_t far = 0;
    put_rays(fixture, inputs);
    run_march(fixture, inputs, inputs->shaders->all);
    struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
    struct Sample *samples = fixture_read(fixture, BIND_SAMPLES);
    march_check_samples(fixture, inputs, results, samples);
    for (uint32_t r = 0; r < inputs->ray_count; r++)
        for (uint32_t s = results[r].first; s < results[r].first + results[r].count; s++) {
            check_that(s == results[r].first || samples[s].t > samples[s - 1].t);
            far += samples[s].t > 1000 * fixture->config.aabb_scale;
        }
    free(results);
    free(samples);
    return far;
}

/* Contracted space up to distances that floats cannot resolve; some cells occupied, and all. */
static void test_far_away(struct gpu_device *device)
{
    const struct scenario scenario = {1, 16, 128, 600, 1.0 / 64, 2, true, 0, 0};
    struct inputs inputs;
    struct fixture fixture = march_fixture(device, &scenario, &inputs, 515);
    extend_rays(&fixture, &inputs);
    check_far(&fixture, &inputs);
    memset(inputs.grid.occupied, 1, 2 * 16 * 16 * 16);
    march_put_grid(&fixture, &inputs);
    check_that(check_far(&fixture, &inputs) > 10);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* ---- rendering ----------------------------------------------------------------------------- */

/* Runs one round; returns the number of samples. */
static uint32_t run_round(struct fixture *fixture, const struct inputs *inputs, uint32_t limit)
{
    struct State counts = {.sample_count = 0};
    fixture_put(fixture, BIND_STATE, &counts, sizeof counts);
    fixture_run(fixture, "march_view_rays", (struct Push){.a = limit, .b = inputs->ray_count},
                march_groups(fixture, inputs));
    fixture_get(fixture, BIND_STATE, &counts, sizeof counts);
    return counts.sample_count;
}

/* Rounds of at most 24 samples give the whole march. The capacity is the first round's number of
 * samples, and no later round takes more. */
static void test_view_rounds(struct gpu_device *device)
{
    const uint32_t limit = 24;
    struct inputs inputs;
    struct fixture fixture = march_fixture(device, &march_scenarios[2], &inputs, 530);
    double(*t)[MOST_STEPS] = base_alloc(inputs.ray_count, sizeof *t);
    uint32_t *count = base_alloc(inputs.ray_count, sizeof *count), rounds = 0;
    fixture.config.group_limit = 11;
    put_rays(&fixture, &inputs);
    fixture.config.sample_capacity = run_round(&fixture, &inputs, limit);
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    put_rays(&fixture, &inputs);
    for (; run_round(&fixture, &inputs, limit) > 0; rounds++) {
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
        for (uint32_t r = 0; r < inputs.ray_count; r++) {
            check_that(results[r].count <= limit);
            for (uint32_t s = results[r].first; s < results[r].first + results[r].count; s++) {
                march_check_width(&inputs, &samples[s]);
                t[r][count[r]++] = samples[s].t;
            }
        }
        free(results);
        free(samples);
    }
    struct tally tally = {0};
    for (uint32_t r = 0; r < inputs.ray_count; r++)
        march_check_ray(&inputs, r, t[r], count[r], MOST_STEPS, &tally);
    check_that(rounds > 3);
    free(t);
    free(count);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* ---- counting steps on the host ------------------------------------------------------------ */

/* The host's count of steps equals the march's, up to one step per ray by jitter, zero on average.
 */
static void test_count_steps(struct gpu_device *device)
{
    static enum reference_step steps[MOST_STEPS];
    for (uint32_t n = 0; n < BASE_COUNT(march_scenarios); n++) {
        struct inputs inputs;
        struct fixture fixture = march_fixture(device, &march_scenarios[n], &inputs, 600 + n);
        double difference = 0, all = 0;
        for (uint32_t r = 0; r < inputs.ray_count; r++) {
            const struct Ray *ray = &inputs.rays[r];
            double origin[3], direction[3];
            for (int i = 0; i < 3; i++) {
                origin[i] = ray->origin[i];
                direction[i] = ray->direction[i];
            }
            double length =
                (double)reference_march(&inputs.grid, &inputs.stepping, origin, direction,
                                        ray->step, ray->last, steps, MOST_STEPS);
            double counted =
                rays_count_steps(&fixture.settings, &fixture.config, origin, direction);
            check_statistic(counted, fmin(length, MAX_RAY_SAMPLES), 1, 1.01, "steps of ray", r);
            difference += counted - fmin(length, MAX_RAY_SAMPLES);
            all += counted;
        }
        check_that(all > 1000);
        check_statistic(difference / inputs.ray_count, 0, 1, 4 * 0.29 / sqrt(inputs.ray_count),
                        "mean of steps, scenario", n);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

static const struct certify_test tests[] = {
    TEST(test_count_steps),
    TEST(test_training),
    TEST(test_overflow),
    TEST(test_cap),
    TEST(test_far_away),
    TEST(test_view_rounds),
    TEST_OF(march, test_uniform),
    TEST_OF(march, test_uniform_view),
    TEST_OF(march, test_hierarchical),
    TEST_OF(march, test_draws),
    TEST_OF(march, test_hierarchical_view),
};
const struct certify_part certify_march = {"march", tests, BASE_COUNT(tests)};
