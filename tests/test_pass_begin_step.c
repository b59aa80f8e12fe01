/* Tests begin_step: dispatch sizes, schedules, ray count, and updates of the average. */
#include "pass_fixture.h"

#define NO_LIMIT UINT32_MAX

static const struct State usual = {
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

static struct bench bench_of(struct gpu_device *device, bool deterministic)
{
    struct vkn_config settings = {.scene.aabb_scale = 4, .march.resolution = 64};
    struct bench bench = bench_configure(device, settings);
    bench_set_constant(&bench, SPEC_DETERMINISTIC, deterministic);
    bench_allocate(&bench, 1, 1);
    return bench;
}

/* Runs begin_step as slot `slot` of an update interval; returns the state. */
static struct State run_begin(struct bench *bench, struct State before, uint32_t slot,
                              uint32_t step_limit, float time_progress)
{
    const struct Control control = {.time_progress = time_progress, .step_limit = step_limit};
    struct State after;
    bench_put(bench, BIND_CONFIG, &bench->config, sizeof bench->config);
    bench_put(bench, BIND_CONTROL, &control, sizeof control);
    bench_put(bench, BIND_STATE, &before, sizeof before);
    bench_run(bench, "begin_step", (struct Push){.a = slot, .b = bench->local_size}, 1);
    bench_get(bench, BIND_STATE, &after, sizeof after);
    return after;
}

/* ---- learning rate ------------------------------------------------------------------------- */

static void check_rate(struct bench *bench, uint32_t step, float time_progress)
{
    struct State before = usual;
    before.step = step;
    struct State after = run_begin(bench, before, step % UPDATE_INTERVAL, NO_LIMIT, time_progress);
    double rate = reference_learning_rate(&bench->config, step, time_progress);
    assert_int_equal(after.step, step + 1);
    assert_close(after.learning_rate, rate, 2e-6, rate, "learning rate of step", step);
}

static void test_learning_rate(void **state)
{
    static const uint32_t steps[] = {0, 1, 98, 99, 100, 499, 500, 749, 750, 899, 900, 999};
    static const uint32_t late[] = {0, 50, 19999, 20000, 29999, 30000, 39999, 40000, 123456};
    struct bench bench = bench_of(*state, false);
    bench.config.warmup_steps = 100;
    bench.config.total_steps = 1000;
    for (size_t i = 0; i < BASE_COUNT(steps); i++)
        check_rate(&bench, steps[i], 0);
    bench.config.warmup_steps = 0;
    check_rate(&bench, 0, 0);
    bench.config.total_steps = NO_LIMIT;
    for (size_t i = 0; i < BASE_COUNT(late); i++)
        check_rate(&bench, late[i], 0.95f);
    bench.config.time_schedule = 1; /* milestones by time */
    for (int i = 0; i < 10; i++)
        check_rate(&bench, 25000, 0.11f * (float)i);
    bench.config.total_steps = 30000; /* the further of steps and time counts */
    check_rate(&bench, 16000, 0.2f);
    check_rate(&bench, 1000, 0.8f);
    bench_destroy(&bench);
}

/* Exponential decay (NeRF) and a half cosine, by steps, by time, and by the further of both. */
static void test_final_rates(void **state)
{
    static const uint32_t steps[] = {0, 1, 49, 50, 250, 500, 777, 999};
    struct bench bench = bench_of(*state, false);
    bench.config.learning_rate = 2e-2f;
    bench.config.final_rate = 3e-5f;
    bench.config.warmup_steps = 50;
    for (uint32_t kind = RATE_EXPONENTIAL; kind <= RATE_COSINE; kind++) {
        bench.config.rate_kind = kind;
        bench.config.total_steps = 1000;
        bench.config.time_schedule = 0;
        for (size_t i = 0; i < BASE_COUNT(steps); i++)
            check_rate(&bench, steps[i], 0.9f); /* time does not count */
        bench.config.total_steps = NO_LIMIT;
        bench.config.time_schedule = 1;
        for (int i = 0; i <= 11; i++)
            check_rate(&bench, 200, 0.1f * (float)i); /* the last update interval ends late */
        bench.config.total_steps = 1000;
        check_rate(&bench, 400, 0.2f);
        check_rate(&bench, 400, 0.6f);
    }
    bench_destroy(&bench);
}

/* Rates of a schedule file are linear between its points, whatever the other settings are. */
static void test_rate_points(void **state)
{
    static const uint32_t steps[] = {0, 9, 10, 11, 55, 100, 101, 1000, 5000, 1u << 31};
    struct bench bench = bench_of(*state, false);
    bench.config.rate_kind = RATE_POINTS;
    bench.config.warmup_steps = 1;
    bench.config.rates[0] = (struct SchedulePoint){10, 1e-4f};
    bench.config.rates[1] = (struct SchedulePoint){100, 2e-2f};
    bench.config.rates[2] = (struct SchedulePoint){101, 1e-2f};
    bench.config.rates[3] = (struct SchedulePoint){2000, 1e-5f};
    bench.config.rate_points = 4;
    bench.config.total_steps = NO_LIMIT;
    for (size_t i = 0; i < BASE_COUNT(steps); i++)
        check_rate(&bench, steps[i], 0);
    bench.config.rate_points = 1;
    check_rate(&bench, 0, 0);
    check_rate(&bench, 700, 0);
    bench.config.rate_points = MAX_SCHEDULE_POINTS;
    for (uint32_t i = 0; i < MAX_SCHEDULE_POINTS; i++)
        bench.config.rates[i] = (struct SchedulePoint){10 * i, 1e-3f * (float)(i % 3 + 1)};
    check_rate(&bench, 10 * MAX_SCHEDULE_POINTS - 17, 0);
    check_rate(&bench, 10 * MAX_SCHEDULE_POINTS, 0);
    bench_destroy(&bench);
}

/* Each cut by back-offs of the loss scale multiplies the scheduled rate by the factor. */
static void test_rate_cuts(void **state)
{
    struct bench bench = bench_of(*state, false);
    struct State before = usual;
    bench.config.rate_cut_factor = 0.4f;
    before.step = 200;
    for (before.rate_cuts = 0; before.rate_cuts <= MAX_RATE_CUTS; before.rate_cuts++) {
        struct State after = run_begin(&bench, before, 200 % UPDATE_INTERVAL, NO_LIMIT, 0);
        double rate = reference_learning_rate(&bench.config, 200, 0) *
                      pow(bench.config.rate_cut_factor, before.rate_cuts);
        assert_close(after.learning_rate, rate, 3e-6, rate, "learning rate after cuts",
                     before.rate_cuts);
        assert_int_equal(after.rate_cuts, before.rate_cuts);
    }
    /* A corrupt count takes no longer than the maximum. */
    before.rate_cuts = UINT32_MAX;
    struct State after = run_begin(&bench, before, 200 % UPDATE_INTERVAL, NO_LIMIT, 0);
    double rate = reference_learning_rate(&bench.config, 200, 0) *
                  pow(bench.config.rate_cut_factor, MAX_RATE_CUTS);
    assert_close(after.learning_rate, rate, 3e-6, rate, "learning rate after cuts", UINT32_MAX);
    bench_destroy(&bench);
}

/* ---- loss scale ---------------------------------------------------------------------------- */

static void check_scale(struct bench *bench, uint32_t step, double expected)
{
    struct State before = usual;
    before.step = step;
    struct State after = run_begin(bench, before, step % UPDATE_INTERVAL, NO_LIMIT, 0);
    assert_true(reference_scheduled_scale(&bench->config, step, before.loss_scale) == expected);
    assert_true(after.loss_scale == expected);
}

static void test_scheduled_scale(void **state)
{
    struct bench bench = bench_of(*state, false);
    bench.config.schedule[0] = (struct SchedulePoint){3, 8};
    bench.config.schedule[1] = (struct SchedulePoint){4, 0.25f};
    bench.config.schedule[2] = (struct SchedulePoint){1000, 4096};
    bench.config.scale_points = 3;
    bench.config.total_steps = NO_LIMIT;
    bench.config.scale_kind = SCALE_SCHEDULE;
    check_scale(&bench, 0, 16); /* unchanged */
    check_scale(&bench, 2, 16);
    check_scale(&bench, 3, 8);
    check_scale(&bench, 4, 0.25);
    check_scale(&bench, 999, 0.25);
    check_scale(&bench, 1000, 4096);
    check_scale(&bench, 1u << 31, 4096);
    for (uint32_t i = 0; i < MAX_SCHEDULE_POINTS; i++)
        bench.config.schedule[i] = (struct SchedulePoint){10 * i, (float)(i + 1)};
    bench.config.scale_points = MAX_SCHEDULE_POINTS;
    check_scale(&bench, 10 * MAX_SCHEDULE_POINTS - 11, MAX_SCHEDULE_POINTS - 1);
    check_scale(&bench, 10 * MAX_SCHEDULE_POINTS - 10, MAX_SCHEDULE_POINTS);
    /* Without a schedule points are ignored; an idle step changes nothing. */
    struct State before = usual;
    before.step = 37;
    struct State after = run_begin(&bench, before, 4, NO_LIMIT, 0);
    assert_true(after.loss_scale == before.loss_scale);
    bench.config.scale_kind = SCALE_DYNAMIC;
    after = run_begin(&bench, before, 5, NO_LIMIT, 0);
    assert_true(after.running && after.loss_scale == before.loss_scale);
    bench_destroy(&bench);
}

/* The reference by hand: 1e-2 after 1 of 100 warm-up steps, halved at each milestone. */
static void test_schedule_by_hand(void **state)
{
    (void)state;
    struct Config config = {.learning_rate = 1e-2f,
                            .total_steps = 1000,
                            .warmup_steps = 100,
                            .decay_factor = 0.5f,
                            .milestones = {0.5f, 0.75f, 0.9f, 2}};
    assert_close(reference_learning_rate(&config, 0, 0), 1e-4, 1e-6, 1e-4, "rate", 0);
    assert_close(reference_learning_rate(&config, 99, 0), 1e-2, 1e-6, 1e-2, "rate", 1);
    assert_close(reference_learning_rate(&config, 500, 0), 5e-3, 1e-6, 1e-2, "rate", 2);
    assert_close(reference_learning_rate(&config, 999, 0), 1.25e-3, 1e-6, 1e-2, "rate", 3);
    /* The rate falls from 1e-2 to 1e-4: half-way 1e-3, or the mean; at three quarters 1e-2 /
     * 10^1.5, or (1 - sqrt(1/2)) / 2 = 0.14645 of the range above the final rate; with a file its
     * value. */
    config.final_rate = 1e-4f;
    config.rate_kind = RATE_EXPONENTIAL;
    assert_close(reference_learning_rate(&config, 500, 0), 1e-3, 1e-6, 1e-3, "rate", 4);
    assert_close(reference_learning_rate(&config, 750, 0), 3.1622777e-4, 1e-6, 1e-3, "rate", 5);
    assert_close(reference_learning_rate(&config, 49, 0), 0.5e-2 * 0.7979946873, 1e-6, 1e-2, "rate",
                 6);
    config.rate_kind = RATE_COSINE;
    assert_close(reference_learning_rate(&config, 500, 0), 5.05e-3, 1e-6, 1e-2, "rate", 7);
    assert_close(reference_learning_rate(&config, 750, 0), 1.5498218e-3, 1e-6, 1e-2, "rate", 8);
    config.rate_kind = RATE_POINTS;
    config.rates[0] = (struct SchedulePoint){200, 1e-2f};
    config.rates[1] = (struct SchedulePoint){600, 2e-3f};
    config.rate_points = 2;
    assert_close(reference_learning_rate(&config, 300, 0), 8e-3, 1e-6, 1e-2, "rate", 9);
}

/* ---- ray count ----------------------------------------------------------------------------- */

static void check_rays(struct bench *bench, struct State before, uint32_t expected)
{
    struct State after = run_begin(bench, before, 0, NO_LIMIT, 0);
    assert_int_equal(reference_ray_count(&bench->config, &before), expected);
    assert_int_equal(after.ray_count, expected);
    uint32_t groups = (expected + bench->local_size - 1) / bench->local_size;
    assert_int_equal(after.dispatches[DISPATCH_RAYS].x, groups);
    assert_int_equal(after.dispatches[DISPATCH_MARCH].x, bench_subgroups(bench, expected));
}

static void test_ray_count(void **state)
{
    struct bench bench = bench_of(*state, false);
    bench.config.target_samples = 10000;
    bench.config.sample_capacity = 40000;
    bench.config.ray_capacity = 6400;
    struct State last = {.ray_count = 640, .live_rays = 640};
    last.sample_count = 12800; /* 20 per ray: 0.9 * 40000 / 20 = 1800 rays fit */
    last.live_count = 6400;    /* 10 per ray: 1000 rays make 10000 */
    check_rays(&bench, last, 960);
    last.live_count = 64; /* at most doubles */
    check_rays(&bench, last, 1280);
    last.sample_count = 64000; /* 100 per ray: 360 fit */
    check_rays(&bench, last, 320);
    bench.config.ranks = 2; /* the samples are of two ranks: twice as many rays fit on each */
    check_rays(&bench, last, 704);
    bench.config.ranks = 1;
    last.live_rays = 200; /* live samples are counted for these rays only */
    last.live_count = 20000;
    last.sample_count = 12800;
    check_rays(&bench, last, 64); /* 100 rays, in multiples of 64 */
    last.live_count = 2000000;
    check_rays(&bench, last, 64);            /* the minimum */
    last.live_count = last.sample_count = 0; /* no samples */
    check_rays(&bench, last, 1280);
    last.ray_count = 6336;
    check_rays(&bench, last, 6400); /* the ray capacity */
    last.live_rays = 0;             /* first step, or no ray's samples fitted */
    last.ray_count = 448;
    check_rays(&bench, last, 448);
    struct random random = {910};
    for (int i = 0; i < 20; i++) {
        last.ray_count = 64 * (1 + random_below(&random, 100));
        last.live_rays = 1 + random_below(&random, last.ray_count);
        last.sample_count = random_below(&random, 100000);
        last.live_count = random_below(&random, 50000);
        struct State after = run_begin(&bench, last, 0, NO_LIMIT, 0);
        assert_int_equal(after.ray_count, reference_ray_count(&bench.config, &last));
    }
    bench_destroy(&bench);
}

/* With uniform sampling the ray count follows from the fixed number of samples per ray. */
static void test_uniform_ray_count(void **state)
{
    struct vkn_config settings = {
        .march = {.sampling = VKN_SAMPLING_UNIFORM, .ray_samples = 100},
        .batch = {.samples = 10000, .max_rays = 5000},
    };
    struct bench bench = bench_configure(*state, settings);
    bench_allocate(&bench, 1, 1);
    assert_int_equal(bench.config.sample_capacity, 40000);
    assert_int_equal(bench.config.ray_capacity, 400);
    struct State last = {
        .ray_count = 320, .live_rays = 320, .sample_count = 32000, .live_count = 3200};
    check_rays(&bench, last, 384); /* not 0.9 * 40000 / 100 */
    last.live_count = 32000;
    check_rays(&bench, last, 64); /* 100 rays have 10000 live samples */
    last.live_count = 320;
    last.sample_count = 10000; /* of a third of the rays; others miss the cube */
    check_rays(&bench, last, 384);
    last.ray_count = 128;
    check_rays(&bench, last, 256);
    bench_destroy(&bench);
}

/* ---- dispatches ---------------------------------------------------------------------------- */

static void assert_dispatches(const struct State *state, bool runs)
{
    for (int i = DISPATCH_RAYS; i <= DISPATCH_ONE; i++)
        if (i != DISPATCH_SCAN) {
            assert_true((state->dispatches[i].x > 0) == runs);
            assert_int_equal(state->dispatches[i].y, 1);
            assert_int_equal(state->dispatches[i].z, 1);
        }
}

static void check_groups(const struct bench *bench, const struct State *state, uint32_t which,
                         uint32_t invocations, uint32_t most)
{
    uint32_t groups = bench_groups(bench, invocations);
    assert_int_equal(state->dispatches[which].x, groups < most ? groups : most);
}

#define MOST_GROUPS 65535u /* the guaranteed limit of Vulkan devices */

/* Checks that each pass has one invocation per item, as far as the device's limits and the buffer
 * of partial sums allow. */
static void check_dispatches(struct bench *bench, const struct State *state)
{
    const struct Config *c = &bench->config;
    Dispatch downloaded[DISPATCH_COUNT];
    bench_get(bench, BIND_DISPATCHES, downloaded, sizeof downloaded);
    assert_memory_equal(downloaded, state->dispatches, sizeof downloaded);
    check_groups(bench, state, DISPATCH_SUMMED, c->summed_params, c->group_limit);
    check_groups(bench, state, DISPATCH_ENTRIES, c->entry_count, c->group_limit);
    uint64_t groups = bench_groups(bench, c->entry_count);
    assert_int_equal(state->dispatches[DISPATCH_ENTRIES].y,
                     (groups + c->group_limit - 1) / c->group_limit);
    check_groups(bench, state, DISPATCH_FORWARD, c->sample_capacity, c->forward_groups);
    assert_int_equal(state->dispatches[DISPATCH_BACKWARD].x, c->backward_groups);
    assert_int_equal(state->dispatches[DISPATCH_ONE].x, 1);
    uint32_t params = state->dispatches[DISPATCH_PARAMS].x;
    assert_true(params <= REDUCE_GROUPS);
    assert_true(params == bench_groups(bench, c->param_count) || params == MAX_PARAM_WORKGROUPS);
    if (state->dispatches[DISPATCH_AVERAGE].x > 0)
        check_groups(bench, state, DISPATCH_AVERAGE, c->param_count, MOST_GROUPS);
}

/* Dispatch sizes at the end of an update interval, for models of all sizes. */
static void test_dispatches(void **state)
{
    static const uint32_t params[] = {3000, 200000, 1u << 24, 1u << 31};
    struct bench bench = bench_of(*state, false);
    struct State before = usual;
    before.step = 31;
    for (size_t i = 0; i < BASE_COUNT(params); i++) {
        bench.config.param_count = params[i];
        bench.config.summed_params = 2000 + 500 * (uint32_t)i;
        bench.config.entry_count = params[i] / 2 - 700;
        bench.config.forward_groups = i % 2 ? 7 : 1u << 20;
        struct State after = run_begin(&bench, before, 15, NO_LIMIT, 0);
        check_dispatches(&bench, &after);
        assert_true(after.dispatches[DISPATCH_AVERAGE].x > 0);
    }
    bench_destroy(&bench);
}

/* A device with a small limit of workgroups; entries are then dispatched in several rows. */
static void test_few_groups(void **state)
{
    struct bench bench = bench_of(*state, false);
    struct State before = usual;
    before.ray_count = before.live_rays = 64 * 20;
    before.step = 31;
    bench.config.group_limit = 7;
    bench.config.ray_capacity = 64 * 20;
    bench.config.param_count = bench.config.summed_params = 200000;
    bench.config.entry_count = 100000;
    bench.config.forward_groups = bench.config.backward_groups = 7;
    struct State after = run_begin(&bench, before, 15, NO_LIMIT, 0);
    assert_int_equal(after.dispatches[DISPATCH_MARCH].x, 7);
    assert_int_equal(after.dispatches[DISPATCH_SUMMED].x, 7);
    assert_true(after.dispatches[DISPATCH_ENTRIES].y * 7 >= bench_groups(&bench, 100000));
    for (int i = 0; i < DISPATCH_COUNT; i++)
        assert_true(after.dispatches[i].x <= 7);
    before.step = 32;
    after = run_begin(&bench, before, UPDATE_INTERVAL, NO_LIMIT, 0);
    assert_int_equal(after.dispatches[DISPATCH_OCCUPANCY].x, 7);
    bench_destroy(&bench);
}

static void test_runs(void **state)
{
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        struct bench bench = bench_of(*state, deterministic);
        struct State before = usual;
        before.step = 37; /* slot 5 of its update interval */
        struct State after = run_begin(&bench, before, 5, NO_LIMIT, 0);
        assert_int_equal(after.step, 38);
        assert_int_equal(after.running, 1);
        assert_dispatches(&after, true);
        assert_int_equal(after.dispatches[DISPATCH_SCAN].x, deterministic);
        check_dispatches(&bench, &after);
        assert_int_equal(after.sample_count | after.live_count | after.live_rays | after.nonfinite |
                             after.underflowed | after.rounded,
                         0);
        assert_int_equal(after.reached_count | after.kept_rays, 0);
        assert_true(after.keep_gain == before.keep_gain && after.mean_loss == before.mean_loss);
        assert_int_equal(after.updates, before.updates);
        assert_int_equal(after.good_steps, before.good_steps);
        assert_int_equal(after.skipped_steps, before.skipped_steps);
        assert_true(after.loss_scale == before.loss_scale);
        bench_destroy(&bench);
    }
}

/* In another slot, or at the limit of run or host, nothing is dispatched and the state stays. */
static void test_idle(void **state)
{
    static const struct {
        uint32_t slot, total, limit;
    } idle[] = {{4, NO_LIMIT, NO_LIMIT},
                {6, NO_LIMIT, NO_LIMIT},
                {5, 37, NO_LIMIT},
                {5, NO_LIMIT, 37},
                {5, NO_LIMIT, 12}};
    struct bench bench = bench_of(*state, true);
    struct State before = usual;
    before.step = 37;
    before.learning_rate = 0.125f;
    for (size_t i = 0; i < BASE_COUNT(idle); i++) {
        bench.config.total_steps = idle[i].total;
        struct State after = run_begin(&bench, before, idle[i].slot, idle[i].limit, 0);
        assert_dispatches(&after, false);
        assert_int_equal(after.dispatches[DISPATCH_SCAN].x, 0);
        assert_int_equal(after.running, 0);
        memcpy(after.dispatches, before.dispatches, sizeof after.dispatches);
        assert_memory_equal(&after, &before, sizeof after);
    }
    bench_destroy(&bench);
}

static void test_occupancy_update(void **state)
{
    struct bench bench = bench_of(*state, false);
    uint32_t cascade = 64 * 64 * 64, cells = cascade * bench.constants.values[SPEC_CASCADES];
    struct State before = usual;
    for (uint32_t step = 0; step < 64; step++) {
        before.step = step;
        struct State after = run_begin(&bench, before, UPDATE_INTERVAL, 48, 0);
        bool due = step % 16 == 0 && step < 48;
        assert_int_equal(after.step, step);
        assert_int_equal(after.dispatches[DISPATCH_OCCUPANCY].x,
                         due ? bench_groups(&bench, cells / 4) : 0);
        assert_int_equal(after.dispatches[DISPATCH_THRESHOLD].x, due);
        assert_int_equal(after.dispatches[DISPATCH_PACK].x,
                         due ? bench_groups(&bench, cascade / 512) : 0);
        assert_int_equal(after.dispatches[DISPATCH_AVERAGE].x, 0);
    }
    bench_destroy(&bench);
}

/* In a training of 40 steps the average's weights equal those of a debiased average that is updated
 * every step; it is refreshed after steps 16, 32 and 40. */
static void test_average(void **state)
{
    struct bench bench = bench_of(*state, false);
    struct State now = usual;
    double decay = bench.config.average_decay, kept = 0; /* weight of all updates so far */
    bench.config.total_steps = 40;
    now.step = 0;
    for (uint32_t step = 1; step <= 40; step++) {
        if (step % 16 == 1) /* an update interval begins */
            now = run_begin(&bench, now, UPDATE_INTERVAL, NO_LIMIT, 0);
        now = run_begin(&bench, now, (step - 1) % 16, NO_LIMIT, 0);
        kept = decay * kept + (1 - decay);
        bool due = step % 16 == 0 || step == 40;
        if (!due) {
            assert_int_equal(now.dispatches[DISPATCH_AVERAGE].x, 0);
            continue;
        }
        uint32_t passed = step % 16 ? step % 16 : 16;
        double fresh = (1 - pow(decay, passed)) / kept;
        assert_true(now.dispatches[DISPATCH_AVERAGE].x > 0);
        assert_int_equal(now.average_step, step);
        assert_close(now.average_weight, fresh, 1e-5, fresh, "average's weight after step", step);
    }
    /* The remaining slots of the update interval are idle but keep the dispatches at its end. */
    now = run_begin(&bench, now, 9, NO_LIMIT, 0);
    assert_true(now.dispatches[DISPATCH_AVERAGE].x > 0);
    now = run_begin(&bench, now, UPDATE_INTERVAL, NO_LIMIT, 0);
    assert_int_equal(now.dispatches[DISPATCH_AVERAGE].x, 0);
    bench_destroy(&bench);
}

/* A proposal's passes have its own sizes and run only in steps that train it. */
static void test_proposal(void **state)
{
    struct vkn_config settings = {.scene.aabb_scale = 4, .march.sampling = VKN_SAMPLING_PROPOSAL};
    struct bench bench = bench_configure(*state, settings);
    bench_allocate(&bench, 1, 1);
    bench.config.anneal_steps = 4;
    bench.config.proposal_interval = 3;
    bench.config.proposal_groups = bench.config.backward_groups - 2;
    bench.config.proposal_summed = 900;
    bench.config.proposal_params = 3000;
    bench.config.proposal_entries = 100000;
    bench.config.group_limit = 1000;
    for (uint32_t number = 1; number <= 10; number++) {
        struct State before = usual;
        Dispatch all[2 * DISPATCH_COUNT];
        const Dispatch *proposal = all + DISPATCH_PROPOSAL;
        before.step = number - 1;
        bool stops = number == 9; /* the step that would train the proposal */
        struct State after =
            run_begin(&bench, before, before.step, stops ? before.step : NO_LIMIT, 0);
        bool learns = !stops && (number <= 4 || number % 3 == 0);
        bench_get(&bench, BIND_DISPATCHES, all, sizeof all);
        assert_int_equal(proposal[DISPATCH_BACKWARD].x, learns ? bench.config.proposal_groups : 0);
        assert_int_equal(proposal[DISPATCH_SUMMED].x, learns ? bench_groups(&bench, 900) : 0);
        assert_int_equal(proposal[DISPATCH_PARAMS].x, learns ? bench_groups(&bench, 3000) : 0);
        assert_int_equal(proposal[DISPATCH_ENTRIES].x, learns ? 1000 : 0);
        assert_true(!learns || proposal[DISPATCH_ENTRIES].y * 1000 >= bench_groups(&bench, 100000));
        for (int i = DISPATCH_RAYS; i <= DISPATCH_FORWARD; i++)
            assert_int_equal(proposal[i].x, learns ? after.dispatches[i].x : 0);
    }
    bench_destroy(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learning_rate),
        cmocka_unit_test(test_final_rates),
        cmocka_unit_test(test_rate_points),
        cmocka_unit_test(test_rate_cuts),
        cmocka_unit_test(test_scheduled_scale),
        cmocka_unit_test(test_schedule_by_hand),
        cmocka_unit_test(test_ray_count),
        cmocka_unit_test(test_uniform_ray_count),
        cmocka_unit_test(test_dispatches),
        cmocka_unit_test(test_few_groups),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_occupancy_update),
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_proposal),
        cmocka_unit_test(test_no_messages),
    };
    return RUN_PASS_TESTS(tests);
}
