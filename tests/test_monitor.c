/* Tests the monitor's warnings, with made-up statistics and with trainings that go wrong. */
#include "step_fixture.h"

/* ---- made-up statistics -------------------------------------------------------------------- */

/* A training with made-up statistics. */
struct statistics {
    struct monitor monitor;
    struct Stats stats;
    unsigned warnings;
    char line[MONITOR_LINE]; /* the last warning */
};

static struct statistics begin(void)
{
    return (struct statistics){.stats = {.loss_scale = 8}};
}

static void add(struct statistics *fake, uint32_t steps, float norm, float underflowed)
{
    for (uint32_t i = 0; i < steps; i++) {
        fake->stats.step++;
        fake->stats.grad_norm = norm;
        fake->stats.underflowed = underflowed;
        fake->warnings += monitor_step(&fake->monitor, &fake->stats, fake->line);
    }
}

static void assert_summary(const struct statistics *fake, const char *expected)
{
    char line[MONITOR_LINE];
    assert_true(monitor_summary(&fake->monitor, line));
    assert_string_equal(line, expected);
}

static void assert_silent(const struct statistics *fake)
{
    char line[MONITOR_LINE];
    assert_int_equal(fake->warnings, 0);
    assert_false(monitor_summary(&fake->monitor, line));
}

/* A norm that is computed every 16th step counts for the steps before it. */
static void test_rare_norms(void **state)
{
    (void)state;
    struct statistics zero = begin(), jump = begin();
    for (uint32_t i = 0; i < 4; i++) {
        add(&zero, 15, -1, 0);
        assert_int_equal(zero.warnings, 0);
        add(&zero, 1, 0, 0);
        add(&jump, 15, -1, 0);
        add(&jump, 1, 2, 0);
    }
    assert_int_equal(zero.warnings, 1);
    assert_summary(&zero, "in 64 of 64 steps the gradient was zero");
    assert_silent(&jump);
    add(&jump, 15, -1, 0);
    add(&jump, 1, 300, 0);
    assert_int_equal(jump.warnings, 1);
    assert_non_null(strstr(jump.line, "step 80: the gradient's norm jumps to 300, 150 times"));
}

/* One warning when most of the last steps underflow a lot, and none for a few such steps. */
static void test_underflowed(void **state)
{
    (void)state;
    struct statistics fake = begin();
    add(&fake, 100, 1, 0.01f);
    add(&fake, 40, 1, 0.9f);
    add(&fake, 1000, 1, 0.0195f);
    assert_silent(&fake);
    add(&fake, 44, 1, 1);
    assert_silent(&fake);
    add(&fake, 1, 1, 1);
    assert_int_equal(fake.warnings, 1);
    assert_string_equal(fake.line,
                        "step 1185: 100 % of the gradients underflow in f16 at a loss scale "
                        "of 8: little is learnt; use --loss-scale dynamic or a larger scale");
    add(&fake, 1000, 0, 1); /* zero gradients are not reported in addition */
    assert_int_equal(fake.warnings, 1);
    assert_summary(&fake, "in 1085 of 2185 steps more than 2 % of the gradients underflowed in "
                          "f16");
}

/* Adds steps with a share of underflowed gradients at a dynamic scale; `skips`: the first one
 * overflows. */
static void add_dynamic(struct statistics *fake, uint32_t steps, float scale, float share,
                        bool skips)
{
    fake->stats.loss_scale = scale;
    fake->stats.skipped_steps += skips;
    add(fake, steps, 1, share);
}

/* With a dynamic scale there is a warning only if the scale cannot grow soon. */
static void test_underflowed_dynamic(void **state)
{
    (void)state;
    const struct monitor_scale scale = {
        .kind = SCALE_DYNAMIC, .highest = 4096, .underflow = 0.01f, .interval = 2000};
    struct statistics fake = begin();
    fake.monitor.scale = scale;
    add_dynamic(&fake, 500, 64, 0.03f, false);
    add_dynamic(&fake, 1, 128, 0.03f, true);
    add_dynamic(&fake, 30, 64, 0.03f, false);
    add_dynamic(&fake, 500, 128, 0.03f, false); /* it has grown again */
    assert_silent(&fake);
    add_dynamic(&fake, 1, 256, 0.03f, true);
    add_dynamic(&fake, 43, 128, 0.03f, false);
    assert_silent(&fake);
    add_dynamic(&fake, 1, 128, 0.03f, false);
    assert_int_equal(fake.warnings, 1);
    assert_string_equal(fake.line,
                        "step 1076: 3 % of the gradients underflow in f16 at a loss scale "
                        "of 128: small gradients count as zero; a larger scale overflowed; "
                        "--precision fp32 keeps small gradients");
    assert_summary(&fake, "in 1076 of 1076 steps more than 2 % of the gradients underflowed in "
                          "f16");
    fake = begin();
    fake.monitor.scale = scale;
    add_dynamic(&fake, 45, 4096, 0.2f, false);
    assert_string_equal(fake.line,
                        "step 45: 20 % of the gradients underflow in f16 at a loss scale "
                        "of 4096: little is learnt; use a larger loss_scale.maximum");
    fake = begin();
    fake.monitor.scale = scale;
    fake.monitor.scale.underflow = 0.1f;
    add_dynamic(&fake, 45, 64, 0.09f, false);
    assert_string_equal(fake.line, "step 45: 9 % of the gradients underflow in f16 at a loss scale "
                                   "of 64: small gradients count as zero; use a smaller "
                                   "loss_scale.underflow");
    add_dynamic(&fake, 1000, 64, 0.2f, false);
    assert_int_equal(fake.warnings, 1);
}

static void test_zero(void **state)
{
    (void)state;
    struct statistics fake = begin();
    add(&fake, 63, 0, 0);
    add(&fake, 1, 1e-30f, 0);
    add(&fake, 63, 0, 0);
    assert_silent(&fake);
    add(&fake, 1, 0, 0);
    assert_int_equal(fake.warnings, 1);
    assert_string_equal(fake.line,
                        "step 128: the gradient was zero in the last 64 steps: nothing is learnt; "
                        "check that the views see the training space (vknerf info SCENE), and "
                        "optimizer.learning_rate");
    add(&fake, 500, 0, 0);
    assert_int_equal(fake.warnings, 1);
    assert_summary(&fake, "in 627 of 628 steps the gradient was zero");
}

static void test_jump(void **state)
{
    (void)state;
    struct statistics fake = begin();
    add(&fake, 1, 1e-5f, 0);
    add(&fake, 30, 1, 0); /* the first steps have no usual norm */
    add(&fake, 60, 2, 0);
    add(&fake, 1, 199, 0);
    add(&fake, 1, INFINITY, 0); /* a skipped step */
    add(&fake, 1, NAN, 0);
    assert_silent(&fake);
    add(&fake, 1, 201, 0);
    assert_int_equal(fake.warnings, 1);
    assert_string_equal(fake.line,
                        "step 95: the gradient's norm jumps to 201, 100 times the usual 2: lower "
                        "optimizer.learning_rate, or clip such gradients with --set "
                        "optimizer.clip_norm=2e+01");
    add(&fake, 5, 1e6f, 0);
    assert_int_equal(fake.warnings, 1);
    assert_summary(&fake, "in 6 of 98 steps the gradient's norm was more than 100 times the usual "
                          "one");
}

/* A warning at once, one in all, and a summary; gradients of such steps are not counted. */
static void test_loss(void **state)
{
    (void)state;
    struct statistics fake = begin();
    add(&fake, 3, 1, 0);
    assert_silent(&fake);
    fake.stats.loss = NAN;
    add(&fake, 2, NAN, 0);
    fake.stats.loss = INFINITY;
    add(&fake, 1, 1, 0);
    assert_int_equal(fake.warnings, 1);
    assert_string_equal(fake.line,
                        "step 4: the loss is not finite: the field's values are not finite; lower "
                        "optimizer.learning_rate, undo settings of policy.*, or compute in "
                        "--precision fp32");
    fake.stats.loss = 0.5F;
    fake.stats.distortion_loss = NAN;
    add(&fake, 1, 1, 0);
    fake.stats.distortion_loss = 0;
    fake.stats.coarse_loss = INFINITY;
    add(&fake, 1, 1, 0);
    fake.stats.coarse_loss = -1; /* not in these steps */
    add(&fake, 3, 1, 0);
    assert_int_equal(fake.warnings, 1);
    assert_summary(&fake, "steps whose loss was not finite: 5");
}

/* Norms that change by a factor of a million, a tenfold spread, every hundredth step zero. */
static void test_healthy(void **state)
{
    (void)state;
    struct statistics fake = begin();
    for (uint32_t i = 0; i < 3000; i++) {
        double wave = sin(0.004 * i) * 6, spread = (double)(i * 7919u % 100) / 100;
        add(&fake, 1, i % 100 ? (float)pow(10, wave + spread) : 0, 0.02f * (float)spread);
    }
    assert_silent(&fake);
}

/* Several problems at once: each has its warning. */
static void test_all(void **state)
{
    (void)state;
    struct statistics fake = begin();
    add(&fake, 100, 1, 0);
    add(&fake, 44, 1, 1);
    add(&fake, 1, 1000, 1); /* one warning a step: the jump's comes with the next step */
    assert_int_equal(fake.warnings, 1);
    add(&fake, 1, 1000, 1);
    assert_int_equal(fake.warnings, 2);
    fake = begin();
    add(&fake, 64, 0, 0);
    add(&fake, 64, 1, 0);
    add(&fake, 45, 1, 1);
    add(&fake, 1, 101, 1);
    assert_int_equal(fake.warnings, 3);
    assert_summary(&fake, "in 46 of 174 steps more than 2 % of the gradients underflowed in "
                          "f16; in 1 of 174 steps the gradient's norm was more than 100 times "
                          "the usual one; in 64 of 174 steps the gradient was zero");
}

/* ---- skipped steps ------------------------------------------------------------------------- */

static struct statistics begin_scaled(uint32_t kind, float growth, uint32_t interval)
{
    const struct Config constants = {.scale_kind = kind,
                                     .scale_growth = growth,
                                     .scale_backoff = 0.5f,
                                     .scale_minimum = 0x1p-126f,
                                     .scale_interval = interval};
    struct statistics fake = begin();
    fake.stats.skipped_steps = 100; /* of the run that is resumed */
    monitor_begin(&fake.monitor, &constants, 100, 0);
    return fake;
}

static void skip_steps(struct statistics *fake, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        fake->stats.skipped_steps++;
        add(fake, 1, INFINITY, 0);
    }
}

/* The initial search of a scale is no problem, nor is one overflow in 32 steps, or 16 in 64. */
static void test_search(void **state)
{
    (void)state;
    struct statistics fake = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    skip_steps(&fake, 63);
    for (uint32_t i = 0; i < 64; i++) {
        add(&fake, 31, 1, 0);
        skip_steps(&fake, 1);
    }
    fake.stats.loss_scale = 4;
    add(&fake, 200, 1, 0);
    skip_steps(&fake, 16);
    add(&fake, 1000, 1, 0);
    assert_silent(&fake);
    assert_true(fake.monitor.skips.searched == 63 && fake.monitor.skips.skipped == 143);
    assert_true(monitor_is_sound(&fake.monitor));
}

/* A quarter of the last 64 steps: the warning names the setting furthest from its default. */
static void test_skipped_window(void **state)
{
    (void)state;
    struct statistics fake = begin_scaled(SCALE_DYNAMIC, 1024, 1);
    skip_steps(&fake, 3);
    add(&fake, 50, 1, 0);
    skip_steps(&fake, 16);
    assert_int_equal(fake.warnings, 0);
    skip_steps(&fake, 1);
    assert_int_equal(fake.warnings, 1);
    assert_string_equal(
        fake.line, "step 70: 17 of the last 64 steps were skipped: at a loss scale of 8 their "
                   "gradients are not finite; the scale grows too much too often: use a smaller "
                   "loss_scale.growth (1024 now, 2 by default) or a longer "
                   "loss_scale.interval (1 now, 2000 by default)");
    skip_steps(&fake, 200); /* is reported once */
    assert_int_equal(fake.warnings, 1);
    assert_summary(&fake, "220 of 270 steps (81 %) were skipped");
    /* Fewer than 64 steps so far; the scale's minimum is too high. */
    fake = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    fake.monitor.scale.lowest = 8;
    add(&fake, 1, 1, 0);
    skip_steps(&fake, 17);
    assert_string_equal(fake.line,
                        "step 18: 17 of the last 18 steps were skipped: at a loss scale of 8 their "
                        "gradients are not finite; use a smaller loss_scale.minimum (8 now)");
}

/* One in 16 during 256 steps; in a shorter training in the summary only. */
static void test_skipped_share(void **state)
{
    (void)state;
    struct statistics fake = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    add(&fake, 20, 1, 0);
    skip_steps(&fake, 8); /* a short training's first gradients may grow */
    assert_silent(&fake);
    fake = begin_scaled(SCALE_DYNAMIC, 2, 16);
    for (uint32_t i = 0; i < 16; i++) {
        if (i == 15) {
            assert_int_equal(fake.warnings, 0);
            assert_summary(&fake, "15 of 240 steps (6 %) were skipped");
        }
        add(&fake, 15, 1, 0);
        skip_steps(&fake, 1);
    }
    assert_int_equal(fake.warnings, 1);
    assert_string_equal(fake.line,
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
        {SCALE_SCHEDULE, 1, 1, 0.5f, 8, "lower the scale of loss_scale.schedule at this step"},
        {SCALE_DYNAMIC, 2000, 64, 0.5f, 8, "loss_scale.growth (64 now, 2 by default)"},
        {SCALE_DYNAMIC, 2000, 2, 0.99f, 8, "loss_scale.backoff (0.99 now, 0.5 by default)"},
        {SCALE_DYNAMIC, 2000, 2, 0.5f, 8, "finite; lower optimizer.learning_rate, or compute in"},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        struct statistics fake = begin_scaled(cases[i].kind, cases[i].growth, cases[i].interval);
        fake.monitor.scale.backoff = cases[i].backoff;
        fake.stats.loss_scale = cases[i].scale;
        add(&fake, 1, 1, 0);
        skip_steps(&fake, 17);
        assert_int_equal(fake.warnings, 1);
        assert_non_null(strstr(fake.line, cases[i].advice));
    }
    /* A search of the scale longer than 64 steps. */
    struct statistics fake = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    skip_steps(&fake, 64);
    assert_int_equal(fake.warnings, 1);
    assert_non_null(strstr(fake.line, "step 64: the last 64 steps were skipped"));
    assert_non_null(strstr(fake.line, "begin with a smaller loss_scale.initial"));
}

/* ---- the end ------------------------------------------------------------------------------- */

static void assert_ended(const struct statistics *fake, enum monitor_end end, uint32_t step,
                         const char *expected)
{
    char line[MONITOR_LINE];
    assert_int_equal(fake->monitor.convergence.end, end);
    assert_int_equal(fake->monitor.convergence.end_step, step);
    assert_int_equal(monitor_ended(&fake->monitor, line), end != MONITOR_GOES_ON);
    assert_true(monitor_is_sound(&fake->monitor) == (end == MONITOR_GOES_ON));
    if (end != MONITOR_GOES_ON)
        assert_non_null(strstr(line, expected));
}

static void test_no_loss(void **state)
{
    (void)state;
    struct statistics fake = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    fake.stats.loss = NAN;
    skip_steps(&fake, 63);
    assert_false(monitor_is_sound(&fake.monitor));
    fake.stats.loss = 0.5f;
    add(&fake, 1, 1, 0);
    assert_ended(&fake, MONITOR_GOES_ON, 0, "");
    assert_int_equal(fake.warnings, 1); /* about the loss, not about the steps that it skips */
    fake.stats.loss = INFINITY;
    skip_steps(&fake, 70);
    assert_ended(&fake, MONITOR_NO_LOSS, 128, "since step 65 no loss was finite");
}

/* The training waits for a scale that falls, now or later in the schedule. */
static void test_no_step(void **state)
{
    (void)state;
    struct statistics fake = begin_scaled(SCALE_STATIC, 1, 1);
    skip_steps(&fake, 63);
    assert_int_equal(fake.monitor.convergence.end, MONITOR_GOES_ON);
    assert_false(monitor_is_sound(&fake.monitor));
    skip_steps(&fake, 1);
    assert_ended(&fake, MONITOR_NO_STEP, 64, "every step since step 1 was skipped");
    fake = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    skip_steps(&fake, 200);
    assert_int_equal(fake.monitor.convergence.end, MONITOR_GOES_ON);
    fake.stats.loss_scale = 0x1p-126f;
    skip_steps(&fake, 64);
    assert_ended(&fake, MONITOR_NO_STEP, 264, "every step since step 201 was skipped");
    fake = begin_scaled(SCALE_DYNAMIC, 2, 2000);
    monitor_begin(
        &fake.monitor,
        &(struct Config){.scale_kind = SCALE_DYNAMIC, .scale_backoff = 0.5f, .scale_minimum = 16},
        0, NAN);
    fake.stats.loss_scale = 32;
    skip_steps(&fake, 64);
    assert_int_equal(fake.monitor.convergence.end, MONITOR_GOES_ON);
    fake.stats.loss_scale = 16;
    skip_steps(&fake, 64);
    assert_ended(&fake, MONITOR_NO_STEP, 128, "every step since step 65 was skipped");
    fake = begin_scaled(SCALE_SCHEDULE, 1, 1);
    fake.monitor.scale.points = 3;
    fake.monitor.scale.schedule[0] = (SchedulePoint){0, 8};
    fake.monitor.scale.schedule[1] = (SchedulePoint){100, 16};
    fake.monitor.scale.schedule[2] = (SchedulePoint){150, 4};
    skip_steps(&fake, 150);
    assert_int_equal(fake.monitor.convergence.end, MONITOR_GOES_ON);
    fake.stats.loss_scale = 4;
    skip_steps(&fake, 64);
    assert_ended(&fake, MONITOR_NO_STEP, 214, "every step since step 151 was skipped");
}

/* Adds steps with this mean squared error of the colours. */
static void add_error(struct statistics *fake, uint32_t steps, double error)
{
    fake->stats.square = (float)error;
    add(fake, steps, 1, 0);
}

/* Six decibels above the best error, and close to the error of a constant colour, for 256 steps. */
static void test_worse(void **state)
{
    (void)state;
    struct statistics fake = begin_scaled(SCALE_STATIC, 1, 1);
    fake.monitor.convergence.constant_error = 0.03;
    add_error(&fake, 300, 0.02);
    add_error(&fake, 100, 0.001);
    add_error(&fake, 1000, 0.0039);
    assert_silent(&fake);
    add_error(&fake, 1000, 0.007); /* 0.0075 would be close to a constant colour */
    assert_silent(&fake);
    add_error(&fake, 255, 0.008);
    assert_silent(&fake);
    add_error(&fake, 64, 0.008);
    assert_int_equal(fake.warnings, 1);
    assert_non_null(strstr(fake.line, "the training rays have been 6 dB worse than at their best "
                                      "for 256 steps (20.97 dB, 30.00 dB at step 364): lower "
                                      "optimizer.learning_rate"));
    assert_false(monitor_is_sound(&fake.monitor));
    assert_summary(&fake, "the training rays ended at 20.97 dB, and had 30.00 dB at step 364");
    assert_int_equal(fake.monitor.convergence.end, MONITOR_GOES_ON);
    add_error(&fake, 500, 0.031); /* a temporary peak */
    add_error(&fake, 64, 0.02);
    add_error(&fake, 511, 0.031);
    assert_int_equal(fake.monitor.convergence.end, MONITOR_GOES_ON);
    add_error(&fake, 64, 0.031);
    assert_int_equal(fake.monitor.convergence.end, MONITOR_DIVERGED);
    char line[MONITOR_LINE];
    assert_true(monitor_ended(&fake.monitor, line));
    assert_non_null(strstr(line, "are worse than one colour for all of them (15.09 dB, 15.23 dB), "
                                 "after 30.00 dB at step 364"));
}

static void test_constant(void **state)
{
    (void)state;
    struct statistics fake = begin_scaled(SCALE_STATIC, 1, 1);
    fake.monitor.convergence.constant_error = 0.03;
    add_error(&fake, 2047, 0.028);
    assert_int_equal(fake.warnings, 0);
    assert_summary(&fake,
                   "the training rays ended at 15.53 dB, where one colour for all of them has "
                   "15.23 dB: nothing was learnt; train longer, or lower "
                   "optimizer.learning_rate");
    fake.monitor.zeros_in_row = 64; /* no gradient: more steps are no remedy */
    assert_summary(&fake,
                   "the training rays ended at 15.53 dB, where one colour for all of them has "
                   "15.23 dB: nothing was learnt; lower optimizer.learning_rate");
    fake.monitor.zeros_in_row = 0;
    add_error(&fake, 1, 0.028);
    assert_int_equal(fake.warnings, 1);
    assert_non_null(strstr(fake.line,
                           "step 2048: nothing has been learnt: the training rays are at "
                           "15.53 dB, where one colour for all of them has 15.23 dB"));
    /* A training too short to judge, and one whose views could not be read. */
    for (int i = 0; i < 2; i++) {
        fake = begin_scaled(SCALE_STATIC, 1, 1);
        fake.monitor.convergence.constant_error = i == 0 ? 0.03 : 0;
        add_error(&fake, i == 0 ? 127 : 5000, 0.04);
        assert_silent(&fake);
    }
}

/* A loss that falls with a tenfold spread, and rises with larger images or later views. */
static void test_healthy_loss(void **state)
{
    (void)state;
    struct statistics fake = begin_scaled(SCALE_STATIC, 1, 1);
    fake.monitor.convergence.constant_error = 0.03;
    for (uint32_t i = 0; i < 6000; i++) {
        double spread = pow(10, (double)(i * 7919u % 100) / 100 - 0.5);
        double more = i > 2000 && i < 2600 ? 2.5 : 1;
        add_error(&fake, 1, more * spread * fmax(0.08 * exp(-0.01 * i), 0.0005 + 0.1 / (i + 20)));
    }
    assert_silent(&fake);
    assert_ended(&fake, MONITOR_GOES_ON, 0, "");
}

/* ---- trainings ----------------------------------------------------------------------------- */

/* With weights of zero all gradients of weights and features are zero. */
static void zero_weights(struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    float *params = tiny_read(tiny, &step->buffers.at[BIND_PARAMS]);
    memset(params, 0, step->setup.model.mlp_params * sizeof *params);
    tiny_put(tiny, &step->buffers.at[BIND_PARAMS], params);
    ok(step_round_parameters(&tiny->trainer->step));
    free(params);
}

static void test_zero_weights(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(false);
    struct warnings warnings = {0};
    config.steps = 96;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    zero_weights(&tiny);
    tiny_run_watched(&tiny, 63, &warnings);
    assert_int_equal(warnings.count, 0);
    tiny_run_watched(&tiny, 96, &warnings); /* over two runs */
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
    config.optimizer.clip_norm = 1e30f; /* needs the norm of every step */
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
        cmocka_unit_test(test_rare_norms),
        cmocka_unit_test(test_underflowed),
        cmocka_unit_test(test_underflowed_dynamic),
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
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_healthy_loss),
        cmocka_unit_test(test_zero_weights),
        cmocka_unit_test(test_exploding_field),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
