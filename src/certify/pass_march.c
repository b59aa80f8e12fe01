/* Tests march_rays and its variants against a march without skipping, sample_uniform against bins
 * computed one by one, and sample_fine against an integral. */
#include "certify/coarse.h"

#include "rays/rays.h"

#define MOST_STEPS 8192u

static const struct march_shaders marching = {"march_rays", "march_rays_count", "march_rays_write"};
static const struct march_shaders uniform = {"sample_uniform", "sample_uniform_count",
                                             "sample_uniform_write"};

static const struct scenario scenarios[] = {
    {1, 32, 512, 500, -1, 8, false, 0, 0},        {1, 16, 256, 257, 1.0 / 128, 1, false, 0, 0},
    {4, 32, 256, 333, 1.0 / 256, 4, false, 0, 0}, {8, 16, 512, 200, 1.0 / 16, 2, false, 0, 0},
    {2, 32, 300, 100, -1, 3, false, 0, 0},        {2, 32, 256, 400, 1.0 / 64, 4, true, 0, 0},
    {1, 16, 128, 300, 1.0 / 256, 2, true, 0, 0},  {2, 16, 256, 300, 1.0 / 128, 4, false, 3, 0},
};

static uint32_t cells_of(const struct reference_grid *grid)
{
    return grid->resolution * grid->resolution * grid->resolution * grid->cascades;
}

/* Fills a third of the blocks, and there a fifth of the cells; differently in each time bin. */
static void random_grid(struct inputs *inputs, const struct fixture *fixture, struct random *random)
{
    const struct reference_space space = reference_space(&fixture->settings);
    uint32_t resolution = fixture->constants.values[SPEC_RESOLUTION],
             cascades = fixture->constants.values[SPEC_CASCADES];
    uint32_t cells = resolution * resolution * resolution * cascades;
    float *values = base_alloc(cells, sizeof *values);
    bool *occupied = base_alloc((size_t)inputs->time_bins * cells, sizeof *occupied);
    for (uint32_t time_bin = 0; time_bin < inputs->time_bins; time_bin++) {
        for (uint32_t block = 0; block < cells / 512; block++) {
            bool used = random_below(random, 3) == 0;
            for (uint32_t i = 512 * block; i < 512 * block + 512; i++)
                values[i] = used && random_below(random, 5) == 0 ? 1 : 0;
        }
        inputs->grid = reference_grid(&space, resolution, cascades, values, 0.5);
        memcpy(occupied + (size_t)time_bin * cells, inputs->grid.occupied,
               cells * sizeof *occupied);
        free(inputs->grid.occupied);
    }
    inputs->grid.occupied = occupied;
    free(values);
}

static void put_grid(struct fixture *fixture, const struct inputs *inputs)
{
    const struct reference_grid *grid = &inputs->grid;
    uint32_t words = inputs->time_bins * reference_grid_words(grid);
    uint32_t cells = inputs->time_bins * cells_of(grid);
    uint32_t *bits = base_alloc(words, sizeof *bits);
    for (uint32_t i = 0; i < cells; i++) {
        bits[i / 32] |= (uint32_t)grid->occupied[i] << (i % 32);
        /* A block's word is not zero if any of its cells is occupied. */
        bits[cells / 32 + i / 512] |= (uint32_t)grid->occupied[i] << (i % 32);
    }
    fixture_put(fixture, BIND_OCCUPANCY_BITS, bits, 4ull * words);
    free(bits);
}

/* Makes a fixture with `samples` per ray in bins, and `fine` more for hierarchical sampling. */
static struct fixture fixture_hierarchical(struct gpu_device *device,
                                           const struct scenario *scenario, uint32_t samples,
                                           uint32_t fine, struct inputs *inputs, uint32_t seed)
{
    struct random random = {seed};
    struct vkn_config settings = {
        .model = scenario->time_bins ? VKN_MODEL_DYNAMIC : VKN_MODEL_DEFAULT,
        .dynamic.time_bins = scenario->time_bins,
        .scene = {.aabb_scale = scenario->aabb_scale,
                  .contraction =
                      scenario->contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .march = {.resolution = scenario->resolution,
                  .sampling = fine      ? VKN_SAMPLING_HIERARCHICAL
                              : samples ? VKN_SAMPLING_UNIFORM
                                        : VKN_SAMPLING_OCCUPANCY,
                  .spacing = scenario->spacing,
                  .ray_samples = samples,
                  .coarse_samples = samples,
                  .fine_samples = fine,
                  .cone_angle = (float)scenario->cone,
                  .steps_per_unit = scenario->steps_per_unit},
        /* Every buffer is allocated for so many samples, and each page costs time. */
        .batch = {.samples = scenario->rays > 1000 ? 1u << 16 : 1u << 15,
                  .max_rays = scenario->rays + 10},
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture.local_size = fixture.subgroup_size * scenario->local_size;
    fixture_allocate(&fixture, 1, 1);
    inputs->stepping = reference_stepping(&fixture.config, scenario->contracted);
    inputs->stepping.spacing = shader_spacings[scenario->spacing];
    inputs->time_bins = scenario->time_bins ? scenario->time_bins : 1;
    inputs->ray_count = scenario->rays;
    inputs->step = STEP;
    inputs->shaders = samples ? &uniform : &marching;
    inputs->rays = base_alloc(scenario->rays, sizeof *inputs->rays);
    inputs->spans = base_alloc(scenario->rays, sizeof *inputs->spans);
    random_grid(inputs, &fixture, &random);
    for (uint32_t r = 0; r < scenario->rays; r++) {
        random_ray(&inputs->rays[r], inputs->spans[r], &fixture.config, &inputs->stepping, &random);
        if (scenario->time_bins) /* includes the first and the last time */
            inputs->rays[r].time = fminf((float)(r % 64) / 62, 1);
    }
    put_grid(&fixture, inputs);
    return fixture;
}

/* Makes a fixture with `samples` per ray for uniform sampling; 0: samples by the occupancy grid. */
static struct fixture fixture_sampling(struct gpu_device *device, const struct scenario *scenario,
                                       uint32_t samples, struct inputs *inputs, uint32_t seed)
{
    return fixture_hierarchical(device, scenario, samples, 0, inputs, seed);
}

static struct fixture fixture_of(struct gpu_device *device, const struct scenario *scenario,
                                 struct inputs *inputs, uint32_t seed)
{
    return fixture_sampling(device, scenario, 0, inputs, seed);
}

/* ---- comparison ---------------------------------------------------------------------------- */

struct tally {
    uint64_t steps, either, occupied;
};

/* Checks that the `count` samples at distances `t` are the first occupied steps, at most `most`. */
static void check_ray(const struct inputs *inputs, uint32_t r, const double *t, uint32_t count,
                      uint32_t most, struct tally *tally)
{
    static enum reference_step steps[MOST_STEPS];
    const struct Ray *ray = &inputs->rays[r];
    double origin[3], direction[3];
    for (int i = 0; i < 3; i++) {
        origin[i] = ray->origin[i];
        direction[i] = ray->direction[i];
    }
    struct reference_grid grid = inputs->grid;
    if (inputs->time_bins > 1)
        grid.occupied += cells_of(&grid) * (uint32_t)fmin(ray->time * (float)inputs->time_bins,
                                                          inputs->time_bins - 1);
    size_t length = reference_march(&grid, &inputs->stepping, origin, direction, ray->step,
                                    ray->last, steps, MOST_STEPS);
    check_that(length < MOST_STEPS && count <= most);
    size_t next = 0;
    for (uint32_t s = 0; s < count; s++) {
        double exact = reference_steps_to(&inputs->stepping, t[s]) - ray->step;
        size_t step = (size_t)fmax(round(exact), 0);
        check_close(exact, (double)step, 0.02, 1, "step of a sample of ray", r);
        check_that(step >= next && step < length);
        for (; next < step; next++)
            if (steps[next] == REFERENCE_OCCUPIED)
                check_fail("ray %u: step %zu is occupied and has no sample", r, next);
        if (steps[next++] == REFERENCE_EMPTY)
            check_fail("ray %u: step %zu is empty and has a sample", r, step);
        double position = reference_distance_after(&inputs->stepping, ray->step + (double)step);
        double rounding =
            1e-4 * reference_step_size(&inputs->stepping, position); /* of the step count */
        check_close(t[s], position, 1e-5, position + 1e5 * rounding, "distance of a sample of ray",
                    r);
    }
    for (size_t i = 0; i < length; i++) {
        tally->either += steps[i] == REFERENCE_EITHER;
        tally->occupied += steps[i] == REFERENCE_OCCUPIED;
        if (i >= next && count < most && steps[i] == REFERENCE_OCCUPIED)
            check_fail("ray %u: step %zu is occupied and has no sample", r, i);
    }
    tally->steps += length;
}

/* A sample's width is that of its step. */
static void check_width(const struct inputs *inputs, const struct Sample *sample)
{
    double width = reference_step_size(&inputs->stepping, sample->t);
    check_close(sample->width, width, 1e-6, width, "width of a sample of ray", sample->ray);
}

/* Checks the samples of all rays whose samples fitted, and that rays share none. */
static struct tally check_samples(struct fixture *fixture, const struct inputs *inputs,
                                  const struct RayResult *results, const struct Sample *samples)
{
    static double t[MAX_RAY_SAMPLES];
    struct tally tally = {0};
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        check_that(results[r].count <= MAX_RAY_SAMPLES);
        check_that(results[r].count == 0 ||
                   results[r].first + results[r].count <= fixture->config.sample_capacity);
        for (uint32_t s = 0; s < results[r].count; s++) {
            const struct Sample *sample = &samples[results[r].first + s];
            check_equal(sample->ray, r);
            check_width(inputs, sample);
            t[s] = sample->t;
        }
        check_ray(inputs, r, t, results[r].count, MAX_RAY_SAMPLES, &tally);
    }
    return tally;
}

/* ---- training ------------------------------------------------------------------------------ */

/* Marches in ray order, as the deterministic mode does. */
static void run_ordered(struct fixture *fixture, const struct inputs *inputs)
{
    put_rays(fixture, inputs);
    run_march(fixture, inputs, inputs->shaders->count);
    fixture_run(fixture, "scan_rays", (struct Push){.b = fixture->local_size}, 1);
    run_march(fixture, inputs, inputs->shaders->write);
}

/* Marching in ray order gives the same samples, ray after ray. */
static void check_ordered(struct fixture *fixture, const struct inputs *inputs,
                          const struct RayResult *results, const struct Sample *samples)
{
    run_ordered(fixture, inputs);
    struct RayResult *ordered = fixture_read(fixture, BIND_RESULTS);
    struct Sample *on_ray = fixture_read(fixture, BIND_SAMPLES);
    struct State state;
    uint32_t first = 0;
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        check_equal(ordered[r].first, first);
        check_equal(ordered[r].count, results[r].count);
        check_memory(on_ray + first, samples + results[r].first, ordered[r].count * sizeof *on_ray);
        first += ordered[r].count;
    }
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    check_equal(state.sample_count, first);
    check_poisoned(on_ray, first * SAMPLE_WORDS, fixture->config.sample_capacity * SAMPLE_WORDS);
    free(ordered);
    free(on_ray);
}

static void test_training(struct gpu_device *device)
{
    for (uint32_t n = 0; n < BASE_COUNT(scenarios); n++) {
        struct inputs inputs;
        struct fixture fixture = fixture_of(device, &scenarios[n], &inputs, 500 + n);
        struct State counts;
        if (n % 2) /* subgroups take several rays */
            fixture.config.group_limit = 3 * n;
        put_rays(&fixture, &inputs);
        run_march(&fixture, &inputs, inputs.shaders->all);
        fixture_get(&fixture, BIND_STATE, &counts, sizeof counts);
        struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
        struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
        struct tally tally = check_samples(&fixture, &inputs, results, samples);
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
        check_ordered(&fixture, &inputs, results, samples);
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
        run_ordered(fixture, inputs);
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
        struct fixture fixture = fixture_sampling(device, &scenarios[0], samples, &inputs, 510);
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
    struct fixture fixture = fixture_of(device, &scenario, &inputs, 520);
    uint32_t capped = 0;
    memset(inputs.grid.occupied, 1, 16 * 16 * 16);
    put_grid(&fixture, &inputs);
    put_rays(&fixture, &inputs);
    run_march(&fixture, &inputs, inputs.shaders->all);
    struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
    struct Sample *samples = fixture_read(&fixture, BIND_SAMPLES);
    check_samples(&fixture, &inputs, results, samples);
    for (uint32_t r = 0; r < inputs.ray_count; r++)
        capped += results[r].count == MAX_RAY_SAMPLES;
    check_that(capped > 5 && capped < 55);
    check_ordered(&fixture, &inputs, results, samples);
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
    check_samples(fixture, inputs, results, samples);
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
    struct fixture fixture = fixture_of(device, &scenario, &inputs, 515);
    extend_rays(&fixture, &inputs);
    check_far(&fixture, &inputs);
    memset(inputs.grid.occupied, 1, 2 * 16 * 16 * 16);
    put_grid(&fixture, &inputs);
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
    struct fixture fixture = fixture_of(device, &scenarios[2], &inputs, 530);
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
                check_width(&inputs, &samples[s]);
                t[r][count[r]++] = samples[s].t;
            }
        }
        free(results);
        free(samples);
    }
    struct tally tally = {0};
    for (uint32_t r = 0; r < inputs.ray_count; r++)
        check_ray(&inputs, r, t[r], count[r], MOST_STEPS, &tally);
    check_that(rounds > 3);
    free(t);
    free(count);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

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

static void test_uniform(struct gpu_device *device)
{
    static const uint32_t counts[] = {100, 1, 48, 192, 64, 100, 7};
    for (uint32_t n = 0; n < BASE_COUNT(counts); n++) {
        struct inputs inputs;
        struct fixture fixture =
            fixture_sampling(device, &scenarios[n], counts[n], &inputs, 540 + n);
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
        check_ordered(&fixture, &inputs, results, samples);
        free(results);
        free(samples);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Round by round, samples in the middle of the same bins; a ray that has ended gets no more. */
static void test_uniform_view(struct gpu_device *device)
{
    const uint32_t limit = 24, count = 100;
    struct inputs inputs;
    struct fixture fixture = fixture_sampling(device, &scenarios[5], count, &inputs, 550);
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
static void test_hierarchical(struct gpu_device *device)
{
    static const uint32_t counts[][2] = {{64, 128},  {1, 7},    {20, 33}, {256, 512},
                                         {256, 512}, {50, 100}, {64, 1}};
    static const enum vkn_spacing spacings[BASE_COUNT(counts)] = {
        [2] = VKN_SPACING_LINEAR, [3] = VKN_SPACING_LOG, [5] = VKN_SPACING_DISPARITY};
    static double positions[MAX_RAY_SAMPLES];
    for (uint32_t n = 0; n < BASE_COUNT(counts); n++) {
        struct inputs inputs;
        struct scenario scenario = scenarios[n];
        scenario.rays = 100 + 3 * n;
        scenario.spacing = spacings[n];
        struct fixture fixture =
            fixture_hierarchical(device, &scenario, counts[n][0], counts[n][1], &inputs, 560 + n);
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
static void test_draws(struct gpu_device *device)
{
    enum { BINS = 64, CLASSES = 4 * BINS };
    struct scenario scenario = scenarios[0];
    struct inputs inputs;
    double limit = CLASSES * pow(1 - 2.0 / 9 / CLASSES + 3.0902 * sqrt(2.0 / 9 / CLASSES), 3);
    scenario.rays = 1300;
    for (int kind = 0; kind < 4; kind += 3) {
        struct fixture fixture = fixture_hierarchical(device, &scenario, BINS, 128, &inputs, 570);
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
static void test_hierarchical_view(struct gpu_device *device)
{
    const uint32_t limit = 64, count = 150;
    static double positions[MAX_RAY_SAMPLES];
    struct inputs inputs;
    struct scenario scenario = scenarios[5];
    scenario.rays = 120;
    struct fixture fixture = fixture_hierarchical(device, &scenario, 50, 100, &inputs, 580);
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

/* ---- counting steps on the host ------------------------------------------------------------ */

/* The host's count of steps equals the march's, up to one step per ray by jitter, zero on average.
 */
static void test_count_steps(struct gpu_device *device)
{
    static enum reference_step steps[MOST_STEPS];
    for (uint32_t n = 0; n < BASE_COUNT(scenarios); n++) {
        struct inputs inputs;
        struct fixture fixture = fixture_of(device, &scenarios[n], &inputs, 600 + n);
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
            check_close(counted, fmin(length, MAX_RAY_SAMPLES), 1, 1.01, "steps of ray", r);
            difference += counted - fmin(length, MAX_RAY_SAMPLES);
            all += counted;
        }
        check_that(all > 1000);
        check_close(difference / inputs.ray_count, 0, 1, 4 * 0.29 / sqrt(inputs.ray_count),
                    "mean of steps, scenario", n);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

static const struct certify_test tests[] = {
    TEST(test_count_steps), TEST(test_training),          TEST(test_overflow),
    TEST(test_cap),         TEST(test_far_away),          TEST(test_view_rounds),
    TEST(test_uniform),     TEST(test_uniform_view),      TEST(test_hierarchical),
    TEST(test_draws),       TEST(test_hierarchical_view),
};
const struct certify_part certify_march = {"march", tests, BASE_COUNT(tests)};
