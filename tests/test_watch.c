/* What is told about gradients: by made-up figures, and by trainings that are made to go wrong. */
#include "step_fixture.h"

/* ---- figures ------------------------------------------------------------------------------- */

/* A training whose figures are made up. */
struct made_up {
    struct watch watch;
    struct Stats stats;
    unsigned told;
    char line[WATCH_LINE]; /* the last one */
};

static struct made_up begin(void)
{
    return (struct made_up){.stats = {.loss_scale = 8}};
}

static void add(struct made_up *made, uint32_t steps, float norm, float flushed)
{
    for (uint32_t i = 0; i < steps; i++) {
        made->stats.step++;
        made->stats.grad_norm = norm;
        made->stats.flushed = flushed;
        made->told += watch_step(&made->watch, &made->stats, made->line);
    }
}

static void assert_summary(const struct made_up *made, const char *expected)
{
    char line[WATCH_LINE];
    assert_true(watch_summary(&made->watch, line));
    assert_string_equal(line, expected);
}

static void assert_silent(const struct made_up *made)
{
    char line[WATCH_LINE];
    assert_int_equal(made->told, 0);
    assert_false(watch_summary(&made->watch, line));
}

/* Once, when most of the last steps flush much, and not by a few that do. */
static void test_flushed(void **state)
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
                        "step 1185: 16 bits turn 100 % of the gradients into zero at a loss scale "
                        "of 8: little is learnt; use --loss-scale dynamic or a larger scale");
    add(&made, 1000, 0, 1); /* that they are zero says nothing new */
    assert_int_equal(made.told, 1);
    assert_summary(&made, "in 1085 of 2185 steps 16 bits turned more than 2 % of the gradients "
                          "into zero");
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
                        "do the views see the training space (vknerf info SCENE), and is the "
                        "learning rate sound?");
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
                        "optimizer.learning_rate, or cut such gradients with --set "
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
                        "step 4: the loss is not finite: the field's values are no numbers; lower "
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
    assert_summary(&made, "in 46 of 174 steps 16 bits turned more than 2 % of the gradients into "
                          "zero; in 1 of 174 steps the gradient's norm was more than 100 times "
                          "the usual one; in 64 of 174 steps the gradient was zero");
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
        cmocka_unit_test(test_flushed),    cmocka_unit_test(test_zero),
        cmocka_unit_test(test_jump),       cmocka_unit_test(test_loss),
        cmocka_unit_test(test_healthy),    cmocka_unit_test(test_all),
        cmocka_unit_test(test_dead_field), cmocka_unit_test(test_exploding_field),
    };
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
