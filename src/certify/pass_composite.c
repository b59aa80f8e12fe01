/* Tests composite and its variants for pictures, normals and surfaces against the reference. */
#include "certify/fixture.h"

/* Alpha thresholds: the setting, and the occupancy grid's threshold. */
#define SETTING   0.01f
#define THRESHOLD 0.007f

/* Random rays with consecutive samples of random field values. */
struct inputs {
    uint32_t ray_count, sample_count;
    uint32_t step;
    double threshold;  /* of the occupancy grid */
    struct State keep; /* keep_gain and mean_loss */
    uint32_t which;    /* COMPOSITE_* */
    struct Ray *rays;
    struct RayResult *results;
    struct Sample *samples;
    float (*field)[4];
    struct reference_sample *expected; /* the samples in double precision */
};

/* Makes transparent, mixed and opaque rays; some without samples, some outside the step. */
static uint32_t random_ray(struct inputs *inputs, uint32_t r, uint32_t first,
                           const struct reference_stepping *stepping, struct random *random)
{
    struct Ray *ray = &inputs->rays[r];
    uint32_t count = random_below(random, 5) == 0 ? 0 : random_below(random, 150);
    double t = random_between(random, 0.2, 1), least = random_between(random, -5, 1);
    for (int c = 0; c < 3; c++) {
        ray->background[c] = (float)random_between(random, 0, 1);
        ray->target[c] = (float)random_between(random, 0, 1);
    }
    ray->target[3] = (float)random_between(random, 0, 1);
    ray->last = 500;
    double direction[3];
    random_direction(random, direction);
    for (int i = 0; i < 3; i++) {
        ray->origin[i] = (float)random_between(random, -1, 2);
        ray->direction[i] = (float)direction[i];
    }
    ray->distance_scale = (float)random_between(random, 0.7, 1);
    for (uint32_t s = first; s < first + count; s++) {
        double step = reference_step_size(stepping, t);
        inputs->samples[s] =
            (struct Sample){(float)t, (float)(step * random_between(random, 0.3, 2)), r};
        for (int c = 0; c < 3; c++)
            inputs->field[s][c] = (float)random_between(random, 0.01, 0.99);
        inputs->field[s][3] = (float)exp(random_between(random, least, least + 5));
        t = fmin(t + step * (1 + random_below(random, 3)), 2000);
    }
    inputs->results[r] = (struct RayResult){.transmittance = 1, .first = first, .count = count};
    return count;
}

/* Returns the width of a sample in the unit of density, contracted where space is. */
static double width_of(const struct fixture *fixture, const struct Ray *ray,
                       const struct Sample *sample)
{
    const struct reference_space space = reference_space(&fixture->settings);
    double position[3];
    for (int i = 0; i < 3; i++)
        position[i] = ray->origin[i] + (double)sample->t * ray->direction[i];
    return sample->width * reference_shrinking(&space, position);
}

static struct inputs inputs_create(const struct fixture *fixture, uint32_t rays, uint32_t seed)
{
    struct random random = {seed};
    struct reference_stepping stepping =
        reference_stepping(&fixture->config, fixture_contracts(fixture));
    uint32_t capacity = fixture->config.sample_capacity;
    struct inputs inputs = {
        .ray_count = rays, .step = OCCUPANCY_WARMUP, .threshold = (double)THRESHOLD};
    inputs.rays = base_alloc(rays, sizeof *inputs.rays);
    inputs.results = base_alloc(rays, sizeof *inputs.results);
    inputs.samples = base_alloc(capacity, sizeof *inputs.samples);
    inputs.field = base_alloc(capacity, sizeof *inputs.field);
    inputs.expected = base_alloc(capacity, sizeof *inputs.expected);
    for (uint32_t r = 0; r < rays; r++)
        inputs.sample_count += random_ray(&inputs, r, inputs.sample_count, &stepping, &random);
    check_that(inputs.sample_count <= capacity);
    for (uint32_t s = 0; s < inputs.sample_count; s++) {
        struct reference_sample *sample = &inputs.expected[s];
        sample->t = inputs.samples[s].t;
        sample->width = width_of(fixture, &inputs.rays[inputs.samples[s].ray], &inputs.samples[s]);
        sample->density = inputs.field[s][3];
        for (int c = 0; c < 3; c++)
            sample->color[c] = inputs.field[s][c];
        sample->length = inputs.samples[s].width;
        const struct reference_space space = reference_space(&fixture->settings);
        reference_normalize(&space, inputs.samples[s].width, sample);
    }
    return inputs;
}

static void inputs_destroy(struct inputs *inputs)
{
    void *all[] = {inputs->rays, inputs->results, inputs->samples, inputs->field, inputs->expected};
    for (size_t i = 0; i < BASE_COUNT(all); i++)
        free(all[i]);
}

static void put_inputs(struct fixture *fixture, const struct inputs *inputs)
{
    fixture_put(fixture, BIND_RAYS, inputs->rays, inputs->ray_count * sizeof *inputs->rays);
    fixture_put(fixture, BIND_RESULTS, inputs->results,
                inputs->ray_count * sizeof *inputs->results);
    fixture_put(fixture, BIND_SAMPLES, inputs->samples,
                inputs->sample_count * sizeof *inputs->samples);
    fixture_put(fixture, BIND_FIELD, inputs->field, inputs->sample_count * sizeof *inputs->field);
}

/* Moves opacities away from the threshold, so that rounding does not decide. */
static void avoid_threshold(struct inputs *inputs)
{
    for (uint32_t s = 0; s < inputs->sample_count; s++) {
        double alpha = -expm1(-inputs->expected[s].density * inputs->expected[s].width);
        if (fabs(alpha / (double)THRESHOLD - 1) < 1e-3 || fabs(alpha / (double)SETTING - 1) < 1e-3)
            inputs->expected[s].density = inputs->field[s][3] *= 1.01f;
    }
}

static struct reference_ray ray_start(const struct fixture *fixture, const struct inputs *inputs)
{
    struct reference_ray ray = reference_ray_start;
    bool cells = fixture->constants.values[SPEC_SAMPLING] == SAMPLING_OCCUPANCY;
    if (inputs->step >= OCCUPANCY_WARMUP)
        ray.current_alpha_threshold =
            fmin((double)fixture->config.alpha_threshold, cells ? inputs->threshold : 1);
    return ray;
}

/* Call before the fixture's first pipeline is created. */
static void set_alpha_threshold(struct fixture *fixture)
{
    fixture_set_constant(fixture, SPEC_ALPHA_THRESHOLD, 1);
    fixture->config.alpha_threshold = SETTING;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
}

/* Call before the first pipeline is created. A weight of 0 is a loss without effect. */
static void set_distortion(struct fixture *fixture, float weight)
{
    bool is_ladder = fixture->settings.loss.distortion_curve == VKN_DISTORTION_LADDER;
    fixture_set_constant(fixture, SPEC_DISTORTION,
                         is_ladder ? DISTORTION_LADDER : DISTORTION_LINEAR);
    fixture->config.loss_distortion = weight;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
}

/* Call before the first pipeline is created. Every third pixel may show the sky. */
static void set_density_losses(struct fixture *fixture, struct inputs *inputs, float weight,
                               float range)
{
    fixture_set_constant(fixture, SPEC_SKY, 1);
    for (uint32_t r = 0; r < inputs->ray_count; r += 3)
        inputs->rays[r].has_sky = 1;
    fixture->config.loss_near = weight;
    fixture->config.near_start = range;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
}

/* Call before the first pipeline is created. Most rays know a distance: of a sample, or of none. */
static void set_known_depth(struct fixture *fixture, struct inputs *inputs, float weight)
{
    struct random random = {5};
    fixture_set_constant(fixture, SPEC_DEPTH, 1);
    fixture->config.loss_depth = weight;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        const struct RayResult *range = &inputs->results[r];
        uint32_t kind = random_below(&random, 4);
        float at = (float)random_between(&random, 0.2, 3);
        if (kind == 0 && range->count > 0)
            at = inputs->samples[range->first + random_below(&random, range->count)].t;
        inputs->rays[r].known_t = at;
        inputs->rays[r].known_sigma = kind == 3 ? 0 : (float)random_between(&random, 0.001, 0.2);
    }
}

/* Call before the first pipeline is created. Sets the share and the number of the first ray. */
static void set_keep(struct fixture *fixture, struct inputs *inputs, float share)
{
    fixture_set_constant(fixture, SPEC_KEEP, 1);
    fixture->config.keep_share = share;
    fixture->config.keep_least = share / 4;
    fixture->config.first_ray = 4096;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    inputs->keep = (struct State){.keep_gain = share, .mean_loss = 0.05f};
}

static struct fixture fixture_of_curve(struct gpu_device *device, enum vkn_loss loss,
                                       bool deterministic, uint32_t aabb_scale, bool contracted,
                                       enum vkn_distortion_curve curve)
{
    struct vkn_config settings = {
        .scene = {.aabb_scale = aabb_scale,
                  .contraction = contracted ? VKN_CONTRACTION_CUBE : VKN_CONTRACTION_NONE},
        .loss = {.kind = loss, .distortion_curve = curve},
        .march.near_distance = 0.15f, /* nearer than all samples */
        .batch = {.samples = 8192, .max_rays = 320},
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture_set_constant(&fixture, SPEC_DETERMINISTIC, deterministic);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

static struct fixture fixture_of(struct gpu_device *device, enum vkn_loss loss, bool deterministic,
                                 uint32_t aabb_scale, bool contracted)
{
    return fixture_of_curve(device, loss, deterministic, aabb_scale, contracted,
                            VKN_DISTORTION_LINEAR);
}

/* ---- training ------------------------------------------------------------------------------ */

#define LOSS_SCALE 64.0

/* The expected result of one training step on the rays. */
struct outcome {
    double loss, square, distortion; /* sums over the rays */
    uint32_t live_rays, live_count, kept_rays, reached_count;
    double (*gradients)[4]; /* [sample][rgb, density]; 0 for samples that are not live */
    double *scale;          /* magnitude of each sample's gradients, for tolerances */
    bool *live;
};

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
    struct reference_ray result = ray_start(fixture, inputs);
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

static struct outcome expect(const struct fixture *fixture, const struct inputs *inputs)
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

static void check_training(struct fixture *fixture, const struct inputs *inputs, bool deterministic)
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
    put_inputs(fixture, inputs);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    struct outcome outcome = expect(fixture, inputs);
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
    free(outcome.gradients);
    free(outcome.scale);
    free(outcome.live);
}

static void test_training(struct gpu_device *device)
{
    static const enum vkn_loss losses[] = {VKN_LOSS_HUBER, VKN_LOSS_L2, VKN_LOSS_L1,
                                           VKN_LOSS_CHARBONNIER};
    for (uint32_t n = 0; n < 10; n++) {
        bool deterministic = n >= 4 && n < 9, contracted = n % 5 == 3 || n == 9;
        struct fixture fixture =
            fixture_of_curve(device, losses[n % 4], deterministic, n % 2 ? 8 : 1, contracted,
                             n < 8 ? VKN_DISTORTION_LINEAR : VKN_DISTORTION_LADDER);
        struct inputs inputs = inputs_create(&fixture, 301 - 30 * n, 40 + n);
        if (n == 1 || n == 3 || n == 6 || n >= 8)
            set_distortion(&fixture, 0.7f);
        if (n == 0 || n == 3 || n == 6 || n == 9)
            set_density_losses(&fixture, &inputs, 0.4f, 0.9f);
        check_training(&fixture, &inputs, deterministic);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Known depths train densities: with and without distortion and keep, in contracted space, in
 * deterministic mode, with an alpha threshold; not with coarse samples. */
static void test_known_depth(struct gpu_device *device)
{
    for (uint32_t n = 0; n < 6; n++) {
        struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, n == 1, n == 2 ? 8 : 1, n == 2);
        struct inputs inputs = inputs_create(&fixture, 301 - 30 * n, 110 + n);
        set_known_depth(&fixture, &inputs, 0.3f);
        if (n == 1 || n == 2)
            set_distortion(&fixture, 0.7f);
        if (n == 3)
            set_keep(&fixture, &inputs, 0.5f);
        if (n == 4) {
            set_alpha_threshold(&fixture);
            avoid_threshold(&inputs);
        }
        inputs.which = n == 5 ? COMPOSITE_COARSE : COMPOSITE_ALL;
        check_training(&fixture, &inputs, n == 1);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Samples below the alpha threshold are skipped: they have no gradient and are not listed as live.
 */
static void test_alpha_threshold(struct gpu_device *device)
{
    for (uint32_t n = 0; n < 5; n++) {
        bool deterministic = n % 2;
        struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, deterministic, 1, n == 2);
        struct inputs inputs = inputs_create(&fixture, 280, 90 + n);
        uint32_t below = 0;
        set_alpha_threshold(&fixture);
        if (n < 3)
            set_distortion(&fixture, 0.7f);
        avoid_threshold(&inputs);
        inputs.threshold = n < 2 ? (double)THRESHOLD : n == 3 ? 0 : 1;
        if (n == 3) /* without an occupancy grid, whose threshold stays 0 */
            fixture_set_constant(&fixture, SPEC_SAMPLING, SAMPLING_UNIFORM);
        inputs.step -= n == 4;
        for (uint32_t s = 0; s < inputs.sample_count; s++)
            below += inputs.expected[s].density * inputs.expected[s].width < 0.006;
        check_that(below > 1000 && below < inputs.sample_count - 1000);
        check_training(&fixture, &inputs, deterministic);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Compositing keeps the list that was made from densities: with a threshold, in contracted space,
 * with rays outside the loss, and in deterministic mode, which only counts. */
static void test_visibility(struct gpu_device *device)
{
    for (uint32_t n = 0; n < 5; n++) {
        bool deterministic = n == 4;
        struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, deterministic, 1, n == 2);
        struct inputs inputs = inputs_create(&fixture, 301 - 40 * n, 70 + n);
        fixture_set_constant(&fixture, SPEC_VISIBILITY, 1);
        if (n % 2) {
            set_alpha_threshold(&fixture);
            avoid_threshold(&inputs);
        }
        for (uint32_t r = 0; n == 3 && r < inputs.ray_count; r += 3)
            inputs.rays[r].last = r % 2 ? -2 : -3; /* not in the loss */
        if (n == 3)
            set_distortion(&fixture, 0.7f);
        check_training(&fixture, &inputs, deterministic);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Runs composite once; returns its gradients, which the caller frees, and the losses of colours and
 * of distortion. */
static float *run_composite(struct fixture *fixture, const struct inputs *inputs, uint32_t which,
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
    put_inputs(fixture, inputs);
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

/* Rays are dropped by their losses: they have no live samples, but count in loss and squared error;
 * the gradients of others are larger. Without a mean loss, and in a coarse field, all are kept. */
static void test_keep(struct gpu_device *device)
{
    for (uint32_t n = 0; n < 8; n++) {
        bool deterministic = n % 2;
        struct fixture fixture =
            fixture_of(device, n % 3 ? VKN_LOSS_HUBER : VKN_LOSS_L1, deterministic, 1, n == 4);
        struct inputs inputs = inputs_create(&fixture, 301 - 20 * n, 200 + n);
        set_keep(&fixture, &inputs, n < 4 ? 0.25f : 0.6f);
        if (n == 2 || n == 3 || n == 6)
            set_distortion(&fixture, 0.7f);
        if (n == 4 || n == 5) {
            set_alpha_threshold(&fixture);
            avoid_threshold(&inputs);
        }
        if (n == 2 || n == 5 || n == 6)
            set_density_losses(&fixture, &inputs, 0.4f, 0.9f);
        if (n == 6)
            inputs.which = COMPOSITE_COARSE;
        if (n == 7)
            inputs.keep.mean_loss = 0;
        for (uint32_t r = 0; n == 0 && r < inputs.ray_count; r += 5)
            inputs.rays[r].last = r % 2 ? -2 : -3; /* not in the loss */
        check_training(&fixture, &inputs, deterministic);
        inputs_destroy(&inputs);
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
        struct outcome one = expect(fixture, &(struct inputs){
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
        free(one.gradients);
        free(one.scale);
        free(one.live);
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
    float *gradients = run_composite(fixture, &now, COMPOSITE_ALL, losses);
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
        check_close(draws->correlation[i], 0, 4.5, sqrt((double)degrees * DRAWS), "correlation", i);
}

/* The mean over many steps of the gradients is the gradient of all rays within its standard error.
 */
static void test_keep_is_unbiased(struct gpu_device *device)
{
    double losses[2], all[PROJECTIONS] = {0};
    struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, true, 1, false);
    struct inputs inputs = inputs_create(&fixture, 150, 191);
    set_keep(&fixture, &inputs, 0.3f);
    set_distortion(&fixture, 0.05f);
    struct draws draws = {
        .probabilities = keep_probabilities(&fixture, &inputs),
        .kept = base_alloc(inputs.ray_count, sizeof *draws.kept),
    };
    for (uint32_t draw = 0; draw < DRAWS; draw++)
        add_draw(&fixture, &inputs, draw, &draws);
    check_frequencies(&inputs, &draws);
    inputs.keep.mean_loss = 0; /* all are kept */
    float *gradients = run_composite(&fixture, &inputs, COMPOSITE_ALL, losses);
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
        check_close(mean, all[i], 4, error, "mean gradient", i);
    }
    free(gradients);
    free(draws.probabilities);
    free(draws.kept);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
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
        struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, true, 1, false);
        struct inputs inputs = inputs_create(&fixture, 130, 50);
        if (n > 0)
            set_distortion(&fixture, weights[n]);
        gradients[n] = run_composite(&fixture, &inputs, which[n], losses[n]);
        for (uint32_t s = 0; n > 0 && n < 3 && s < 4 * inputs.sample_count; s++)
            check_close(gradients[n][s], gradients[0][s], 1e-6, 1, "gradient", s);
        inputs_destroy(&inputs);
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
        struct fixture fixture = fixture_of_curve(
            device, VKN_LOSS_L2, true, 4, false, n ? VKN_DISTORTION_LADDER : VKN_DISTORTION_LINEAR);
        struct inputs inputs = inputs_create(&fixture, RAYS, 54);
        double losses[2], without = 0;
        set_distortion(&fixture, 2);
        float *gradients = run_composite(&fixture, &inputs, COMPOSITE_ALL, losses);
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
            free(run_composite(&fixture, &inputs, COMPOSITE_ALL, above));
            inputs.field[most][3] = (float)(kept - by);
            free(run_composite(&fixture, &inputs, COMPOSITE_ALL, below));
            inputs.field[most][3] = (float)kept;
            double color = (above[0] - below[0]) / (2 * by) / RAYS * LOSS_SCALE;
            double all = color + (above[1] - below[1]) / (2 * by) / RAYS * LOSS_SCALE;
            check_close(gradients[4 * most + 3], all, 0.01, fabs(all) + 0.1 / kept,
                        "derivative by density", most);
            without = fmax(without, fabs(color - all) * kept);
        }
        check_that(without > 0.05); /* the distortion loss matters */
        free(gradients);
        inputs_destroy(&inputs);
        fixture_destroy(&fixture);
    }
}

/* Rays whose samples did not fit, and rays of masked pixels, are not in the loss but count in the
 * mean's divisor. Rays that miss the cube are in the loss: they show the background. */
static void test_excluded(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, false, 1, false);
    struct inputs inputs = inputs_create(&fixture, 130, 50);
    for (uint32_t r = 0; r < inputs.ray_count; r += 3) {
        inputs.rays[r].last = r % 2 ? -2 : -3; /* the marks that march_rays and generate_rays set */
        inputs.results[r].count = 0;
    }
    for (uint32_t r = 1; r < inputs.ray_count; r += 7) {
        inputs.rays[r].last = fminf(inputs.rays[r].last, -1);
        inputs.results[r].count = 0;
    }
    check_training(&fixture, &inputs, false);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* Deterministic: where a ray's samples did not fit, the end of the sample buffer belongs to no ray.
 * Field values that the forward pass left there must not be taken for gradients. */
static void test_overflow_leaves_no_gradient(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, true, 1, false);
    struct inputs inputs = inputs_create(&fixture, 130, 51);
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
    put_inputs(&fixture, &inputs);
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
    inputs_destroy(&inputs);
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
    put_inputs(fixture, &inputs);
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    fixture_run(fixture, "composite", (struct Push){.b = fixture->local_size},
                fixture_groups(fixture, EXTREMES));
    struct outcome outcome = expect(fixture, &inputs);
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
    free(outcome.gradients);
    free(outcome.scale);
    free(outcome.live);
    inputs_destroy(&inputs);
}

/* Densities of any size, including infinity, with samples so narrow that the densest are
 * translucent, and with wide ones. */
static void test_extreme_densities(struct gpu_device *device)
{
    struct fixture fixture = fixture_of(device, VKN_LOSS_L2, false, 1, false);
    set_distortion(&fixture, 0.7f);
    check_extremes(&fixture, 0x1p-8f);
    check_extremes(&fixture, 0x1p-26f);
    fixture_destroy(&fixture);
}

/* ---- rendering ----------------------------------------------------------------------------- */

static void check_view(struct fixture *fixture, const struct inputs *inputs,
                       const struct reference_ray *expected)
{
    struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
    struct Ray *rays = fixture_read(fixture, BIND_RAYS);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        for (int c = 0; c < 3; c++)
            check_close(results[r].color[c], expected[r].color[c], 1e-5, 1, "colour of ray", r);
        check_close(results[r].transmittance, expected[r].transmittance, 1e-5, 1,
                    "transmittance of ray", r);
        check_close(results[r].depth, expected[r].depth, 1e-5, fmax(expected[r].depth, 3),
                    "depth of ray", r);
        bool stops = expected[r].transmittance < fixture->config.early_stop;
        check_that(rays[r].last == (stops ? -1.0f : inputs->rays[r].last));
    }
    free(results);
    free(rays);
}

/* Checks sums of weight * normal, for samples whose normals equal their colours. */
static void check_normals(struct fixture *fixture, const struct inputs *inputs,
                          const struct reference_ray *expected)
{
    float(*normals)[4] = fixture_read(fixture, BIND_NORMALS);
    for (uint32_t r = 0; r < inputs->ray_count; r++)
        for (int c = 0; c < 3; c++)
            check_close(normals[fixture->config.sample_capacity + r][c], expected[r].color[c], 1e-5,
                        1, "normal of ray", r);
    free(normals);
}

/* Runs the pass in rounds of at most 16 samples per ray. */
static void run_rounds(struct fixture *fixture, const struct inputs *inputs, const char *pass)
{
    uint32_t first[301], left[301];
    const struct State state = {.step = inputs->step, .threshold = (float)inputs->threshold};
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        first[r] = inputs->results[r].first;
        left[r] = inputs->results[r].count;
    }
    for (int round = 0; round < 10; round++) {
        struct RayResult *results = fixture_read(fixture, BIND_RESULTS);
        struct Ray *rays = fixture_read(fixture, BIND_RAYS);
        for (uint32_t r = 0; r < inputs->ray_count; r++) {
            results[r].first = first[r];
            results[r].count = rays[r].last < 0 ? 0 : left[r] < 16 ? left[r] : 16;
            first[r] += results[r].count;
            left[r] -= results[r].count;
        }
        fixture_put(fixture, BIND_RESULTS, results, fixture->buffers[BIND_RESULTS].size);
        fixture_run(fixture, pass, (struct Push){.a = 16, .b = inputs->ray_count},
                    fixture_groups(fixture, inputs->ray_count));
        free(results);
        free(rays);
    }
}

/* Composites all samples of every ray at once; the caller frees the result. */
static struct reference_ray *expect_view(const struct fixture *fixture, const struct inputs *inputs)
{
    struct reference_ray *expected = base_alloc(inputs->ray_count, sizeof *expected);
    for (uint32_t r = 0; r < inputs->ray_count; r++) {
        expected[r] = ray_start(fixture, inputs);
        reference_composite(&expected[r], inputs->expected + inputs->results[r].first,
                            inputs->results[r].count, fixture->config.early_stop);
    }
    return expected;
}

/* Uses the samples' colours as normals. */
static void put_normals(struct fixture *fixture, const struct inputs *inputs)
{
    float(*normals)[4] = base_alloc(fixture->buffers[BIND_NORMALS].size, 1);
    memcpy(normals, inputs->field, inputs->sample_count * sizeof *normals);
    fixture_put(fixture, BIND_NORMALS, normals, fixture->buffers[BIND_NORMALS].size);
    free(normals);
}

/* Rounds give the result of compositing all samples at once; normals are averaged like colours. */
static void check_view_rounds(struct gpu_device *device, bool contracted, bool alpha_threshold)
{
    struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, false, 8, contracted);
    struct inputs inputs = inputs_create(&fixture, 301, 60);
    if (alpha_threshold) {
        set_alpha_threshold(&fixture);
        avoid_threshold(&inputs);
    }
    struct reference_ray *expected = expect_view(&fixture, &inputs);
    put_inputs(&fixture, &inputs);
    run_rounds(&fixture, &inputs, "composite_view");
    check_view(&fixture, &inputs, expected);

    put_inputs(&fixture, &inputs);
    put_normals(&fixture, &inputs);
    run_rounds(&fixture, &inputs, "composite_normals");
    check_view(&fixture, &inputs, expected);
    check_normals(&fixture, &inputs, expected);
    free(expected);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static void test_view_rounds(struct gpu_device *device)
{
    check_view_rounds(device, false, false);
    check_view_rounds(device, true, false);
    check_view_rounds(device, false, true);
}

/* ---- surfaces ------------------------------------------------------------------------------ */

/* Returns the distance along a ray at which the transmittance is a half; 0 where it stays above. A
 * sample's density holds over the interval whose middle the sample is. */
static double median_distance(const struct fixture *fixture, const struct inputs *inputs,
                              uint32_t r)
{
    const struct reference_ray start = ray_start(fixture, inputs);
    double passed = 0; /* optical thickness */
    for (uint32_t i = 0; i < inputs->results[r].count; i++) {
        const struct reference_sample *sample = &inputs->expected[inputs->results[r].first + i];
        double thickness = sample->density * sample->width, low = 0, high = 1;
        if (!reference_alpha_test(&start, sample))
            continue;
        check_that(fabs(exp(-passed - thickness) - 0.5) > 1e-6); /* holds with this seed */
        if (exp(-passed - thickness) > 0.5) {
            passed += thickness;
            continue;
        }
        for (int round = 0; round < 60; round++) {
            double middle = (low + high) / 2;
            *(exp(-passed - middle * thickness) > 0.5 ? &low : &high) = middle;
        }
        return sample->t + (low - 0.5) * inputs->samples[inputs->results[r].first + i].width;
    }
    return 0;
}

/* Median variants differ only in depth: the surface's distance instead of the mean. */
static void check_surfaces(struct gpu_device *device, bool contracted, bool alpha_threshold)
{
    static const char *const passes[] = {"composite_normals_median", "composite_median"};
    struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, false, 8, contracted);
    struct inputs inputs = inputs_create(&fixture, 301, 61);
    if (alpha_threshold) {
        set_alpha_threshold(&fixture);
        avoid_threshold(&inputs);
    }
    struct reference_ray *expected = expect_view(&fixture, &inputs);
    uint32_t hits = 0;
    for (uint32_t r = 0; r < inputs.ray_count; r++) {
        expected[r].depth = median_distance(&fixture, &inputs, r);
        hits += expected[r].depth > 0;
    }
    check_that(hits > 50 && hits < 250);
    for (size_t i = 0; i < BASE_COUNT(passes); i++) {
        put_inputs(&fixture, &inputs);
        put_normals(&fixture, &inputs);
        run_rounds(&fixture, &inputs, passes[i]);
        check_view(&fixture, &inputs, expected);
        if (i == 0)
            check_normals(&fixture, &inputs, expected);
    }
    free(expected);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static void test_surfaces(struct gpu_device *device)
{
    check_surfaces(device, false, false);
    check_surfaces(device, true, false);
    check_surfaces(device, false, true);
}

/* By hand: a sample whose transmittance is 2^-n reaches a half at its end (n = 1), in its middle (n
 * = 2), after a quarter (n = 4). */
static void test_surface_by_hand(struct gpu_device *device)
{
    static const double halvings[] = {1.001, 2, 4, 0.999};
    static const double offsets[] = {0.5 - 0.001, 0, -0.25};
    struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, false, 1, false);
    const struct Ray rays[4] = {{.last = 500}, {.last = 500}, {.last = 500}, {.last = 500}};
    struct RayResult results[4];
    struct Sample samples[4];
    float field[4][4];
    const double width = 0.0078125;
    for (uint32_t r = 0; r < 4; r++) {
        results[r] = (struct RayResult){.transmittance = 1, .first = r, .count = 1};
        samples[r] = (struct Sample){1, (float)width, r};
        field[r][3] = (float)(halvings[r] * log(2) / width);
    }
    fixture_put(&fixture, BIND_RAYS, rays, sizeof rays);
    fixture_put(&fixture, BIND_RESULTS, results, sizeof results);
    fixture_put(&fixture, BIND_SAMPLES, samples, sizeof samples);
    fixture_put(&fixture, BIND_FIELD, field, sizeof field);
    fixture_run(&fixture, "composite_median", (struct Push){.a = 16, .b = 4}, 1);
    fixture_get(&fixture, BIND_RESULTS, results, sizeof results);
    for (uint32_t r = 0; r < 3; r++)
        check_close((results[r].depth - 1) / width, offsets[r], 2e-4, 1, "position in the sample",
                    r);
    check_that(results[3].depth == 0);
    fixture_destroy(&fixture);
}

/* ---- rounding ------------------------------------------------------------------------------ */

/* Types that the policy rounds to, and the spacing of their numbers between 1 and 2. */
static const struct rounding {
    uint32_t constant;
    double (*round)(double);
    double unit;
} f16 = {ROUND_COMPOSITING, reference_round_to_f16, 0x1p-10},
  bf16 = {ROUND_COMPOSITING * ROUND_BF16, reference_round_to_bf16, 0x1p-7};

static struct fixture rounded_bench(struct gpu_device *device, const struct rounding *rounding)
{
    struct fixture fixture = fixture_of(device, VKN_LOSS_HUBER, false, 1, false);
    fixture_set_constant(&fixture, SPEC_ROUNDED, rounding->constant);
    return fixture;
}

static bool is_rounded(const struct rounding *rounding, float x)
{
    return (double)x == rounding->round((double)x);
}

/* A ray's whole state is rounded. Scans round less often than the sequential reference does. */
static void check_rounded_view(struct gpu_device *device, const struct rounding *rounding)
{
    struct fixture fixture = rounded_bench(device, rounding);
    struct inputs inputs = inputs_create(&fixture, 301, 62);
    bool per_invocation = fixture.constants.values[SPEC_CPU_KERNELS];
    double tolerance = (per_invocation ? 2 : 40) * rounding->unit, difference = 0;
    put_inputs(&fixture, &inputs);
    run_rounds(&fixture, &inputs, "composite_view");
    struct RayResult *results = fixture_read(&fixture, BIND_RESULTS);
    for (uint32_t r = 0; r < inputs.ray_count; r++) {
        struct reference_ray exact = reference_ray_start, rounded = reference_ray_start;
        const struct reference_sample *samples = inputs.expected + inputs.results[r].first;
        rounded.round = rounding->round;
        reference_composite(&exact, samples, inputs.results[r].count, fixture.config.early_stop);
        reference_composite(&rounded, samples, inputs.results[r].count, fixture.config.early_stop);
        check_that(is_rounded(rounding, results[r].transmittance) &&
                   is_rounded(rounding, results[r].depth));
        check_close(results[r].transmittance, rounded.transmittance, tolerance, 1,
                    "transmittance of ray", r);
        check_close(results[r].depth, rounded.depth, tolerance, fmax(rounded.depth, 1),
                    "depth of ray", r);
        for (int c = 0; c < 3; c++) {
            check_that(is_rounded(rounding, results[r].color[c]));
            check_close(results[r].color[c], rounded.color[c], tolerance, 1, "colour of ray", r);
            difference = fmax(difference, fabs(results[r].color[c] - exact.color[c]));
        }
    }
    check_that(difference > rounding->unit);
    free(results);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

static void test_rounded_view(struct gpu_device *device)
{
    check_rounded_view(device, &f16);
    check_rounded_view(device, &bf16);
}

/* Distortion sums of rounded weights stay near those of exact weights. */
static void test_rounded_distortion(struct gpu_device *device)
{
    struct fixture fixture = rounded_bench(device, &f16);
    struct inputs inputs = inputs_create(&fixture, 130, 63);
    double losses[2], expected = 0;
    set_distortion(&fixture, 0.7f);
    free(run_composite(&fixture, &inputs, COMPOSITE_ALL, losses));
    for (uint32_t r = 0; r < inputs.ray_count; r++) {
        const struct reference_sample *samples = inputs.expected + inputs.results[r].first;
        struct reference_ray ray = reference_ray_start;
        ray.round = reference_round_to_f16;
        reference_composite(&ray, samples, inputs.results[r].count, fixture.config.early_stop);
        expected += 0.7 * reference_distortion(&ray, samples, 0, NULL);
    }
    check_close(losses[1], expected, 1e-2, expected, "distortion", 0);
    inputs_destroy(&inputs);
    fixture_destroy(&fixture);
}

/* By hand: where 1 - exp(-x) rounds to 0 in f16, thin fog is invisible however deep it is, and gets
 * no gradient. Fog three times as thick is visible. */
static void test_rounded_fog(struct gpu_device *device)
{
    enum { COUNT = 500 };
    static const float thickness[] = {0x1p-13f, 0x1.8p-12f};
    struct fixture fixture = rounded_bench(device, &f16);
    struct Ray rays[2] = {{.last = 500, .background = {1, 1, 1}},
                          {.last = 500, .background = {1, 1, 1}}};
    struct RayResult results[2];
    struct Sample samples[2 * COUNT];
    float field[2 * COUNT][4], gradients[2 * COUNT][4];
    for (uint32_t r = 0; r < 2; r++) {
        results[r] = (struct RayResult){.transmittance = 1, .first = r * COUNT, .count = COUNT};
        for (uint32_t i = r * COUNT; i < (r + 1) * COUNT; i++) {
            samples[i] = (struct Sample){1, 0x1p-8f, r};
            memcpy(field[i], (float[4]){0.5f, 0.5f, 0.5f, thickness[r] * 0x1p8f}, 16);
        }
    }
    struct State counts = {.ray_count = 2, .sample_count = 2 * COUNT, .loss_scale = LOSS_SCALE};
    fixture_put(&fixture, BIND_RAYS, rays, sizeof rays);
    fixture_put(&fixture, BIND_RESULTS, results, sizeof results);
    fixture_put(&fixture, BIND_SAMPLES, samples, sizeof samples);
    fixture_put(&fixture, BIND_FIELD, field, sizeof field);
    fixture_put(&fixture, BIND_STATE, &counts, sizeof counts);
    fixture_run(&fixture, "composite", (struct Push){.b = fixture.local_size}, 1);
    fixture_get(&fixture, BIND_FIELD_GRADIENTS, gradients, sizeof gradients);
    fixture_run(&fixture, "composite_view", (struct Push){.a = COUNT, .b = 2}, 1);
    fixture_get(&fixture, BIND_RESULTS, results, sizeof results);
    check_that(results[0].transmittance == 1 && results[0].color[0] == 0);
    check_close(results[1].transmittance, exp(-COUNT * 0x1p-11), 0.05, 1, "transmittance", 1);
    for (uint32_t i = 0; i < 2 * COUNT; i++)
        check_that((gradients[i][0] == 0) == (i < COUNT));
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST_BOTH(test_training),
    TEST_BOTH(test_alpha_threshold),
    TEST_BOTH(test_known_depth),
    TEST_BOTH(test_visibility),
    TEST_BOTH(test_keep),
    TEST_BOTH(test_keep_is_unbiased),
    TEST_BOTH(test_no_distortion),
    TEST_BOTH(test_parts_sum),
    TEST_BOTH(test_excluded),
    TEST_BOTH(test_overflow_leaves_no_gradient),
    TEST_BOTH(test_extreme_densities),
    TEST_BOTH(test_view_rounds),
    TEST_BOTH(test_surfaces),
    TEST_BOTH(test_surface_by_hand),
    TEST_BOTH(test_rounded_view),
    TEST_BOTH(test_rounded_distortion),
    TEST_BOTH(test_rounded_fog),
};
const struct certify_part certify_composite = {"composite", tests, BASE_COUNT(tests)};
