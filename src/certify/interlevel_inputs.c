/* Makes rays with bins and samples, and computes the expected loss of a proposal. */
#include "certify/interlevel.h"

#define KINDS 6u /* of rays, by their densities */

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

double interlevel_distance_at(const struct inputs *inputs, uint32_t r, double position)
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

void interlevel_put_sample(const struct inputs *inputs, uint32_t r, double t, double width,
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
        double begin = interlevel_distance_at(inputs, r, i),
               end = interlevel_distance_at(inputs, r, i + 1);
        double t = interlevel_distance_at(inputs, r, i + random_between(random, 0, 1));
        interlevel_put_sample(
            inputs, r, t, end - begin,
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
        double begin = interlevel_distance_at(inputs, r, edges[k]),
               end = interlevel_distance_at(inputs, r, edges[k + 1]);
        double middle = 0.5 * (edges[k] + edges[k + 1]) / inputs->bins;
        double thickness = thickness_of(kind, false, middle, inputs->fine, random);
        interlevel_put_sample(inputs, r, 0.5 * (begin + end), end - begin, thickness,
                              &inputs->fine_samples[at], inputs->fine_field[at],
                              &inputs->fine_expected[at]);
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

struct inputs interlevel_inputs_create(const struct fixture *fixture, uint32_t rays, uint32_t seed)
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

void interlevel_inputs_destroy(struct inputs *inputs)
{
    void *all[] = {inputs->rays,     inputs->spans,        inputs->results, inputs->fine_results,
                   inputs->samples,  inputs->fine_samples, inputs->field,   inputs->fine_field,
                   inputs->expected, inputs->fine_expected};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

struct reference_ray_bins interlevel_bins_of(const struct inputs *inputs, uint32_t r)
{
    return (struct reference_ray_bins){inputs->expected + inputs->results[r].first,
                                       inputs->results[r].count};
}

struct outcome interlevel_expect(const struct inputs *inputs)
{
    uint32_t count = inputs->ray_count * inputs->bins;
    double factor = WEIGHT * LOSS_SCALE / inputs->ray_count;
    struct outcome outcome = {.gradients = base_alloc(count, sizeof(double)),
                              .tolerances = base_alloc(count, sizeof(double))};
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        const struct reference_ray_bins ray = interlevel_bins_of(inputs, r);
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

void interlevel_outcome_destroy(struct outcome *outcome)
{
    free(outcome->gradients);
    free(outcome->tolerances);
}
