/* Runs begin_step, and compares rates, ray counts and dispatches with the reference. */
#include "certify/begin_step.h"

const struct State begin_step_usual = {
    .ray_count = 128,
    .sample_count = 3000,
    .live_count = 1000,
    .live_rays = 128,
    .reached_count = 2000,
    .kept_rays = 64,
    .keep_gain = 0.5f,
    .mean_loss = 0.25f,
    .loss_scale = 16,
    .good_steps = 7,
    .skipped_steps = 2,
    .updates = 90,
    .nonfinite = 1,
    .underflowed = 5,
    .rounded = 80,
};

struct fixture begin_step_fixture(struct gpu_device *device, bool deterministic)
{
    struct vkn_config settings = {.scene.aabb_scale = 4, .march.resolution = 64};
    struct fixture fixture = fixture_configure(device, settings);
    fixture_set_constant(&fixture, SPEC_DETERMINISTIC, deterministic);
    fixture_allocate(&fixture, 1, 1);
    return fixture;
}

struct State begin_step_run(struct fixture *fixture, struct State before, uint32_t slot,
                            uint32_t step_limit, float time_progress)
{
    const struct Control control = {.time_progress = time_progress, .step_limit = step_limit};
    struct State after;
    fixture_put(fixture, BIND_CONFIG, &fixture->config, sizeof fixture->config);
    fixture_put(fixture, BIND_CONTROL, &control, sizeof control);
    fixture_put(fixture, BIND_STATE, &before, sizeof before);
    fixture_run(fixture, "begin_step", (struct Push){.a = slot, .b = fixture->local_size}, 1);
    fixture_get(fixture, BIND_STATE, &after, sizeof after);
    return after;
}

void begin_step_check_rate(struct fixture *fixture, uint32_t step, float time_progress)
{
    struct State before = begin_step_usual;
    before.step = step;
    struct State after =
        begin_step_run(fixture, before, step % UPDATE_INTERVAL, NO_LIMIT, time_progress);
    double rate = reference_learning_rate(&fixture->config, step, time_progress);
    check_equal(after.step, step + 1);
    check_close(after.learning_rate, rate, 2e-6, rate, "learning rate of step", step);
}

void begin_step_check_scale(struct fixture *fixture, uint32_t step, double expected)
{
    struct State before = begin_step_usual;
    before.step = step;
    struct State after = begin_step_run(fixture, before, step % UPDATE_INTERVAL, NO_LIMIT, 0);
    check_that(reference_scheduled_scale(&fixture->config, step, before.loss_scale) == expected);
    check_that(after.loss_scale == expected);
}

void begin_step_check_rays(struct fixture *fixture, struct State before, uint32_t expected)
{
    struct State after = begin_step_run(fixture, before, 0, NO_LIMIT, 0);
    check_equal(reference_ray_count(&fixture->config, &before), expected);
    check_equal(after.ray_count, expected);
    uint32_t groups = (expected + fixture->local_size - 1) / fixture->local_size;
    check_equal(after.dispatches[DISPATCH_RAYS].x, groups);
    check_equal(after.dispatches[DISPATCH_MARCH].x, fixture_subgroups(fixture, expected));
}

void begin_step_check_runs(const struct State *state, bool runs)
{
    for (int i = DISPATCH_RAYS; i <= DISPATCH_ONE; i++)
        if (i != DISPATCH_SCAN) {
            check_that((state->dispatches[i].x > 0) == runs);
            check_equal(state->dispatches[i].y, 1);
            check_equal(state->dispatches[i].z, 1);
        }
}

static void check_groups(const struct fixture *fixture, const struct State *state, uint32_t which,
                         uint32_t invocations, uint32_t most)
{
    uint32_t groups = fixture_groups(fixture, invocations);
    check_equal(state->dispatches[which].x, groups < most ? groups : most);
}

#define MOST_GROUPS 65535u /* the guaranteed limit of Vulkan devices */

void begin_step_check_dispatches(struct fixture *fixture, const struct State *state)
{
    const struct Config *c = &fixture->config;
    Dispatch downloaded[DISPATCH_COUNT];
    fixture_get(fixture, BIND_DISPATCHES, downloaded, sizeof downloaded);
    check_memory(downloaded, state->dispatches, sizeof downloaded);
    check_groups(fixture, state, DISPATCH_SUMMED, c->summed_params, c->group_limit);
    check_groups(fixture, state, DISPATCH_ENTRIES, c->entry_count, c->group_limit);
    uint64_t groups = fixture_groups(fixture, c->entry_count);
    check_equal(state->dispatches[DISPATCH_ENTRIES].y,
                (groups + c->group_limit - 1) / c->group_limit);
    check_groups(fixture, state, DISPATCH_FORWARD, c->sample_capacity, c->forward_groups);
    check_equal(state->dispatches[DISPATCH_BACKWARD].x, c->backward_groups);
    check_equal(state->dispatches[DISPATCH_ONE].x, 1);
    uint32_t params = state->dispatches[DISPATCH_PARAMS].x;
    check_that(params <= REDUCE_GROUPS);
    check_that(params == fixture_groups(fixture, c->param_count) || params == MAX_PARAM_WORKGROUPS);
    if (state->dispatches[DISPATCH_AVERAGE].x > 0)
        check_groups(fixture, state, DISPATCH_AVERAGE, c->param_count, MOST_GROUPS);
}
