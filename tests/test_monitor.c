/* What is told about gradients: by made-up figures, and by trainings that are made to go wrong. */
#include "step_fixture.h"

/* ---- figures ------------------------------------------------------------------------------- */

/* A training whose figures are made up. */
struct made_up {
    struct monitor monitor;
    struct Stats stats;
    unsigned told;
    char line[MONITOR_LINE]; /* the last one */
};

static struct made_up begin(void)
{
    return (struct made_up){.stats = {.loss_scale = 8}};
}

static void add(struct made_up *made, uint32_t steps, float norm, float underflowed)
{
    for (uint32_t i = 0; i < steps; i++) {
        made->stats.step++;
        made->stats.grad_norm = norm;
        made->stats.underflowed = underflowed;
        made->told += monitor_step(&made->monitor, &made->stats, made->line);
    }
}

static void assert_summary(const struct made_up *made, const char *expected)
{
    char line[MONITOR_LINE];
    assert_true(monitor_summary(&made->monitor, line));
    assert_string_equal(line, expected);
}

static void assert_silent(const struct made_up *made)
{
    char line[MONITOR_LINE];
    assert_int_equal(made->told, 0);
    assert_false(monitor_summary(&made->monitor, line));
}

/* Once, when most of the last steps flush much, and not by a few that do. */
static void test_underflowed(void **state)
{
    (void)state;
    struct made_up made = begin();
    add(&made, 100, 1, 0.01f);
    add(&made, 40, 1, 0.9f);
    add(&made, 1000, 1, 0.0195f);
    assert_silent(&made);
    add(&made, 44, 1, 1);
    assert_silent(&made);
    add(&made, 1, 1, 1);
    assert_int_equal(made.told, 1);
    assert_string_equal(made.line,
                        "step 1185: 100 % of the gradients underflow in f16 at a loss scale "
                        "of 8: little is learnt; use --loss-scale dynamic or a larger scale");
    add(&made, 1000, 0, 1); /* that they are zero says nothing new */
    assert_int_equal(made.told, 1);
    assert_summary(&made, "in 1085 of 2185 steps more than 2 % of the gradients underflowed in "
                          "f16");
}

static void test_zero(void **state)
{
    (void)state;
    struct made_up made = begin();
    add(&made, 63, 0, 0);
    add(&made, 1, 1e-30f, 0);
    add(&made, 63, 0, 0);
    assert_silent(&made);
    add(&made, 1, 0, 0);
    assert_int_equal(made.told, 1);
    assert_string_equal(made.line,
                        "step 128: the gradient was zero in the last 64 steps: nothing is learnt; "
                        "check that the views see the training space (vknerf info SCENE), and "
                        "optimizer.learning_rate");
    add(&made, 500, 0, 0);
    assert_int_equal(made.told, 1);
    assert_summary(&made, "in 627 of 628 steps the gradient was zero");
}

static void test_jump(void **state)
{
    (void)state;
    struct made_up made = begin();
    add(&made, 1, 1e-5f, 0);
    add(&made, 30, 1, 0); /* a beginning has no usual norm */
    add(&made, 60, 2, 0);
    add(&made, 1, 199, 0);
    add(&made, 1, INFINITY, 0); /* is a step that is skipped */
    add(&made, 1, NAN, 0);
    assert_silent(&made);
    add(&made, 1, 201, 0);
    assert_int_equal(made.told, 1);
    assert_string_equal(made.line,
                        "step 95: the gradient's norm jumps to 201, 100 times the usual 2: lower "
                        "optimizer.learning_rate, or clip such gradients with --set "
                        "optimizer.clip_norm=2e+01");
    add(&made, 5, 1e6f, 0);
    assert_int_equal(made.told, 1);
    assert_summary(&made, "in 6 of 98 steps the gradient's norm was more than 100 times the usual "
                          "one");
}

/* At once, once, and at the end; the gradients of such steps say nothing. */
static void test_loss(void **state)
{
    (void)state;
    struct made_up made = begin();
    add(&made, 3, 1, 0);
    assert_silent(&made);
    made.stats.loss = NAN;
    add(&made, 2, NAN, 0);
    made.stats.loss = INFINITY;
    add(&made, 1, 1, 0);
    assert_int_equal(made.told, 1);
    assert_string_equal(made.line,
                        "step 4: the loss is not finite: the field's values are not finite; lower "
                        "optimizer.learning_rate, undo settings of policy.*, or compute in "
                        "--precision fp32");
    made.stats.loss = 0.5F;
    add(&made, 3, 1, 0);
    assert_int_equal(made.told, 1);
    assert_summary(&made, "steps whose loss was not finite: 3");
}

/* Norms that grow or fall by a factor of a million, a tenfold spread, one step in a hundred zero.
 */
static void test_healthy(void **state)
{
    (void)state;
    struct made_up made = begin();
    for (uint32_t i = 0; i < 3000; i++) {
        double wave = sin(0.004 * i) * 6, spread = (double)(i * 7919u % 100) / 100;
        add(&made, 1, i % 100 ? (float)pow(10, wave + spread) : 0, 0.02f * (float)spread);
    }
    assert_silent(&made);
}

/* All at once: each has its line. */
static void test_all(void **state)
{
    (void)state;
    struct made_up made = begin();
    add(&made, 100, 1, 0);
    add(&made, 44, 1, 1);
    add(&made, 1, 1000, 1); /* one line a step: the jump's comes with the next one */
    assert_int_equal(made.told, 1);
    add(&made, 1, 1000, 1);
    assert_int_equal(made.told, 2);
    made = begin();
    add(&made, 64, 0, 0);
    add(&made, 64, 1, 0);
    add(&made, 45, 1, 1);
    add(&made, 1, 101, 1);
    assert_int_equal(made.told, 3);
    assert_summary(&made, "in 46 of 174 steps more than 2 % of the gradients underflowed in "
                          "f16; in 1 of 174 steps the gradient's norm was more than 100 times "
                          "the usual one; in 64 of 174 steps the gradient was zero");
}

/* ---- skipped steps ------------------------------------------------------------------------- */

static struct made_up begin_scaled(uint32_t kind, float growth, uint32_t interval)
{
    const struct Config constants = {.scale_kind = kind,
                                     .scale_growth = growth,
                                     .scale_backoff = 0.5f,
                                     .scale_minimum = 0x1p-126f,
                                     .scale_interval = interval};
    struct made_up made = begin();
    made.stats.skipped_steps = 100; /* of a run that goes on */
    monitor_begin(&made.monitor, &constants, 100, 0);
    return made;
}

static void skip_steps(struct made_up *made, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        made->stats.skipped_steps++;
        add(made, 1, INFINITY, 0);
    }
}

/* A search at the beginning is no trouble, nor is one overflow in 32 steps, or 16 in 64. */
static void test_search(void **state)
{
    (void)state;
    struct made_up made = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    skip_steps(&made, 63);
    for (uint32_t i = 0; i < 64; i++) {
        add(&made, 31, 1, 0);
        skip_steps(&made, 1);
    }
    made.stats.loss_scale = 4;
    add(&made, 200, 1, 0);
    skip_steps(&made, 16);
    add(&made, 1000, 1, 0);
    assert_silent(&made);
    assert_true(made.monitor.skips.searched == 63 && made.monitor.skips.skipped == 143);
    assert_true(monitor_is_sound(&made.monitor));
}

/* A quarter of the last 64 steps; the setting that is furthest from its default is named. */
static void test_skipped_window(void **state)
{
    (void)state;
    struct made_up made = begin_scaled(SCALE_DYNAMIC, 1024, 1);
    skip_steps(&made, 3);
    add(&made, 50, 1, 0);
    skip_steps(&made, 16);
    assert_int_equal(made.told, 0);
    skip_steps(&made, 1);
    assert_int_equal(made.told, 1);
    assert_string_equal(
        made.line, "step 70: 17 of the last 64 steps were skipped: at a loss scale of 8 their "
                   "gradients are not finite; the scale grows too much too often: use a smaller "
                   "loss_scale.growth (1024 now, 2 by default) or a longer "
                   "loss_scale.interval (1 now, 2000 by default)");
    skip_steps(&made, 200); /* is told once */
    assert_int_equal(made.told, 1);
    assert_summary(&made, "220 of 270 steps (81 %) were skipped");
    /* Fewer steps than that so far; a scale that its minimum keeps too high. */
    made = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    made.monitor.scale.lowest = 8;
    add(&made, 1, 1, 0);
    skip_steps(&made, 17);
    assert_string_equal(made.line,
                        "step 18: 17 of the last 18 steps were skipped: at a loss scale of 8 their "
                        "gradients are not finite; use a smaller loss_scale.minimum (8 now)");
}

/* One in 16 for 256 steps; at the end of a shorter training as well. */
static void test_skipped_share(void **state)
{
    (void)state;
    struct made_up made = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    add(&made, 20, 1, 0);
    skip_steps(&made, 8); /* gradients grow at the beginning of a short training */
    assert_silent(&made);
    made = begin_scaled(SCALE_DYNAMIC, 2, 16);
    for (uint32_t i = 0; i < 16; i++) {
        if (i == 15) {
            assert_int_equal(made.told, 0);
            assert_summary(&made, "15 of 240 steps (6 %) were skipped");
        }
        add(&made, 15, 1, 0);
        skip_steps(&made, 1);
    }
    assert_int_equal(made.told, 1);
    assert_string_equal(made.line,
                        "step 256: 16 of 256 steps (6 %) were skipped: at a loss scale of 8 their "
                        "gradients are not finite; the scale grows too often: use a longer "
                        "loss_scale.interval (16 now, 2000 by default)");
}

static void test_skipped_advice(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind, interval;
        float growth, backoff, scale;
        const char *advice;
    } cases[] = {
        {SCALE_STATIC, 1, 1, 0.5f, 8, "use a smaller static scale, or --loss-scale dynamic"},
        {SCALE_STATIC, 1, 1, 0.5f, 1, "finite; lower optimizer.learning_rate"},
        {SCALE_SCHEDULE, 1, 1, 0.5f, 8, "lower the scale that loss_scale.schedule has there"},
        {SCALE_DYNAMIC, 2000, 64, 0.5f, 8, "loss_scale.growth (64 now, 2 by default)"},
        {SCALE_DYNAMIC, 2000, 2, 0.99f, 8, "loss_scale.backoff (0.99 now, 0.5 by default)"},
        {SCALE_DYNAMIC, 2000, 2, 0.5f, 8, "finite; lower optimizer.learning_rate, or compute in"},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct made_up made = begin_scaled(cases[i].kind, cases[i].growth, cases[i].interval);
        made.monitor.scale.backoff = cases[i].backoff;
        made.stats.loss_scale = cases[i].scale;
        add(&made, 1, 1, 0);
        skip_steps(&made, 17);
        assert_int_equal(made.told, 1);
        assert_non_null(strstr(made.line, cases[i].advice));
    }
    /* A search that takes longer than 64 steps. */
    struct made_up made = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    skip_steps(&made, 64);
    assert_int_equal(made.told, 1);
    assert_non_null(strstr(made.line, "step 64: the last 64 steps were skipped"));
    assert_non_null(strstr(made.line, "begin with a smaller loss_scale.initial"));
}

/* ---- the end ------------------------------------------------------------------------------- */

static void assert_ended(const struct made_up *made, enum monitor_end end, uint32_t step,
                         const char *expected)
{
    char line[MONITOR_LINE];
    assert_int_equal(made->monitor.convergence.end, end);
    assert_int_equal(made->monitor.convergence.end_step, step);
    assert_int_equal(monitor_ended(&made->monitor, line), end != MONITOR_GOES_ON);
    assert_true(monitor_is_sound(&made->monitor) == (end == MONITOR_GOES_ON));
    if (end != MONITOR_GOES_ON)
        assert_non_null(strstr(line, expected));
}

static void test_no_loss(void **state)
{
    (void)state;
    struct made_up made = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    made.stats.loss = NAN;
    skip_steps(&made, 63);
    assert_false(monitor_is_sound(&made.monitor));
    made.stats.loss = 0.5f;
    add(&made, 1, 1, 0);
    assert_ended(&made, MONITOR_GOES_ON, 0, "");
    assert_int_equal(made.told, 1); /* of the loss, not of the steps that are skipped for it */
    made.stats.loss = INFINITY;
    skip_steps(&made, 70);
    assert_ended(&made, MONITOR_NO_LOSS, 128, "since step 65 no loss was finite");
}

/* A scale that comes down, or that the schedule lowers later, is waited for. */
static void test_no_step(void **state)
{
    (void)state;
    struct made_up made = begin_scaled(SCALE_STATIC, 1, 1);
    skip_steps(&made, 63);
    assert_int_equal(made.monitor.convergence.end, MONITOR_GOES_ON);
    assert_false(monitor_is_sound(&made.monitor));
    skip_steps(&made, 1);
    assert_ended(&made, MONITOR_NO_STEP, 64, "every step since step 1 was skipped");
    made = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    skip_steps(&made, 200);
    assert_int_equal(made.monitor.convergence.end, MONITOR_GOES_ON);
    made.stats.loss_scale = 0x1p-126f;
    skip_steps(&made, 64);
    assert_ended(&made, MONITOR_NO_STEP, 264, "every step since step 201 was skipped");
    made = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    monitor_begin(
        &made.monitor,
        &(struct Config){.scale_kind = SCALE_DYNAMIC, .scale_backoff = 0.5f, .scale_minimum = 16},
        0, NAN);
    made.stats.loss_scale = 32;
    skip_steps(&made, 64);
    assert_int_equal(made.monitor.convergence.end, MONITOR_GOES_ON);
    made.stats.loss_scale = 16;
    skip_steps(&made, 64);
    assert_ended(&made, MONITOR_NO_STEP, 128, "every step since step 65 was skipped");
    made = begin_scaled(SCALE_SCHEDULE, 1, 1);
    made.monitor.scale.points = 3;
    made.monitor.scale.schedule[0] = (SchedulePoint){0, 8};
    made.monitor.scale.schedule[1] = (SchedulePoint){100, 16};
    made.monitor.scale.schedule[2] = (SchedulePoint){150, 4};
    skip_steps(&made, 150);
    assert_int_equal(made.monitor.convergence.end, MONITOR_GOES_ON);
    made.stats.loss_scale = 4;
    skip_steps(&made, 64);
    assert_ended(&made, MONITOR_NO_STEP, 214, "every step since step 151 was skipped");
}

/* Of steps whose colours have that error. */
static void add_error(struct made_up *made, uint32_t steps, double error)
{
    made->stats.square = (float)error;
    add(made, steps, 1, 0);
}

/* Six decibels above the best, and not far from one colour, for 256 steps. */
static void test_worse(void **state)
{
    (void)state;
    struct made_up made = begin_scaled(SCALE_STATIC, 1, 1);
    made.monitor.convergence.constant_error = 0.03;
    add_error(&made, 300, 0.02);
    add_error(&made, 100, 0.001);
    add_error(&made, 1000, 0.0039);
    assert_silent(&made);
    add_error(&made, 1000, 0.007); /* as good as one colour is 0.0075 */
    assert_silent(&made);
    add_error(&made, 255, 0.008);
    assert_silent(&made);
    add_error(&made, 64, 0.008);
    assert_int_equal(made.told, 1);
    assert_non_null(strstr(made.line, "the training rays have been 6 dB worse than at their best "
                                      "for 256 steps (20.97 dB, 30.00 dB at step 364): lower "
                                      "optimizer.learning_rate"));
    assert_false(monitor_is_sound(&made.monitor));
    assert_summary(&made, "the training rays ended at 20.97 dB, and had 30.00 dB at step 364");
    assert_int_equal(made.monitor.convergence.end, MONITOR_GOES_ON);
    add_error(&made, 500, 0.031); /* a peak that goes away */
    add_error(&made, 64, 0.02);
    add_error(&made, 511, 0.031);
    assert_int_equal(made.monitor.convergence.end, MONITOR_GOES_ON);
    add_error(&made, 64, 0.031);
    assert_int_equal(made.monitor.convergence.end, MONITOR_DIVERGED);
    char line[MONITOR_LINE];
    assert_true(monitor_ended(&made.monitor, line));
    assert_non_null(strstr(line, "are worse than one colour for all of them (15.09 dB, 15.23 dB), "
                                 "after 30.00 dB at step 364"));
}

static void test_plain(void **state)
{
    (void)state;
    struct made_up made = begin_scaled(SCALE_STATIC, 1, 1);
    made.monitor.convergence.constant_error = 0.03;
    add_error(&made, 2047, 0.028);
    assert_int_equal(made.told, 0);
    assert_summary(&made,
                   "the training rays ended at 15.53 dB, where one colour for all of them has "
                   "15.23 dB: nothing was learnt; train longer, or lower "
                   "optimizer.learning_rate");
    made.monitor.zeros = 64; /* no gradient: more of the same changes nothing */
    assert_summary(&made,
                   "the training rays ended at 15.53 dB, where one colour for all of them has "
                   "15.23 dB: nothing was learnt; lower optimizer.learning_rate");
    made.monitor.zeros = 0;
    add_error(&made, 1, 0.028);
    assert_int_equal(made.told, 1);
    assert_non_null(strstr(made.line,
                           "step 2048: nothing has been learnt: the training rays are at "
                           "15.53 dB, where one colour for all of them has 15.23 dB"));
    /* A training too short to say so, and one whose views nobody could look at. */
    for (int i = 0; i < 2; i++) {
        made = begin_scaled(SCALE_STATIC, 1, 1);
        made.monitor.convergence.constant_error = i == 0 ? 0.03 : 0;
        add_error(&made, i == 0 ? 127 : 5000, 0.04);
        assert_silent(&made);
    }
}

/* A loss that falls with a tenfold spread from step to step, and what a larger image, or views of
 * later times, add to it. */
static void test_healthy_course(void **state)
{
    (void)state;
    struct made_up made = begin_scaled(SCALE_STATIC, 1, 1);
    made.monitor.convergence.constant_error = 0.03;
    for (uint32_t i = 0; i < 6000; i++) {
        double spread = pow(10, (double)(i * 7919u % 100) / 100 - 0.5);
        double more = i > 2000 && i < 2600 ? 2.5 : 1;
        add_error(&made, 1, more * spread * fmax(0.08 * exp(-0.01 * i), 0.0005 + 0.1 / (i + 20)));
    }
    assert_silent(&made);
    assert_ended(&made, MONITOR_GOES_ON, 0, "");
}

/* ---- trainings ----------------------------------------------------------------------------- */

/* With weights of zero no weight and no feature has a gradient. */
static void kill_field(struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    float *params = tiny_take(tiny, &step->buffers.at[BIND_PARAMS]);
    memset(params, 0, step->setup.model.mlp_params * sizeof *params);
    tiny_put(tiny, &step->buffers.at[BIND_PARAMS], params);
    ok(step_round_parameters(&tiny->trainer->step));
    free(params);
}

static void test_dead_field(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(false);
    struct warnings warnings = {0};
    config.steps = 96;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    kill_field(&tiny);
    tiny_run_watched(&tiny, 63, &warnings);
    assert_int_equal(warnings.count, 0);
    tiny_run_watched(&tiny, 96, &warnings); /* across two runs */
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.last, "step 64: the gradient was zero in the last 64 steps"));
    tiny_destroy(&tiny);
}

static void test_exploding_field(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(false);
    struct warnings warnings = {0};
    config.steps = 112;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    tiny_run_watched(&tiny, 80, &warnings);
    assert_int_equal(warnings.count, 0);
    tiny_stretch_last_layer(&tiny, 1e5f);
    tiny_run_watched(&tiny, 112, &warnings);
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.last, "step 81: the gradient's norm jumps to "));
    tiny_destroy(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_underflowed),
        cmocka_unit_test(test_zero),
        cmocka_unit_test(test_jump),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_healthy),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_skipped_window),
        cmocka_unit_test(test_skipped_share),
        cmocka_unit_test(test_skipped_advice),
        cmocka_unit_test(test_no_loss),
        cmocka_unit_test(test_no_step),
        cmocka_unit_test(test_worse),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_healthy_course),
        cmocka_unit_test(test_dead_field),
        cmocka_unit_test(test_exploding_field),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
