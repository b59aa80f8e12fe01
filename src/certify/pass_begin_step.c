/* Tests begin_step: dispatch sizes, schedules, ray count, and updates of the average. */
#include "certify/begin_step.h"

/* ---- learning rate ------------------------------------------------------------------------- */

static void test_learning_rate(struct gpu_device *device)
{
    static const uint32_t steps[] = {0, 1, 98, 99, 100, 499, 500, 749, 750, 899, 900, 999};
    static const uint32_t late[] = {0, 50, 19999, 20000, 29999, 30000, 39999, 40000, 123456};
    struct fixture fixture = begin_step_fixture(device, false);
    fixture.config.warmup_steps = 100;
    fixture.config.total_steps = 1000;
    for (size_t i = 0; i < BASE_COUNT(steps); i++)
        begin_step_check_rate(&fixture, steps[i], 0);
    fixture.config.warmup_steps = 0;
    begin_step_check_rate(&fixture, 0, 0);
    fixture.config.total_steps = NO_LIMIT;
    for (size_t i = 0; i < BASE_COUNT(late); i++)
        begin_step_check_rate(&fixture, late[i], 0.95f);
    fixture.config.time_schedule = 1; /* milestones by time */
    for (int i = 0; i < 10; i++)
        begin_step_check_rate(&fixture, 25000, 0.11f * (float)i);
    fixture.config.total_steps = 30000; /* the further of steps and time counts */
    begin_step_check_rate(&fixture, 16000, 0.2f);
    begin_step_check_rate(&fixture, 1000, 0.8f);
    fixture_destroy(&fixture);
}

/* Exponential decay (NeRF) and a half cosine, by steps, by time, and by the further of both. */
static void test_final_rates(struct gpu_device *device)
{
    static const uint32_t steps[] = {0, 1, 49, 50, 250, 500, 777, 999};
    struct fixture fixture = begin_step_fixture(device, false);
    fixture.config.learning_rate = 2e-2f;
    fixture.config.final_rate = 3e-5f;
    fixture.config.warmup_steps = 50;
    for (uint32_t kind = RATE_EXPONENTIAL; kind <= RATE_COSINE; kind++) {
        fixture.config.rate_kind = kind;
        fixture.config.total_steps = 1000;
        fixture.config.time_schedule = 0;
        for (size_t i = 0; i < BASE_COUNT(steps); i++)
            begin_step_check_rate(&fixture, steps[i], 0.9f); /* time does not count */
        fixture.config.total_steps = NO_LIMIT;
        fixture.config.time_schedule = 1;
        for (int i = 0; i <= 11; i++)
            begin_step_check_rate(&fixture, 200,
                                  0.1f * (float)i); /* the last update interval ends late */
        fixture.config.total_steps = 1000;
        begin_step_check_rate(&fixture, 400, 0.2f);
        begin_step_check_rate(&fixture, 400, 0.6f);
    }
    fixture_destroy(&fixture);
}

/* Rates of a schedule file are linear between its points, whatever the other settings are. */
static void test_rate_points(struct gpu_device *device)
{
    static const uint32_t steps[] = {0, 9, 10, 11, 55, 100, 101, 1000, 5000, 1u << 31};
    struct fixture fixture = begin_step_fixture(device, false);
    fixture.config.rate_kind = RATE_POINTS;
    fixture.config.warmup_steps = 1;
    fixture.config.rates[0] = (struct SchedulePoint){10, 1e-4f};
    fixture.config.rates[1] = (struct SchedulePoint){100, 2e-2f};
    fixture.config.rates[2] = (struct SchedulePoint){101, 1e-2f};
    fixture.config.rates[3] = (struct SchedulePoint){2000, 1e-5f};
    fixture.config.rate_points = 4;
    fixture.config.total_steps = NO_LIMIT;
    for (size_t i = 0; i < BASE_COUNT(steps); i++)
        begin_step_check_rate(&fixture, steps[i], 0);
    fixture.config.rate_points = 1;
    begin_step_check_rate(&fixture, 0, 0);
    begin_step_check_rate(&fixture, 700, 0);
    fixture.config.rate_points = MAX_SCHEDULE_POINTS;
    for (uint32_t i = 0; i < MAX_SCHEDULE_POINTS; i++)
        fixture.config.rates[i] = (struct SchedulePoint){10 * i, 1e-3f * (float)(i % 3 + 1)};
    begin_step_check_rate(&fixture, 10 * MAX_SCHEDULE_POINTS - 17, 0);
    begin_step_check_rate(&fixture, 10 * MAX_SCHEDULE_POINTS, 0);
    fixture_destroy(&fixture);
}

/* Each cut by back-offs of the loss scale multiplies the scheduled rate by the factor. */
static void test_rate_cuts(struct gpu_device *device)
{
    struct fixture fixture = begin_step_fixture(device, false);
    struct State before = begin_step_usual;
    fixture.config.rate_cut_factor = 0.4f;
    before.step = 200;
    for (before.rate_cuts = 0; before.rate_cuts <= MAX_RATE_CUTS; before.rate_cuts++) {
        struct State after = begin_step_run(&fixture, before, 200 % UPDATE_INTERVAL, NO_LIMIT, 0);
        double rate = reference_learning_rate(&fixture.config, 200, 0) *
                      pow(fixture.config.rate_cut_factor, before.rate_cuts);
        check_close(after.learning_rate, rate, 3e-6, rate, "learning rate after cuts",
                    before.rate_cuts);
        check_equal(after.rate_cuts, before.rate_cuts);
    }
    /* A corrupt count takes no longer than the maximum. */
    before.rate_cuts = UINT32_MAX;
    struct State after = begin_step_run(&fixture, before, 200 % UPDATE_INTERVAL, NO_LIMIT, 0);
    double rate = reference_learning_rate(&fixture.config, 200, 0) *
                  pow(fixture.config.rate_cut_factor, MAX_RATE_CUTS);
    check_close(after.learning_rate, rate, 3e-6, rate, "learning rate after cuts", UINT32_MAX);
    fixture_destroy(&fixture);
}

/* ---- loss scale ---------------------------------------------------------------------------- */

static void test_scheduled_scale(struct gpu_device *device)
{
    struct fixture fixture = begin_step_fixture(device, false);
    fixture.config.schedule[0] = (struct SchedulePoint){3, 8};
    fixture.config.schedule[1] = (struct SchedulePoint){4, 0.25f};
    fixture.config.schedule[2] = (struct SchedulePoint){1000, 4096};
    fixture.config.scale_points = 3;
    fixture.config.total_steps = NO_LIMIT;
    fixture.config.scale_kind = SCALE_SCHEDULE;
    begin_step_check_scale(&fixture, 0, 16); /* unchanged */
    begin_step_check_scale(&fixture, 2, 16);
    begin_step_check_scale(&fixture, 3, 8);
    begin_step_check_scale(&fixture, 4, 0.25);
    begin_step_check_scale(&fixture, 999, 0.25);
    begin_step_check_scale(&fixture, 1000, 4096);
    begin_step_check_scale(&fixture, 1u << 31, 4096);
    for (uint32_t i = 0; i < MAX_SCHEDULE_POINTS; i++)
        fixture.config.schedule[i] = (struct SchedulePoint){10 * i, (float)(i + 1)};
    fixture.config.scale_points = MAX_SCHEDULE_POINTS;
    begin_step_check_scale(&fixture, 10 * MAX_SCHEDULE_POINTS - 11, MAX_SCHEDULE_POINTS - 1);
    begin_step_check_scale(&fixture, 10 * MAX_SCHEDULE_POINTS - 10, MAX_SCHEDULE_POINTS);
    /* Without a schedule points are ignored; an idle step changes nothing. */
    struct State before = begin_step_usual;
    before.step = 37;
    struct State after = begin_step_run(&fixture, before, 4, NO_LIMIT, 0);
    check_that(after.loss_scale == before.loss_scale);
    fixture.config.scale_kind = SCALE_DYNAMIC;
    after = begin_step_run(&fixture, before, 5, NO_LIMIT, 0);
    check_that(after.running && after.loss_scale == before.loss_scale);
    fixture_destroy(&fixture);
}

/* The reference by hand: 1e-2 after 1 of 100 warm-up steps, halved at each milestone. */
static void test_schedule_by_hand(struct gpu_device *device)
{
    (void)device;
    struct Config config = {.learning_rate = 1e-2f,
                            .total_steps = 1000,
                            .warmup_steps = 100,
                            .decay_factor = 0.5f,
                            .milestones = {0.5f, 0.75f, 0.9f, 2}};
    check_close(reference_learning_rate(&config, 0, 0), 1e-4, 1e-6, 1e-4, "rate", 0);
    check_close(reference_learning_rate(&config, 99, 0), 1e-2, 1e-6, 1e-2, "rate", 1);
    check_close(reference_learning_rate(&config, 500, 0), 5e-3, 1e-6, 1e-2, "rate", 2);
    check_close(reference_learning_rate(&config, 999, 0), 1.25e-3, 1e-6, 1e-2, "rate", 3);
    /* The rate falls from 1e-2 to 1e-4: half-way 1e-3, or the mean; at three quarters 1e-2 /
     * 10^1.5, or (1 - sqrt(1/2)) / 2 = 0.14645 of the range above the final rate; with a file its
     * value. */
    config.final_rate = 1e-4f;
    config.rate_kind = RATE_EXPONENTIAL;
    check_close(reference_learning_rate(&config, 500, 0), 1e-3, 1e-6, 1e-3, "rate", 4);
    check_close(reference_learning_rate(&config, 750, 0), 3.1622777e-4, 1e-6, 1e-3, "rate", 5);
    check_close(reference_learning_rate(&config, 49, 0), 0.5e-2 * 0.7979946873, 1e-6, 1e-2, "rate",
                6);
    config.rate_kind = RATE_COSINE;
    check_close(reference_learning_rate(&config, 500, 0), 5.05e-3, 1e-6, 1e-2, "rate", 7);
    check_close(reference_learning_rate(&config, 750, 0), 1.5498218e-3, 1e-6, 1e-2, "rate", 8);
    config.rate_kind = RATE_POINTS;
    config.rates[0] = (struct SchedulePoint){200, 1e-2f};
    config.rates[1] = (struct SchedulePoint){600, 2e-3f};
    config.rate_points = 2;
    check_close(reference_learning_rate(&config, 300, 0), 8e-3, 1e-6, 1e-2, "rate", 9);
}

/* ---- ray count ----------------------------------------------------------------------------- */

static void test_ray_count(struct gpu_device *device)
{
    struct fixture fixture = begin_step_fixture(device, false);
    fixture.config.target_samples = 10000;
    fixture.config.sample_capacity = 40000;
    fixture.config.ray_capacity = 6400;
    struct State last = {.ray_count = 640, .live_rays = 640};
    last.sample_count = 12800; /* 20 per ray: 0.9 * 40000 / 20 = 1800 rays fit */
    last.live_count = 6400;    /* 10 per ray: 1000 rays make 10000 */
    begin_step_check_rays(&fixture, last, 960);
    last.live_count = 64; /* at most doubles */
    begin_step_check_rays(&fixture, last, 1280);
    last.sample_count = 64000; /* 100 per ray: 360 fit */
    begin_step_check_rays(&fixture, last, 320);
    fixture.config.ranks = 2; /* the samples are of two ranks: twice as many rays fit on each */
    begin_step_check_rays(&fixture, last, 704);
    fixture.config.ranks = 1;
    last.live_rays = 200; /* live samples are counted for these rays only */
    last.live_count = 20000;
    last.sample_count = 12800;
    begin_step_check_rays(&fixture, last, 64); /* 100 rays, in multiples of 64 */
    last.live_count = 2000000;
    begin_step_check_rays(&fixture, last, 64); /* the minimum */
    last.live_count = last.sample_count = 0;   /* no samples */
    begin_step_check_rays(&fixture, last, 1280);
    last.ray_count = 6336;
    begin_step_check_rays(&fixture, last, 6400); /* the ray capacity */
    last.live_rays = 0;                          /* first step, or no ray's samples fitted */
    last.ray_count = 448;
    begin_step_check_rays(&fixture, last, 448);
    struct random random = {910};
    for (int i = 0; i < 20; i++) {
        last.ray_count = 64 * (1 + random_below(&random, 100));
        last.live_rays = 1 + random_below(&random, last.ray_count);
        last.sample_count = random_below(&random, 100000);
        last.live_count = random_below(&random, 50000);
        struct State after = begin_step_run(&fixture, last, 0, NO_LIMIT, 0);
        check_equal(after.ray_count, reference_ray_count(&fixture.config, &last));
    }
    fixture_destroy(&fixture);
}

/* With uniform sampling the ray count follows from the fixed number of samples per ray. */
static void test_uniform_ray_count(struct gpu_device *device)
{
    struct vkn_config settings = {
        .march = {.sampling = VKN_SAMPLING_UNIFORM, .ray_samples = 100},
        .batch = {.samples = 10000, .max_rays = 5000},
    };
    struct fixture fixture = fixture_configure(device, settings);
    fixture_allocate(&fixture, 1, 1);
    check_equal(fixture.config.sample_capacity, 40000);
    check_equal(fixture.config.ray_capacity, 400);
    struct State last = {
        .ray_count = 320, .live_rays = 320, .sample_count = 32000, .live_count = 3200};
    begin_step_check_rays(&fixture, last, 384); /* not 0.9 * 40000 / 100 */
    last.live_count = 32000;
    begin_step_check_rays(&fixture, last, 64); /* 100 rays have 10000 live samples */
    last.live_count = 320;
    last.sample_count = 10000; /* of a third of the rays; others miss the cube */
    begin_step_check_rays(&fixture, last, 384);
    last.ray_count = 128;
    begin_step_check_rays(&fixture, last, 256);
    fixture_destroy(&fixture);
}

/* ---- dispatches ---------------------------------------------------------------------------- */

/* Dispatch sizes at the end of an update interval, for models of all sizes. */
static void test_dispatches(struct gpu_device *device)
{
    static const uint32_t params[] = {3000, 200000, 1u << 24, 1u << 31};
    struct fixture fixture = begin_step_fixture(device, false);
    struct State before = begin_step_usual;
    before.step = 31;
    for (size_t i = 0; i < BASE_COUNT(params); i++) {
        fixture.config.param_count = params[i];
        fixture.config.summed_params = 2000 + 500 * (uint32_t)i;
        fixture.config.entry_count = params[i] / 2 - 700;
        fixture.config.forward_groups = i % 2 ? 7 : 1u << 20;
        struct State after = begin_step_run(&fixture, before, 15, NO_LIMIT, 0);
        begin_step_check_dispatches(&fixture, &after);
        check_that(after.dispatches[DISPATCH_AVERAGE].x > 0);
    }
    fixture_destroy(&fixture);
}

/* A device with a small limit of workgroups; entries are then dispatched in several rows. */
static void test_few_groups(struct gpu_device *device)
{
    struct fixture fixture = begin_step_fixture(device, false);
    struct State before = begin_step_usual;
    before.ray_count = before.live_rays = 64 * 20;
    before.step = 31;
    fixture.config.group_limit = 7;
    fixture.config.ray_capacity = 64 * 20;
    fixture.config.param_count = fixture.config.summed_params = 200000;
    fixture.config.entry_count = 100000;
    fixture.config.forward_groups = fixture.config.backward_groups = 7;
    struct State after = begin_step_run(&fixture, before, 15, NO_LIMIT, 0);
    check_equal(after.dispatches[DISPATCH_MARCH].x, 7);
    check_equal(after.dispatches[DISPATCH_SUMMED].x, 7);
    check_that(after.dispatches[DISPATCH_ENTRIES].y * 7 >= fixture_groups(&fixture, 100000));
    for (int i = 0; i < DISPATCH_COUNT; i++)
        check_that(after.dispatches[i].x <= 7);
    before.step = 32;
    after = begin_step_run(&fixture, before, UPDATE_INTERVAL, NO_LIMIT, 0);
    check_equal(after.dispatches[DISPATCH_OCCUPANCY].x, 7);
    fixture_destroy(&fixture);
}

static void test_runs(struct gpu_device *device)
{
    for (int deterministic = 0; deterministic < 2; deterministic++) {
        struct fixture fixture = begin_step_fixture(device, deterministic);
        struct State before = begin_step_usual;
        before.step = 37; /* slot 5 of its update interval */
        struct State after = begin_step_run(&fixture, before, 5, NO_LIMIT, 0);
        check_equal(after.step, 38);
        check_equal(after.running, 1);
        begin_step_check_runs(&after, true);
        check_equal(after.dispatches[DISPATCH_SCAN].x, deterministic);
        begin_step_check_dispatches(&fixture, &after);
        check_equal(after.sample_count | after.live_count | after.live_rays | after.nonfinite |
                        after.underflowed | after.rounded,
                    0);
        check_equal(after.reached_count | after.kept_rays, 0);
        check_that(after.keep_gain == before.keep_gain && after.mean_loss == before.mean_loss);
        check_equal(after.updates, before.updates);
        check_equal(after.good_steps, before.good_steps);
        check_equal(after.skipped_steps, before.skipped_steps);
        check_that(after.loss_scale == before.loss_scale);
        fixture_destroy(&fixture);
    }
}

/* In another slot, or at the limit of run or host, nothing is dispatched and the state stays. */
static void test_idle(struct gpu_device *device)
{
    static const struct {
        uint32_t slot, total, limit;
    } idle[] = {{4, NO_LIMIT, NO_LIMIT},
                {6, NO_LIMIT, NO_LIMIT},
                {5, 37, NO_LIMIT},
                {5, NO_LIMIT, 37},
                {5, NO_LIMIT, 12}};
    struct fixture fixture = begin_step_fixture(device, true);
    struct State before = begin_step_usual;
    before.step = 37;
    before.learning_rate = 0.125f;
    for (size_t i = 0; i < BASE_COUNT(idle); i++) {
        fixture.config.total_steps = idle[i].total;
        struct State after = begin_step_run(&fixture, before, idle[i].slot, idle[i].limit, 0);
        begin_step_check_runs(&after, false);
        check_equal(after.dispatches[DISPATCH_SCAN].x, 0);
        check_equal(after.running, 0);
        memcpy(after.dispatches, before.dispatches, sizeof after.dispatches);
        check_memory(&after, &before, sizeof after);
    }
    fixture_destroy(&fixture);
}

static void test_occupancy_update(struct gpu_device *device)
{
    struct fixture fixture = begin_step_fixture(device, false);
    uint32_t cascade = 64 * 64 * 64, cells = cascade * fixture.constants.values[SPEC_CASCADES];
    struct State before = begin_step_usual;
    for (uint32_t step = 0; step < 64; step++) {
        before.step = step;
        struct State after = begin_step_run(&fixture, before, UPDATE_INTERVAL, 48, 0);
        bool due = step % 16 == 0 && step < 48;
        check_equal(after.step, step);
        check_equal(after.dispatches[DISPATCH_OCCUPANCY].x,
                    due ? fixture_groups(&fixture, cells / 4) : 0);
        check_equal(after.dispatches[DISPATCH_THRESHOLD].x, due);
        check_equal(after.dispatches[DISPATCH_PACK].x,
                    due ? fixture_groups(&fixture, cascade / 512) : 0);
        check_equal(after.dispatches[DISPATCH_AVERAGE].x, 0);
    }
    fixture_destroy(&fixture);
}

/* In a training of 40 steps the average's weights equal those of a debiased average that is updated
 * every step; it is refreshed after steps 16, 32 and 40. */
static void test_average(struct gpu_device *device)
{
    struct fixture fixture = begin_step_fixture(device, false);
    struct State now = begin_step_usual;
    double decay = fixture.config.average_decay, kept = 0; /* weight of all updates so far */
    fixture.config.total_steps = 40;
    now.step = 0;
    for (uint32_t step = 1; step <= 40; step++) {
        if (step % 16 == 1) /* an update interval begins */
            now = begin_step_run(&fixture, now, UPDATE_INTERVAL, NO_LIMIT, 0);
        now = begin_step_run(&fixture, now, (step - 1) % 16, NO_LIMIT, 0);
        kept = decay * kept + (1 - decay);
        bool due = step % 16 == 0 || step == 40;
        if (!due) {
            check_equal(now.dispatches[DISPATCH_AVERAGE].x, 0);
            continue;
        }
        uint32_t passed = step % 16 ? step % 16 : 16;
        double fresh = (1 - pow(decay, passed)) / kept;
        check_that(now.dispatches[DISPATCH_AVERAGE].x > 0);
        check_equal(now.average_step, step);
        check_close(now.average_weight, fresh, 1e-5, fresh, "average's weight after step", step);
    }
    /* The remaining slots of the update interval are idle but keep the dispatches at its end. */
    now = begin_step_run(&fixture, now, 9, NO_LIMIT, 0);
    check_that(now.dispatches[DISPATCH_AVERAGE].x > 0);
    now = begin_step_run(&fixture, now, UPDATE_INTERVAL, NO_LIMIT, 0);
    check_equal(now.dispatches[DISPATCH_AVERAGE].x, 0);
    fixture_destroy(&fixture);
}

/* A proposal's passes have its own sizes and run only in steps that train it. */
static void test_proposal(struct gpu_device *device)
{
    struct vkn_config settings = {.scene.aabb_scale = 4, .march.sampling = VKN_SAMPLING_PROPOSAL};
    struct fixture fixture = fixture_configure(device, settings);
    fixture_allocate(&fixture, 1, 1);
    fixture.config.anneal_steps = 4;
    fixture.config.proposal_interval = 3;
    fixture.config.proposal_groups = fixture.config.backward_groups - 2;
    fixture.config.proposal_summed = 900;
    fixture.config.proposal_params = 3000;
    fixture.config.proposal_entries = 100000;
    fixture.config.group_limit = 1000;
    for (uint32_t number = 1; number <= 10; number++) {
        struct State before = begin_step_usual;
        Dispatch all[2 * DISPATCH_COUNT];
        const Dispatch *proposal = all + DISPATCH_PROPOSAL;
        before.step = number - 1;
        bool stops = number == 9; /* the step that would train the proposal */
        struct State after =
            begin_step_run(&fixture, before, before.step, stops ? before.step : NO_LIMIT, 0);
        bool learns = !stops && (number <= 4 || number % 3 == 0);
        fixture_get(&fixture, BIND_DISPATCHES, all, sizeof all);
        check_equal(proposal[DISPATCH_BACKWARD].x, learns ? fixture.config.proposal_groups : 0);
        check_equal(proposal[DISPATCH_SUMMED].x, learns ? fixture_groups(&fixture, 900) : 0);
        check_equal(proposal[DISPATCH_PARAMS].x, learns ? fixture_groups(&fixture, 3000) : 0);
        check_equal(proposal[DISPATCH_ENTRIES].x, learns ? 1000 : 0);
        check_that(!learns ||
                   proposal[DISPATCH_ENTRIES].y * 1000 >= fixture_groups(&fixture, 100000));
        for (int i = DISPATCH_RAYS; i <= DISPATCH_FORWARD; i++)
            check_equal(proposal[i].x, learns ? after.dispatches[i].x : 0);
    }
    fixture_destroy(&fixture);
}

static const struct certify_test tests[] = {
    TEST(test_learning_rate),
    TEST(test_final_rates),
    TEST(test_rate_points),
    TEST(test_rate_cuts),
    TEST(test_scheduled_scale),
    TEST(test_schedule_by_hand),
    TEST(test_ray_count),
    TEST(test_uniform_ray_count),
    TEST(test_dispatches),
    TEST(test_few_groups),
    TEST(test_runs),
    TEST(test_idle),
    TEST(test_occupancy_update),
    TEST(test_average),
    TEST(test_proposal),
};
const struct certify_part certify_begin_step = {"begin_step", tests, BASE_COUNT(tests)};
