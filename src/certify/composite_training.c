/* Computes the expected result of composite in a training step, and compares the device's with it.
 */
#include "certify/composite.h"

/* Adds the gradients of the distortion loss of one ray, times `factor`; returns a bound of the
 * gradients by optical thickness. */
static double expect_distortion(const struct fixture *fixture, const struct inputs *inputs,
                                uint32_t r, const struct reference_ray *result, double factor,
                                struct outcome *outcome)
{
    double farthest = 0, weight = factor * fixture->config.loss_distortion;
    double gradient = weight / inputs->ray_count * LOSS_SCALE;
    uint32_t first = inputs->results[r].first;
    reference_distortion(result, inputs->expected + first, gradient, outcome->gradients + first);
    for (uint32_t s = first; s < first + result->reached; s++)
        farthest = fmax(farthest, inputs->expected[s].middle);
    return gradient * farthest;
}

/* Adds the gradients of the losses of density near the camera and in front of the sky, which are
 * not in the reported loss, times `factor`; returns a bound of the gradients by optical thickness.
 */
static double expect_density_losses(const struct fixture *fixture, const struct inputs *inputs,
                                    uint32_t r, const struct reference_ray *result, double factor,
                                    struct outcome *outcome)
{
    double unit = factor / inputs->ray_count * LOSS_SCALE, near = unit * fixture->config.loss_near;
    double sky = inputs->rays[r].has_sky ? unit * (double)SKY_LOSS : 0;
    uint32_t first = inputs->results[r].first;
    reference_near_density(result, inputs->expected + first, fixture->config.near_start, near,
                           outcome->gradients + first);
    reference_near_density(result, inputs->expected + first, INFINITY, sky,
                           outcome->gradients + first);
    return near + sky;
}

/* Adds the gradients of the loss of a known depth, which is not in the reported loss, times
 * `factor`; returns a bound of the gradients by optical thickness. */
static double expect_known_depth(const struct fixture *fixture, const struct inputs *inputs,
                                 uint32_t r, const struct reference_ray *result, double factor,
                                 struct outcome *outcome)
{
    double gradient = factor * fixture->config.loss_depth / inputs->ray_count * LOSS_SCALE;
    uint32_t first = inputs->results[r].first;
    if (!fixture->constants.values[SPEC_DEPTH] || inputs->rays[r].known_sigma == 0)
        return 0;
    reference_known_depth(result, inputs->expected + first, inputs->rays[r].known_t,
                          inputs->rays[r].known_sigma, gradient, outcome->gradients + first);
    return gradient / 0.05;
}

static bool has_distortion(const struct fixture *fixture, const struct inputs *inputs)
{
    return fixture->constants.values[SPEC_DISTORTION] && inputs->which != COMPOSITE_COARSE;
}

/* Returns the factor of a ray's gradients; 0: it has no live samples. */
static double expect_kept(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                          double loss, struct outcome *outcome)
{
    if (!fixture->constants.values[SPEC_KEEP])
        return 1;
    struct State state = inputs->keep;
    state.step = inputs->step;
    double probability = reference_keep_probability(&fixture->config, &state, loss), pick[3];
    reference_random_unit(fixture->config.seed, state.step, fixture->config.first_ray + r, 8, pick);
    check_that(fabs(pick[0] - probability) > 2e-6); /* rounding does not decide */
    double weight = inputs->which == COMPOSITE_COARSE
                        ? 1
                        : reference_keep_weight(&fixture->config, &state, r, probability);
    outcome->kept_rays += weight > 0;
    return weight;
}

/* Adds one ray. Gradients are of the mean loss over the rays, times the loss scale. */
static void expect_ray(const struct fixture *fixture, const struct inputs *inputs, uint32_t r,
                       struct outcome *outcome)
{
    const struct Ray *ray = &inputs->rays[r];
    uint32_t first = inputs->results[r].first;
    struct reference_ray result = composite_ray_start(fixture, inputs);
    double background[3], color_gradient[3], size = 0, loss = 0;
    reference_composite(&result, inputs->expected + first, inputs->results[r].count,
                        fixture->config.early_stop);
    check_that(result.closest > 1e-4); /* with these seeds no early stop depends on rounding */
    for (int c = 0; c < 3; c++) {
        background[c] = ray->background[c];
        double target = ray->target[c] + (1.0 - ray->target[3]) * background[c];
        double difference = result.color[c] + result.transmittance * background[c] - target, slope;
        loss += reference_loss(fixture->constants.values[SPEC_LOSS], fixture->config.loss_delta,
                               difference, &slope) /
                3;
        outcome->square += difference * difference / 3;
        color_gradient[c] = slope / 3 / inputs->ray_count * LOSS_SCALE;
        size += fabs(color_gradient[c]);
    }
    double distortion = 0;
    if (has_distortion(fixture, inputs))
        distortion = fixture->config.loss_distortion *
                     reference_distortion(&result, inputs->expected + first, 0, NULL);
    outcome->loss += loss;
    outcome->distortion += distortion;
    outcome->live_rays++;
    outcome->reached_count += fixture->constants.values[SPEC_KEEP] ? (uint32_t)result.live : 0;
    double weight = expect_kept(fixture, inputs, r, loss + distortion, outcome);
    for (int c = 0; c < 3; c++)
        color_gradient[c] *= weight;
    size *= weight;
    if (weight == 0)
        return;
    reference_composite_backward(&result, inputs->expected + first, background, color_gradient,
                                 outcome->gradients + first);
    if (has_distortion(fixture, inputs))
        size += expect_distortion(fixture, inputs, r, &result, weight, outcome);
    if (inputs->which != COMPOSITE_COARSE)
        size += expect_density_losses(fixture, inputs, r, &result, weight, outcome) +
                expect_known_depth(fixture, inputs, r, &result, weight, outcome);
    for (uint32_t s = first; s < first + result.reached; s++) {
        const struct reference_sample *sample = &inputs->expected[s];
        outcome->scale[s] = size * (1 + sample->width);
        outcome->live[s] = reference_alpha_test(&result, sample);
    }
    outcome->live_count += (uint32_t)result.live;
}

static bool in_loss(const struct Ray *ray)
{
    return ray->last != -2 && ray->last != -3;
}

struct outcome composite_expect(const struct fixture *fixture, const struct inputs *inputs)
{
    struct outcome outcome = {
        .gradients = base_alloc(inputs->sample_count, sizeof *outcome.gradients),
        .scale = base_alloc(inputs->sample_count, sizeof *outcome.scale),
        .live = base_alloc(inputs->sample_count, sizeof *outcome.live),
    };
    for (uint32_t r = 0; r < inputs->ray_count; r++)
        if (in_loss(&inputs->rays[r]))
            expect_ray(fixture, inputs, r, &outcome);
    return outcome;
}

void composite_outcome_destroy(struct outcome *outcome)
{
    free(outcome->gradients);
    free(outcome->scale);
    free(outcome->live);
}

static void check_gradients(struct fixture *fixture, const struct inputs *inputs,
                            const struct outcome *outcome, bool deterministic)
{
    float(*device)[4] = fixture_read(fixture, BIND_FIELD_GRADIENTS);
    /* A probability is as exact as the loss, relative to which colours have larger errors. */
    double tolerance = fixture->constants.values[SPEC_KEEP] ? 1e-5 : 3e-6;
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        if (!outcome->live[s] &&
            (!deterministic || !in_loss(&inputs->rays[inputs->samples[s].ray])))
            continue; /* no later pass reads it */
        for (int i = 0; i < 4; i++)
            check_close(device[s][i], outcome->gradients[s][i], tolerance, outcome->scale[s],
                        i < 3 ? "colour gradient of sample" : "density gradient of sample", s);
    }
    check_poisoned(device, 4ull * inputs->sample_count, 4ull * fixture->config.sample_capacity);
    free(device);
}

/* Checks that the list holds each live sample once, in any order, and nothing after them. */
static void check_live_list(struct fixture *fixture, const struct inputs *inputs,
                            const struct outcome *outcome)
{
    uint32_t *live = fixture_read(fixture, BIND_LIVE);
    bool *seen = base_alloc(inputs->sample_count, sizeof *seen);
    for (uint32_t i = 0; i < outcome->live_count; i++) {
        check_that(live[i] < inputs->sample_count);
        check_that(outcome->live[live[i]] && !seen[live[i]]);
        seen[live[i]] = true;
    }
    check_poisoned(live, outcome->live_count, fixture->config.sample_capacity);
    free(seen);
    free(live);
}

static void check_losses(struct fixture *fixture, const struct outcome *outcome, uint32_t groups)
{
    float *reduce = fixture_read(fixture, BIND_REDUCE);
    bool has_distortion = fixture->constants.values[SPEC_DISTORTION] != DISTORTION_NONE;
    double loss = 0, square = 0, distortion = 0;
    for (uint32_t g = 0; g < groups; g++) {
        loss += reduce[REDUCE_LOSS + 2 * g];
        square += reduce[REDUCE_LOSS + 2 * g + 1];
        distortion += has_distortion ? reduce[REDUCE_DISTORTION + g] : 0;
    }
    check_close(loss, outcome->loss, 1e-5, outcome->loss, "loss", 0);
    check_close(square, outcome->square, 1e-5, outcome->square, "squared error", 0);
    check_close(distortion, outcome->distortion, 1e-5, outcome->distortion, "distortion loss", 0);
    check_poisoned(reduce, REDUCE_LOSS + 2ull * groups, REDUCE_DISTORTION);
    check_poisoned(reduce, REDUCE_DISTORTION + (has_distortion ? groups : 0), REDUCE_SIZE);
    free(reduce);
}

static bool has_visibility(const struct fixture *fixture)
{
    return fixture->constants.values[SPEC_VISIBILITY] != 0;
}

/* Lists visible samples from densities only, then adds colours for compositing; those of other
 * samples stay zero. */
static void find_visible(struct fixture *fixture, const struct inputs *inputs,
                         const struct outcome *outcome, uint32_t groups)
{
    size_t size = inputs->sample_count * sizeof *inputs->field;
    float(*field)[4] = base_alloc(inputs->sample_count, sizeof *field);
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        field[s][3] = inputs->field[s][3];
    fixture_put(fixture, BIND_FIELD, field, size);
    fixture_run(fixture, "find_visible", (struct Push){0}, groups);
    for (uint32_t s = 0; s < inputs->sample_count; s++)
        if (outcome->live[s])
            memcpy(field[s], inputs->field[s], sizeof *field);
    fixture_put(fixture, BIND_FIELD, field, size);
    free(field);
}

void composite_check_training(struct fixture *fixture, const struct inputs *inputs,
                              bool deterministic)
{
    struct State state = {
        .step = inputs->step,
        .ray_count = inputs->ray_count,
        .sample_count = inputs->sample_count,
        .loss_scale = LOSS_SCALE,
        .threshold = (float)inputs->threshold,
        .keep_gain = inputs->keep.keep_gain,
        .mean_loss = inputs->keep.mean_loss,
    };
    uint32_t groups = fixture_groups(fixture, inputs->ray_count);
    composite_put_inputs(fixture, inputs);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    struct outcome outcome = composite_expect(fixture, inputs);
    if (has_visibility(fixture))
        find_visible(fixture, inputs, &outcome, groups % 4 + 1);
    fixture_run(fixture, "composite", (struct Push){.b = fixture->local_size, .e = inputs->which},
                groups);
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    check_equal(state.reached_count, outcome.reached_count);
    check_equal(state.kept_rays, outcome.kept_rays);
    check_equal(state.live_count, outcome.live_count);
    check_equal(state.live_rays, outcome.live_rays);
    check_that(outcome.live_count < inputs->sample_count); /* some ray stops early */
    check_gradients(fixture, inputs, &outcome, deterministic || has_visibility(fixture));
    if (!deterministic)
        check_live_list(fixture, inputs, &outcome);
    check_losses(fixture, &outcome, groups);
    composite_outcome_destroy(&outcome);
}

float *composite_run(struct fixture *fixture, const struct inputs *inputs, uint32_t which,
                     double losses[2])
{
    const struct State state = {
        .step = inputs->step,
        .ray_count = inputs->ray_count,
        .sample_count = inputs->sample_count,
        .loss_scale = LOSS_SCALE,
        .keep_gain = inputs->keep.keep_gain,
        .mean_loss = inputs->keep.mean_loss,
    };
    uint32_t groups = fixture_groups(fixture, inputs->ray_count);
    composite_put_inputs(fixture, inputs);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_run(fixture, "composite", (struct Push){.b = fixture->local_size, .e = which}, groups);
    float *reduce = fixture_read(fixture, BIND_REDUCE);
    losses[0] = losses[1] = 0;
    for (uint32_t g = 0; g < groups; g++) {
        losses[0] += reduce[REDUCE_LOSS + 2 * g];
        losses[1] += fixture->constants.values[SPEC_DISTORTION] ? reduce[REDUCE_DISTORTION + g] : 0;
    }
    free(reduce);
    return fixture_read(fixture, BIND_FIELD_GRADIENTS);
}
