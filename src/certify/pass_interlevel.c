/* Tests the pass interlevel, which computes the loss of a proposal, against the reference. */
#include "certify/fixture.h"

#define LOSS_SCALE 64.0
#define WEIGHT     0.7 /* of the loss */
#define KINDS      6u  /* of rays, by their densities */

/* Every ray has `bins` bins and `fine` samples. */
struct inputs {
    uint32_t ray_count, bins, fine;
    struct reference_space space;
    struct reference_stepping stepping;
    struct Ray *rays;
    double (*spans)[2];                                  /* in steps */
    struct RayResult *results, *fine_results;            /* of bins and of samples */
    struct Sample *samples, *fine_samples;               /* one sample in each bin */
    float (*field)[4], (*fine_field)[4];                 /* colours are not read */
    struct reference_interval *expected, *fine_expected; /* bins and samples in double precision */
};

/* The expected result of the pass. */
struct outcome {
    double loss;        /* sum over the rays */
    double slack;       /* tolerance of the loss */
    double *gradients;  /* by each bin's density */
    double *tolerances; /* of each gradient */
};

/* ---- inputs -------------------------------------------------------------------------------- */

/* Makes a ray from around the cube towards its centre. */
static void random_ray(struct inputs *inputs, const struct Config *config, uint32_t r,
                       struct random *random)
{
    struct Ray *ray = &inputs->rays[r];
    double side = config->aabb_scale, from[3], aim[3], direction[3], length = 0, span[2];
    random_direction(random, direction);
    for (int i = 0; i < 3; i++) {
        from[i] = ray->origin[i] = (float)(0.5 + 1.2 * side * direction[i]);
        aim[i] = 0.5 + side * random_between(random, -0.2, 0.2) - from[i];
        length += aim[i] * aim[i];
    }
    for (int i = 0; i < 3; i++)
        direction[i] = ray->direction[i] = (float)(aim[i] / sqrt(length));
    check_that(reference_cube(from, direction, side, span));
    if (inputs->space.contracted) {
        span[0] = config->near_distance;
        span[1] = config->far_distance;
    }
    inputs->spans[r][0] = reference_steps_to(&inputs->stepping, span[0]);
    inputs->spans[r][1] = reference_steps_to(&inputs->stepping, span[1]);
    ray->step = (float)inputs->spans[r][0];
    ray->last = (float)inputs->spans[r][1];
}

static double distance_at(const struct inputs *inputs, uint32_t r, double position)
{
    const double *span = inputs->spans[r];
    return reference_distance_after(&inputs->stepping,
                                    span[0] + (span[1] - span[0]) * position / inputs->bins);
}

/* Returns a sample's width in the unit of density. */
static double width_of(const struct inputs *inputs, const struct Sample *sample)
{
    const struct Ray *ray = &inputs->rays[sample->ray];
    double position[3];
    for (int i = 0; i < 3; i++)
        position[i] = ray->origin[i] + (double)sample->t * ray->direction[i];
    return sample->width * reference_shrinking(&inputs->space, position);
}

static void put_sample(const struct inputs *inputs, uint32_t r, double t, double width,
                       double thickness, struct Sample *sample, float field[4],
                       struct reference_interval *interval)
{
    *sample = (struct Sample){(float)t, (float)width, r};
    double seen = width_of(inputs, sample);
    field[3] = (float)(thickness / seen);
    *interval = (struct reference_interval){.begin = sample->t - 0.5 * sample->width,
                                            .end = sample->t + 0.5 * sample->width,
                                            .width = seen,
                                            .density = field[3]};
}

/* Returns the optical thickness of a bin or sample, one of `of`, at relative distance `at`. */
static double thickness_of(uint32_t kind, bool bin, double at, uint32_t of, struct random *random)
{
    double haze = exp(random_between(random, -3, 1)) / of, wall = at > 0.45 && at < 0.55 ? 3 : 0;
    switch (kind) {
    case 0: /* samples are opaque, bins empty */
        return bin ? 0 : 4 * haze;
    case 1: /* bins miss the wall */
        return bin ? haze : haze + 10 * wall / of;
    case 2: /* bins hide the wall */
        return bin && at < 0.3 ? 20.0 / of : wall;
    case 3: /* all opaque */
        return 40 * haze;
    case 4: /* samples are empty */
        return bin ? haze : 0;
    default:
        return haze;
    }
}

static void make_bins(struct inputs *inputs, uint32_t r, uint32_t kind, struct random *random)
{
    for (uint32_t i = 0; i < inputs->bins; i++) {
        uint32_t at = inputs->results[r].first + i;
        double begin = distance_at(inputs, r, i), end = distance_at(inputs, r, i + 1);
        double t = distance_at(inputs, r, i + random_between(random, 0, 1));
        put_sample(inputs, r, t, end - begin,
                   thickness_of(kind, true, (i + 0.5) / inputs->bins, inputs->bins, random),
                   &inputs->samples[at], inputs->field[at], &inputs->expected[at]);
        /* The sample stands for its whole bin, wherever in the bin it lies. */
        inputs->expected[at].begin = begin;
        inputs->expected[at].end = end;
    }
}

/* Consecutive samples along the whole ray or a part; their edges are far enough from bins' edges
 * that rounding does not decide. */
static void make_samples(struct inputs *inputs, uint32_t r, uint32_t kind, struct random *random)
{
    double edges[MAX_RAY_SAMPLES];
    uint32_t from = r % 3 == 0 ? inputs->bins / 3 : 0, reach = inputs->bins - from;
    reach = r % 3 == 0 ? (reach + 1) / 2 : reach;
    for (uint32_t k = 0; k <= inputs->fine; k++)
        edges[k] = from + random_below(random, reach) + random_between(random, 0.02, 0.98);
    qsort(edges, inputs->fine + 1, sizeof *edges, compare_doubles);
    if (r % 3 == 1) { /* as if drawn evenly */
        edges[0] = 0;
        edges[inputs->fine] = inputs->bins;
    }
    for (uint32_t k = 0; k < inputs->fine; k++) {
        uint32_t at = inputs->fine_results[r].first + k;
        double begin = distance_at(inputs, r, edges[k]), end = distance_at(inputs, r, edges[k + 1]);
        double middle = 0.5 * (edges[k] + edges[k + 1]) / inputs->bins;
        double thickness = thickness_of(kind, false, middle, inputs->fine, random);
        put_sample(inputs, r, 0.5 * (begin + end), end - begin, thickness,
                   &inputs->fine_samples[at], inputs->fine_field[at], &inputs->fine_expected[at]);
    }
}

/* Makes rays, some without samples and some whose samples did not fit after the bins; they are
 * stored in another order. */
static void make_rays(struct inputs *inputs, const struct Config *config, struct random *random)
{
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        uint32_t slot = inputs->ray_count - 1 - r, kind = random_below(random, KINDS);
        bool none = r % 7 == 3, left_out = r % 7 == 5;
        random_ray(inputs, config, r, random);
        inputs->results[r].first = slot * inputs->bins;
        inputs->results[r].count = none ? 0 : inputs->bins;
        inputs->fine_results[r].first = slot * inputs->fine;
        inputs->fine_results[r].count = none || left_out ? 0 : inputs->fine;
        make_bins(inputs, r, kind, random);
        make_samples(inputs, r, kind, random);
        if (none || left_out)
            inputs->rays[r].last = none ? -1 : -2; /* the marks that earlier passes set */
    }
}

static struct inputs inputs_create(const struct fixture *fixture, uint32_t rays, uint32_t seed)
{
    const struct Config *config = &fixture->config;
    struct random random = {seed};
    struct inputs inputs = {
        .ray_count = rays,
        .bins = config->ray_samples,
        .fine = config->fine_samples,
        .space = reference_space(&fixture->settings),
        .stepping = reference_stepping(config, fixture_contracts(fixture)),
    };
    uint32_t bins = rays * inputs.bins, fine = rays * inputs.fine;
    if (fixture->constants.values[SPEC_SPACING] == SPACING_LINEAR)
        inputs.stepping.cone = 0;
    check_that(bins <= config->sample_capacity && fine <= config->sample_capacity);
    inputs.rays = base_alloc(rays, sizeof *inputs.rays);
    inputs.spans = base_alloc(rays, sizeof *inputs.spans);
    inputs.results = base_alloc(rays, sizeof *inputs.results);
    inputs.fine_results = base_alloc(rays, sizeof *inputs.fine_results);
    inputs.samples = base_alloc(bins, sizeof *inputs.samples);
    inputs.fine_samples = base_alloc(fine, sizeof *inputs.fine_samples);
    inputs.field = base_alloc(bins, sizeof *inputs.field);
    inputs.fine_field = base_alloc(fine, sizeof *inputs.fine_field);
    inputs.expected = base_alloc(bins, sizeof *inputs.expected);
    inputs.fine_expected = base_alloc(fine, sizeof *inputs.fine_expected);
    make_rays(&inputs, config, &random);
    return inputs;
}

static void inputs_destroy(struct inputs *inputs)
{
    void *all[] = {inputs->rays,     inputs->spans,        inputs->results, inputs->fine_results,
                   inputs->samples,  inputs->fine_samples, inputs->field,   inputs->fine_field,
                   inputs->expected, inputs->fine_expected};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

static struct reference_ray_bins bins_of(const struct inputs *inputs, uint32_t r)
{
    return (struct reference_ray_bins){inputs->expected + inputs->results[r].first,
                                       inputs->results[r].count};
}

static struct outcome expect(const struct inputs *inputs)
{
    uint32_t count = inputs->ray_count * inputs->bins;
    double factor = WEIGHT * LOSS_SCALE / inputs->ray_count;
    struct outcome outcome = {.gradients = base_alloc(count, sizeof(double)),
                              .tolerances = base_alloc(count, sizeof(double))};
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        const struct reference_ray_bins ray = bins_of(inputs, r);
        uint32_t first = inputs->results[r].first, fine = inputs->fine_results[r].count;
        outcome.loss += WEIGHT * reference_interlevel(
                                     &ray, inputs->fine_expected + inputs->fine_results[r].first,
                                     fine, outcome.gradients + first, outcome.tolerances + first);
        outcome.slack += 2 * REFERENCE_INTERLEVEL_ERROR * fine;
    }
    for (uint32_t i = 0; i < count; i++) {
        outcome.gradients[i] *= factor;
        outcome.tolerances[i] *= factor;
    }
    return outcome;
}

static void outcome_destroy(struct outcome *outcome)
{
    free(outcome->gradients);
    free(outcome->tolerances);
}

/* ---- the pass ------------------------------------------------------------------------------ */

struct space {
    bool contracted;
    enum vkn_spacing spacing;
    uint32_t side;
};

/* The fine samples are in buffers of their own, as the proposal's sample set binds them. */
struct fine_buffers {
    struct gpu_arena *arena;
    struct gpu_buffer results, samples, field;
};

static struct fixture fixture_of(struct gpu_device *device, uint32_t bins, uint32_t fine,
                                 bool deterministic, struct space space)
{
    struct vkn_config settings = {
        .scene = {.aabb_scale = space.side,
                  .contraction = space.contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .march = {.sampling = VKN_SAMPLING_PROPOSAL,
                  .spacing = space.spacing,
                  .coarse_samples = bins,
                  .fine_samples = fine,
                  .cone_angle = space.contracted ? 1.0f / 32 : 1.0f / 256},
        .loss.interlevel = (float)WEIGHT,
        .proposal = {.levels = 2, .log2_entries = 8, .finest = 32, .width = 16},
        .batch = {.samples = 16384, .max_rays = 320},
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture_set_constant(&fixture, SPEC_DETERMINISTIC, deterministic);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

static struct fine_buffers bind_fine(struct fixture *fixture)
{
    struct fine_buffers fine = {.arena = NULL};
    const struct gpu_buffer *bound[GPU_BINDINGS];
    struct gpu_buffer_request requests[] = {
        {&fine.results, "fine", fixture->buffers[BIND_RESULTS].size, GPU_DEVICE},
        {&fine.samples, "fine", fixture->buffers[BIND_SAMPLES].size, GPU_DEVICE},
        {&fine.field, "fine", fixture->buffers[BIND_FIELD].size, GPU_DEVICE},
    };
    check_ok(gpu_arena_create(fixture->device, requests, BASE_COUNT(requests), &fine.arena));
    for (uint32_t i = 0; i < GPU_BINDINGS; i++)
        bound[i] = &fixture->buffers[i];
    bound[BIND_FINE_RESULTS] = &fine.results;
    bound[BIND_FINE_SAMPLES] = &fine.samples;
    bound[BIND_FINE_FIELD] = &fine.field;
    gpu_bindings_destroy(&fixture->bindings);
    check_ok(gpu_bindings_create(fixture->device, bound, &fixture->bindings));
    return fine;
}

static void put_inputs(struct fixture *fixture, const struct fine_buffers *fine,
                       const struct inputs *inputs)
{
    uint32_t rays = inputs->ray_count, bins = rays * inputs->bins, samples = rays * inputs->fine;
    fixture_put(fixture, BIND_RAYS, inputs->rays, rays * sizeof *inputs->rays);
    fixture_put(fixture, BIND_RESULTS, inputs->results, rays * sizeof *inputs->results);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples, bins * sizeof *inputs->samples);
    fixture_put(fixture, BIND_FIELD, inputs->field, bins * sizeof *inputs->field);
    check_ok(gpu_upload(fixture->device, &fine->results, 0, inputs->fine_results,
                        rays * sizeof *inputs->fine_results));
    check_ok(gpu_upload(fixture->device, &fine->samples, 0, inputs->fine_samples,
                        samples * sizeof *inputs->fine_samples));
    check_ok(gpu_upload(fixture->device, &fine->field, 0, inputs->fine_field,
                        samples * sizeof *inputs->fine_field));
}

/* Runs the pass in so many workgroups; returns the state. */
static struct State run(struct fixture *fixture, const struct inputs *inputs, uint32_t groups)
{
    struct State state = {.step = 1, .ray_count = inputs->ray_count, .loss_scale = LOSS_SCALE};
    struct fine_buffers fine = bind_fine(fixture);
    put_inputs(fixture, &fine, inputs);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_poison(fixture, BIND_FIELD_GRADIENTS);
    fixture_poison(fixture, BIND_LIVE);
    fixture_poison(fixture, BIND_REDUCE);
    fixture_run(fixture, "interlevel", (struct Push){0}, groups);
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    gpu_arena_destroy(&fine.arena);
    return state;
}

static double check_losses(struct fixture *fixture, const struct outcome *outcome, uint32_t groups)
{
    float *reduce = fixture_read(fixture, BIND_REDUCE);
    double loss = 0;
    for (uint32_t g = 0; g < groups; g++) {
        loss += reduce[REDUCE_LOSS + 2 * g];
        check_that(reduce[REDUCE_LOSS + 2 * g + 1] == 0); /* PSNR counts colours only */
    }
    check_close(loss, outcome->loss, 1, 1e-5 * outcome->loss + outcome->slack, "loss", 0);
    check_poisoned(reduce, REDUCE_LOSS + 2ull * groups, REDUCE_SIZE);
    free(reduce);
    return loss;
}

static bool is_poison(const float values[4])
{
    uint32_t words[4];
    memcpy(words, values, sizeof words);
    return words[0] == POISON && words[1] == POISON && words[2] == POISON && words[3] == POISON;
}

/* Checks gradients of every bin: all of them in deterministic mode, else those that were written.
 */
static void check_gradients(struct fixture *fixture, const struct inputs *inputs,
                            const struct outcome *outcome, bool deterministic)
{
    float(*device)[4] = fixture_read(fixture, BIND_FIELD_GRADIENTS);
    uint32_t count = inputs->ray_count * inputs->bins;
    for (uint32_t i = 0; i < count; i++) {
        bool exists = inputs->results[inputs->samples[i].ray].count > 0;
        if (!exists || (!deterministic && is_poison(device[i]))) {
            check_that(is_poison(device[i]));
            check_close(0, outcome->gradients[i], 1, outcome->tolerances[i], "left out", i);
            continue;
        }
        check_that(device[i][0] == 0 && device[i][1] == 0 && device[i][2] == 0);
        check_close(device[i][3], outcome->gradients[i], 1, outcome->tolerances[i],
                    "gradient of bin", i);
    }
    check_poisoned(device, 4ull * count, 4ull * fixture->config.sample_capacity);
    free(device);
}

/* Checks that bins with a gradient are listed once each, in any order, and nothing after them.
 * Deterministic mode has no list. */
static void check_live_list(struct fixture *fixture, const struct inputs *inputs,
                            uint32_t live_count, bool deterministic)
{
    uint32_t *live = fixture_read(fixture, BIND_LIVE), count = inputs->ray_count * inputs->bins;
    float(*device)[4] = fixture_read(fixture, BIND_FIELD_GRADIENTS);
    bool *seen = base_alloc(count, sizeof *seen);
    for (uint32_t i = 0; i < live_count; i++) {
        check_that(live[i] < count && !seen[live[i]]);
        check_that(device[live[i]][3] != 0);
        seen[live[i]] = true;
    }
    for (uint32_t i = 0; i < count; i++)
        check_that(deterministic || seen[i] == !is_poison(device[i]));
    check_poisoned(live, live_count, fixture->config.sample_capacity);
    free(seen);
    free(device);
    free(live);
}

/* Runs and checks the pass; returns the device's loss. */
static double check(struct fixture *fixture, const struct inputs *inputs, uint32_t groups,
                    bool deterministic)
{
    struct outcome outcome = expect(inputs);
    struct State state = run(fixture, inputs, groups);
    double loss = check_losses(fixture, &outcome, groups);
    check_gradients(fixture, inputs, &outcome, deterministic);
    check_live_list(fixture, inputs, state.live_count, deterministic);
    check_that(deterministic ? state.live_count == 0 : state.live_count > 0);
    check_equal(state.live_rays, 0); /* composite counts live rays */
    outcome_destroy(&outcome);
    return loss;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* Different counts of bins and samples in different spaces, with one workgroup and with several. */
static void test_against_reference(struct gpu_device *device)
{
    static const struct {
        uint32_t bins, fine, rays;
        bool deterministic;
        struct space space;
    } cases[] = {
        {5, 3, 67, false, {false, VKN_SPACING_DEFAULT, 1}},
        {64, 24, 100, false, {false, VKN_SPACING_DEFAULT, 1}},
        {256, 48, 77, false, {true, VKN_SPACING_DEFAULT, 1}},
        {64, 200, 61, true, {true, VKN_SPACING_DEFAULT, 1}},
        {256, 200, 63, true, {false, VKN_SPACING_DEFAULT, 4}},
        {43, 29, 64, false, {false, VKN_SPACING_LINEAR, 1}},
        {5, 200, 65, false, {true, VKN_SPACING_DEFAULT, 2}},
    };
    for (uint32_t n = 0; n < BASE_COUNT(cases); n++) {
        struct fixture fixture = fixture_of(device, cases[n].bins, cases[n].fine,
                                            cases[n].deterministic, cases[n].space);
        struct inputs inputs = inputs_create(&fixture, cases[n].rays, 100 + n);
        uint32_t most = fixture_subgroups(&fixture, cases[n].rays);
        check_that(check(&fixture, &inputs, n % 3 == 2 ? 1 : most, cases[n].deterministic) > 0.1);
        /* With more workgroups than rays the extra ones write a loss of zero. */
        check_that(check(&fixture, &inputs, most + 2, cases[n].deterministic) > 0.1);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

static void set_density(struct inputs *inputs, uint32_t bin, double density)
{
    inputs->field[bin][3] = (float)density;
    inputs->expected[bin].density = inputs->field[bin][3];
}

/* Raises each bin's density until its weight is slightly above that of its samples. */
static void bound_samples(struct inputs *inputs, uint32_t r)
{
    for (uint32_t i = 0; i < inputs->results[r].count; i++) {
        uint32_t at = inputs->results[r].first + i;
        struct reference_interval *bin = &inputs->expected[at];
        double thickness = 0;
        for (uint32_t k = 0; k < inputs->fine_results[r].count; k++) {
            const struct reference_interval *sample =
                &inputs->fine_expected[inputs->fine_results[r].first + k];
            double share = fmin(bin->end, sample->end) - fmax(bin->begin, sample->begin);
            thickness +=
                sample->density * sample->width * fmax(share, 0) / (sample->end - sample->begin);
        }
        set_density(inputs, at, (1.0001 * thickness + 1e-5 / inputs->bins) / bin->width);
    }
}

static uint32_t count_gradients(struct fixture *fixture, const struct inputs *inputs)
{
    float(*device)[4] = fixture_read(fixture, BIND_FIELD_GRADIENTS);
    uint32_t found = 0;
    for (uint32_t i = 0; i < inputs->ray_count * inputs->bins; i++)
        found += !is_poison(device[i]) && device[i][3] != 0;
    free(device);
    return found;
}

/* Where bins have at least their samples' weights there is no loss and no live bin. */
static void test_bounded(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, 64, 24, false, (struct space){.side = 1});
    struct inputs inputs = inputs_create(&fixture, 60, 7);
    for (uint32_t r = 0; r < inputs.ray_count; r++) {
        for (uint32_t k = 0; k < inputs.fine; k++) { /* thin: all bins remain visible */
            uint32_t at = inputs.fine_results[r].first + k;
            inputs.fine_expected[at].density = inputs.fine_field[at][3] =
                (float)(0.02 * (1 + k % 3) / inputs.fine_expected[at].width);
        }
        bound_samples(&inputs, r);
    }
    uint32_t groups = fixture_subgroups(&fixture, inputs.ray_count);
    struct State after = run(&fixture, &inputs, groups);
    float *reduce = fixture_read(&fixture, BIND_REDUCE);
    for (uint32_t g = 0; g < groups; g++)
        check_that(reduce[REDUCE_LOSS + 2 * g] == 0);
    check_equal(after.live_count, 0);
    check_equal(count_gradients(&fixture, &inputs), 0);
    /* A few bins of one ray with too small weights are noticed. */
    for (uint32_t hit = inputs.results[0].first + 30; hit < inputs.results[0].first + 35; hit++)
        set_density(&inputs, hit, 0.2 * inputs.expected[hit].density);
    check_that(check(&fixture, &inputs, groups, false) > 0);
    check_that(count_gradients(&fixture, &inputs) > 0);
    free(reduce);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* By hand: one sample of weight 0.5 overlaps bins 1 and 2 of five, of weight 0.0625 each. Their
 * gradients are negative: the weights should grow. That of bin 0 is positive, because it hides
 * them; those of the bins behind are zero. */
static void test_by_hand(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, 5, 3, true, (struct space){.side = 1});
    struct inputs inputs = inputs_create(&fixture, 1, 9);
    static const double weights[] = {0.25, 0.0625, 0.0625, 0.3, 0.1};
    double transmittance = 1, slope = -2 * (0.5 - 0.125) / (0.5 + 1e-7),
           factor = WEIGHT * LOSS_SCALE;
    float gradients[5][4], loss;
    inputs.fine_results[0].count = 1;
    put_sample(&inputs, 0, 0.5 * (distance_at(&inputs, 0, 1.1) + distance_at(&inputs, 0, 2.9)),
               distance_at(&inputs, 0, 2.9) - distance_at(&inputs, 0, 1.1), log(2),
               &inputs.fine_samples[0], inputs.fine_field[0], &inputs.fine_expected[0]);
    for (uint32_t i = 0; i < 5; i++) {
        set_density(&inputs, i, -log1p(-weights[i] / transmittance) / inputs.expected[i].width);
        transmittance -= weights[i];
    }
    run(&fixture, &inputs, 1);
    fixture_get(&fixture, BIND_REDUCE, &loss, sizeof loss);
    check_close(loss, WEIGHT * 0.375 * 0.375 / 0.5, 1e-5, loss, "loss", 0);
    fixture_get(&fixture, BIND_FIELD_GRADIENTS, gradients, sizeof gradients);
    const double by_thickness[] = {-slope * 0.125, slope * (1 - 0.3125 - 0.0625),
                                   slope * (1 - 0.375), 0, 0};
    for (uint32_t i = 0; i < 5; i++)
        check_close(gradients[i][3], factor * inputs.expected[i].width * by_thickness[i], 1e-5,
                    factor * inputs.expected[i].width, "gradient", i);
    check_that(gradients[0][3] > 0 && gradients[1][3] < 0 && gradients[2][3] < 0);
    check_that(gradients[3][3] == 0 && gradients[4][3] == 0);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static double loss_of(const struct inputs *inputs, uint32_t r)
{
    const struct reference_ray_bins ray = bins_of(inputs, r);
    return reference_interlevel(&ray, inputs->fine_expected + inputs->fine_results[r].first,
                                inputs->fine_results[r].count, NULL, NULL);
}

/* The reference's gradient against finite differences of its loss. */
static void test_reference(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, 43, 29, true, (struct space){.side = 1});
    struct inputs inputs = inputs_create(&fixture, 30, 11);
    struct outcome outcome = expect(&inputs);
    double factor = WEIGHT * LOSS_SCALE / inputs.ray_count, largest = 0;
    for (uint32_t i = 0; i < inputs.ray_count * inputs.bins; i++)
        largest = fmax(largest, fabs(outcome.gradients[i]) / inputs.expected[i].width);
    check_that(largest > 0);
    for (uint32_t i = 0; i < inputs.ray_count * inputs.bins; i++) {
        struct reference_interval *bin = &inputs.expected[i];
        double kept = bin->density, step = 1e-6 / bin->width;
        bin->density = kept + step;
        double above = loss_of(&inputs, inputs.samples[i].ray);
        bin->density = kept - step;
        double below = loss_of(&inputs, inputs.samples[i].ray);
        bin->density = kept;
        check_close(outcome.gradients[i], factor * (above - below) / (2 * step), 2e-5,
                    largest * bin->width, "reference's gradient of bin", i);
    }
    outcome_destroy(&outcome);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_against_reference),
    TEST_BOTH(test_bounded),
    TEST_BOTH(test_by_hand),
    TEST_BOTH(test_reference),
};
const struct certify_part certify_interlevel = {"interlevel", tests, BASE_COUNT(tests)};
