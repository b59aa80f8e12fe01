/* Runs check_gradients, and compares loss scale, statistics and back-offs with the reference; runs
 * finish_step. */
#include "certify/optim.h"

struct fixture optim_fixture_of_sums(struct gpu_device *device, uint32_t features,
                                     enum vkn_gradient_sums sums)
{
    struct vkn_config settings = {
        .gradient_sums = sums, .grid = {.levels = 3, .features = features}, .loss.distortion = -1};
    struct fixture fixture = fixture_configure(device, settings);
    fixture.config.backward_groups = 7;
    fixture.config.norm_interval = 1;
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

struct fixture optim_fixture(struct gpu_device *device, uint32_t features)
{
    return optim_fixture_of_sums(device, features, VKN_SUMS_DEFAULT);
}

void optim_put_state(struct fixture *fixture, struct State state)
{
    fixture_put(fixture, BIND_STATE, &state, sizeof state);
}

static struct State get_state(struct fixture *fixture)
{
    struct State state;
    fixture_get(fixture, BIND_STATE, &state, sizeof state);
    return state;
}

#define GROUPS 11u

/* Sets the number of workgroups that wrote loss sums, as composite does. */
static void put_losses(const struct fixture *fixture, struct State *state, uint32_t losses)
{
    bool per_invocation = fixture->constants.values[SPEC_CPU_KERNELS];
    state->dispatches[per_invocation ? DISPATCH_RAYS : DISPATCH_FORWARD].x = losses;
}

/* Reads the state after the last workgroup, which resets the count of finished ones. */
static struct State get_finished(struct fixture *fixture)
{
    struct State state = get_state(fixture);
    check_equal(state.dispatches[DISPATCH_PARAMS].finished, 0);
    return state;
}

struct State optim_run_checks(struct fixture *fixture, const float *gradients, struct State before,
                              uint32_t losses)
{
    float pairs[2 * 300];
    for (uint32_t i = 0; i < losses; i++) {
        pairs[2 * i] = 1;
        pairs[2 * i + 1] = 2;
    }
    put_losses(fixture, &before, losses);
    optim_put_state(fixture, before);
    fixture_poison(fixture, BIND_REDUCE);
    fixture_poison(fixture, BIND_STATS);
    fixture_put(fixture, BIND_REDUCE, pairs, 8ull * losses);
    fixture_put(fixture, BIND_GRADIENTS, gradients, 4ull * fixture->model.param_count);
    fixture_run(fixture, "check_gradients", (struct Push){.b = fixture->local_size}, GROUPS);
    return get_finished(fixture);
}

void optim_check_state(const struct fixture *fixture, const struct State *before,
                       const struct State *after, double norm)
{
    struct State expected = *before;
    bool finite = isfinite(norm) && !before->nonfinite;
    double clip = fixture->config.clip_norm;
    reference_loss_scale(&fixture->config, finite, &expected);
    check_equal(after->nonfinite, !finite);
    check_equal(after->updates, expected.updates);
    check_equal(after->good_steps, expected.good_steps);
    check_equal(after->skipped_steps, expected.skipped_steps);
    check_that(after->loss_scale == expected.loss_scale);
    check_equal(after->settled, expected.settled);
    check_equal(after->backoffs, expected.backoffs);
    check_equal(after->rate_cuts, expected.rate_cuts);
    if (!finite)
        return;
    check_close(after->grad_norm, norm, 1e-5, norm, "gradient norm", 0);
    double factor = (clip > 0 && norm > clip ? clip / norm : 1) / before->loss_scale;
    check_close(after->gradient_factor, factor, 1e-5, factor, "gradient factor", 0);
}

void optim_check_stats(struct fixture *fixture, const struct State *before,
                       const struct State *after, uint32_t losses)
{
    struct Stats *ring = fixture_read(fixture, BIND_STATS),
                 *stats = &ring[before->step % STATS_RING];
    size_t words = sizeof *ring / 4, at = (size_t)(stats - ring) * words;
    check_equal(stats->step, before->step);
    check_equal(stats->rays, before->ray_count);
    check_equal(stats->samples, before->sample_count);
    check_equal(stats->live, before->live_count);
    check_equal(stats->skipped_steps, after->skipped_steps);
    check_close(stats->loss, 1.0 * losses / before->live_rays, 1e-6, 1, "loss", 0);
    check_close(stats->square, 2.0 * losses / before->live_rays, 1e-6, 1, "square", 0);
    check_that(stats->learning_rate == before->learning_rate);
    check_that(stats->loss_scale == before->loss_scale); /* the scale that the step used */
    check_equal(stats->rate_cuts, after->rate_cuts);
    check_that(stats->kept_share == 0 && stats->keep_weight == 0); /* no ray is dropped */
    check_that(after->keep_gain == 0 && after->mean_loss == 0);
    double underflowed = before->rounded > 0 ? (double)before->underflowed / before->rounded : 0;
    check_close(stats->underflowed, underflowed, 1e-6, underflowed, "underflowed share of step",
                before->step);
    if (!after->nonfinite)
        check_that(stats->grad_norm == after->grad_norm);
    check_poisoned(ring, 0, at);
    check_poisoned(ring, at + words, STATS_RING * words);
    free(ring);
}

const struct State optim_usual = {
    .step = 1000,
    .ray_count = 640,
    .sample_count = 9000,
    .live_count = 7000,
    .live_rays = 600,
    .learning_rate = 0.01f,
    .loss_scale = 1024,
    .good_steps = 3,
    .skipped_steps = 5,
    .updates = 42,
};

struct State optim_run_losses(struct fixture *fixture, struct State before, const float sums[3])
{
    float *reduce = base_alloc(REDUCE_SIZE, sizeof *reduce);
    for (uint32_t i = 0; i < REDUCE_SIZE; i++)
        reduce[i] = NAN; /* not read */
    reduce[REDUCE_LOSS] = sums[0];
    reduce[REDUCE_LOSS + 1] = sums[1];
    reduce[REDUCE_DISTORTION] = sums[2];
    float *gradients = base_alloc(fixture->model.param_count, sizeof *gradients);
    gradients[5] = 1;
    put_losses(fixture, &before, 1);
    optim_put_state(fixture, before);
    fixture_put(fixture, BIND_REDUCE, reduce, REDUCE_SIZE * sizeof *reduce);
    fixture_put(fixture, BIND_GRADIENTS, gradients, 4ull * fixture->model.param_count);
    fixture_run(fixture, "check_gradients", (struct Push){.b = fixture->local_size}, GROUPS);
    free(gradients);
    free(reduce);
    return get_finished(fixture);
}

/* Copies the parts of the state that reference and device must agree on. */
static void copy_scale(const struct State *from, struct State *to)
{
    to->loss_scale = from->loss_scale;
    to->good_steps = from->good_steps;
    to->skipped_steps = from->skipped_steps;
    to->updates = from->updates;
    to->settled = from->settled;
    to->backoffs = from->backoffs;
    to->tolerated = from->tolerated;
    to->rate_cuts = from->rate_cuts;
}

struct State optim_run_steps(struct fixture *fixture, struct State start, const char *steps)
{
    float *gradients = base_alloc(fixture->model.param_count, sizeof *gradients);
    struct State expected = start, device = start;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    for (; *steps; steps++) {
        bool finite = *steps != 'b';
        device.rounded = expected.rounded = 1000;
        device.underflowed = expected.underflowed = *steps == 'u' ? 11 : 9;
        gradients[77] = finite ? 1 : INFINITY;
        struct State after = optim_run_checks(fixture, gradients, device, 1);
        reference_loss_scale(&fixture->config, finite, &expected);
        copy_scale(&after, &device);
        check_equal(after.nonfinite, !finite);
    }
    free(gradients);
    struct State both = start;
    copy_scale(&expected, &both);
    device.rounded = start.rounded;
    device.underflowed = start.underflowed;
    check_memory(&device, &both, sizeof both);
    return device;
}

void optim_check_backoffs(struct fixture *fixture, const char *steps, uint32_t backoffs,
                          uint32_t cuts, double scale)
{
    const struct State start = {.step = 7, .live_rays = 1, .loss_scale = 1024};
    struct State state = optim_run_steps(fixture, start, steps);
    if (state.backoffs != backoffs || state.rate_cuts != cuts || state.loss_scale != scale)
        check_fail("after %s: %u back-offs, %u rate cuts, scale %g", steps, state.backoffs,
                   state.rate_cuts, state.loss_scale);
}

void optim_check_scale(struct fixture *fixture, const char *steps, double scale, uint32_t tolerated)
{
    const struct State start = {.step = 7, .live_rays = 1, .loss_scale = 1024};
    struct State state = optim_run_steps(fixture, start, steps);
    if (state.loss_scale != scale || state.tolerated != tolerated)
        check_fail("after %s: scale %g, %u tolerated", steps, state.loss_scale, state.tolerated);
}

/* The buffers that finish_step writes. */
static const uint32_t finished[] = {BIND_STATE, BIND_GRADIENTS, BIND_STATS, BIND_DISPATCHES,
                                    BIND_ACCUMULATORS};

static void put_step(struct fixture *fixture, struct State before, float last)
{
    const float losses[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, distortions[] = {2, 3, 5, 7, 11};
    const struct Control control = {.step_limit = 2000};
    struct random random = {812};
    uint32_t mlp = fixture->model.mlp_params, params = fixture->model.param_count;
    float *partials = random_floats(&random, 7ull * mlp, -1, 1);
    float *reduce = base_alloc(REDUCE_SIZE, sizeof *reduce);
    int64_t *sums = base_alloc(params, sizeof *sums);
    partials[7 * mlp - 1] = last;
    for (uint32_t i = mlp; i < params; i++)
        sums[i] = (int64_t)random_word(&random) - INT32_MAX;
    memcpy(reduce + REDUCE_LOSS, losses, sizeof losses);
    memcpy(reduce + REDUCE_DISTORTION, distortions, sizeof distortions);
    for (size_t i = 0; i < BASE_COUNT(finished); i++)
        fixture_poison(fixture, finished[i]);
    put_losses(fixture, &before, BASE_COUNT(distortions));
    optim_put_state(fixture, before);
    fixture_put(fixture, BIND_CONTROL, &control, sizeof control);
    fixture_put(fixture, BIND_PARTIALS, partials, 28ull * mlp);
    fixture_put(fixture, BIND_REDUCE, reduce, REDUCE_SIZE * sizeof *reduce);
    if (fixture->backend.sums == VKN_SUMS_FIXED)
        fixture_put(fixture, BIND_ACCUMULATORS, sums, 8ull * params);
    free(sums);
    free(reduce);
    free(partials);
}

void optim_check_finish(struct gpu_device *device, enum vkn_gradient_sums sums, float last)
{
    struct fixture fixture = optim_fixture_of_sums(device, 2, sums);
    struct State before = optim_usual;
    before.step = 1003;
    struct Push push = {.a = before.step % UPDATE_INTERVAL, .b = fixture.local_size};
    void *expected[BASE_COUNT(finished)];
    fixture.config.norm_interval = UPDATE_INTERVAL;
    fixture_put(&fixture, BIND_CONFIG, &fixture.config, sizeof fixture.config);
    put_step(&fixture, before, last);
    fixture_run_variant(&fixture, "reduce_gradients", FIELD_REDUCE, push, GROUPS);
    fixture_run(&fixture, "check_gradients", push, GROUPS);
    fixture_run(&fixture, "begin_step", push, 1);
    for (size_t i = 0; i < BASE_COUNT(finished); i++)
        expected[i] = fixture_read(&fixture, finished[i]);
    put_step(&fixture, before, last);
    push.a--; /* the step that ends */
    fixture_run_variant(&fixture, "finish_step", FIELD_REDUCE, push, GROUPS);
    for (size_t i = 0; i < BASE_COUNT(finished); i++) {
        void *result = fixture_read(&fixture, finished[i]);
        check_memory(result, expected[i], fixture.buffers[finished[i]].size);
        free(result);
        free(expected[i]);
    }
    struct State after = get_finished(&fixture);
    check_equal(after.step, before.step + 1);
    check_equal(after.update_skipped, isnan(last));
    check_that(after.update_rate == before.learning_rate);
    fixture_destroy(&fixture);
}
