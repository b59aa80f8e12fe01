/* Makes random rays and occupancy grids, and compares a march with one without skipping. */
#include "certify/march.h"

static const struct march_shaders marching = {"march_rays", "march_rays_count", "march_rays_write"};
static const struct march_shaders uniform = {"sample_uniform", "sample_uniform_count",
                                             "sample_uniform_write"};

const struct scenario march_scenarios[8] = {
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

void march_put_grid(struct fixture *fixture, const struct inputs *inputs)
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

struct fixture march_fixture_hierarchical(struct gpu_device *device,
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
    march_put_grid(&fixture, inputs);
    return fixture;
}

struct fixture march_fixture_sampling(struct gpu_device *device, const struct scenario *scenario,
                                      uint32_t samples, struct inputs *inputs, uint32_t seed)
{
    return march_fixture_hierarchical(device, scenario, samples, 0, inputs, seed);
}

struct fixture march_fixture(struct gpu_device *device, const struct scenario *scenario,
                             struct inputs *inputs, uint32_t seed)
{
    return march_fixture_sampling(device, scenario, 0, inputs, seed);
}

void march_check_ray(const struct inputs *inputs, uint32_t r, const double *t, uint32_t count,
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

void march_check_width(const struct inputs *inputs, const struct Sample *sample)
{
    double width = reference_step_size(&inputs->stepping, sample->t);
    check_close(sample->width, width, 1e-6, width, "width of a sample of ray", sample->ray);
}

struct tally march_check_samples(struct fixture *fixture, const struct inputs *inputs,
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
            march_check_width(inputs, sample);
            t[s] = sample->t;
        }
        march_check_ray(inputs, r, t, results[r].count, MAX_RAY_SAMPLES, &tally);
    }
    return tally;
}

void march_run_ordered(struct fixture *fixture, const struct inputs *inputs)
{
    put_rays(fixture, inputs);
    run_march(fixture, inputs, inputs->shaders->count);
    fixture_run(fixture, "scan_rays", (struct Push){.b = fixture->local_size}, 1);
    run_march(fixture, inputs, inputs->shaders->write);
}

void march_check_ordered(struct fixture *fixture, const struct inputs *inputs,
                         const struct RayResult *results, const struct Sample *samples)
{
    march_run_ordered(fixture, inputs);
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
