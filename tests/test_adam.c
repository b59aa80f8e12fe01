/* Compares vkn_adam, on parameters in host memory, with the reference optimiser. */
#include "pass_fixture.h"

#include <vknerf/stepper.h>

struct problem {
    uint32_t count, entry;
    double *weights, *moments1, *moments2;
    uint32_t *steps; /* steps taken by each parameter */
};

static int open_context(void **state)
{
    vkn_log_quiet(true);
    return vkn_context_create(NULL, (vkn_context **)state) == VKN_OK ? 0 : -1;
}

static int close_context(void **state)
{
    vkn_context_destroy((vkn_context **)state);
    return 0;
}

static struct problem problem_of(vkn_adam *adam, uint32_t count, uint32_t entry,
                                 struct random *random)
{
    struct problem p = {count,
                        entry,
                        base_alloc(count, 8),
                        base_alloc(count, 8),
                        base_alloc(count, 8),
                        base_alloc(count, 4)};
    float *values = vkn_adam_parameters(adam)->data;
    for (uint32_t i = 0; i < count; i++)
        p.weights[i] = values[i] = (float)random_between(random, -1, 1);
    return p;
}

static void problem_free(struct problem *p)
{
    free(p->weights);
    free(p->moments1);
    free(p->moments2);
    free(p->steps);
}

/* Gives random entries a gradient and takes the same step with the reference. Returns the
 * gradients' norm. The caller then steps `adam`. */
static double take_step(vkn_adam *adam, const struct vkn_adam_params *params, float rate,
                        struct problem *p, struct random *random)
{
    float *gradients = vkn_adam_gradients(adam)->data;
    double squares = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        bool touched = random_below(random, 3) > 0;
        assert_float_equal(gradients[i], 0, 0);
        gradients[i] = touched ? (float)random_between(random, -2, 2) : 0;
        squares += (double)gradients[i] * gradients[i];
    }
    double norm = sqrt(squares), clip = params->clip_norm;
    double factor = clip > 0 && norm > clip ? clip / norm : 1;
    const struct reference_optimizer reference = {rate,
                                                  params->beta1 > 0 ? params->beta1 : 0.9F,
                                                  0.99F,
                                                  params->epsilon > 0 ? params->epsilon : 1e-15F,
                                                  params->weight_decay,
                                                  false,
                                                  false};
    for (uint32_t i = 0; i < p->count; i++) {
        bool any = false;
        for (uint32_t k = i / p->entry * p->entry; k < i / p->entry * p->entry + p->entry; k++)
            any = any || gradients[k] != 0;
        if (any || !params->sparse)
            reference_updates[VKN_OPTIMIZER_ADAM](&reference, ++p->steps[i], factor * gradients[i],
                                                  &p->weights[i], &p->moments1[i], &p->moments2[i]);
    }
    return norm;
}

static void compare(vkn_adam *adam, const struct problem *p)
{
    const float *values = vkn_adam_parameters(adam)->data;
    for (uint32_t i = 0; i < p->count; i++)
        assert_float_equal(values[i], p->weights[i], 2e-5);
}

static void run_problem(vkn_context *context, struct vkn_adam_params params)
{
    struct random random = {params.count};
    struct vkn_adam_result result = {.size = sizeof result};
    vkn_adam *adam;
    params.size = sizeof params;
    params.host = true;
    ok(vkn_adam_create(context, &params, &adam));
    assert_int_equal(vkn_adam_parameters(adam)->size, 4 * params.count);
    struct problem p = problem_of(adam, params.count, params.entry ? params.entry : 1, &random);
    for (uint32_t step = 1; step <= 6; step++) {
        float rate = step == 4 ? 0.03F : 0.0F, used_rate = step == 4 ? 0.03F : 0.1F;
        double norm = take_step(adam, &params, used_rate, &p, &random);
        ok(vkn_adam_step(adam, rate, &result));
        assert_true(result.finite);
        assert_int_equal(result.steps, step);
        assert_int_equal(result.skipped, 0);
        assert_float_equal(result.norm / norm, 1, 1e-5);
        compare(adam, &p);
    }
    problem_free(&p);
    vkn_adam_destroy(&adam);
    assert_null(adam);
}

static void test_reference(void **state)
{
    static const struct vkn_adam_params problems[] = {
        {.count = 1, .learning_rate = 0.1F},
        {.count = 999, .learning_rate = 0.1F, .beta1 = 0.8F, .epsilon = 1e-3F},
        {.count = 4096, .entry = 4, .sparse = true, .learning_rate = 0.1F},
        {.count = 999, .entry = 3, .sparse = true, .learning_rate = 0.1F, .weight_decay = 0.1F},
        {.count = 20000, .entry = 2, .learning_rate = 0.1F, .clip_norm = 5},
        {.count = 320, .entry = 32, .sparse = true, .learning_rate = 0.1F},
    };
    for (size_t i = 0; i < BASE_COUNT(problems); i++)
        run_problem(*state, problems[i]);
}

/* A NaN or infinite gradient changes no parameter, is reported as skipped, and is cleared. */
static void test_not_finite(void **state)
{
    const struct vkn_adam_params params = {
        .size = sizeof params, .count = 100, .host = true, .learning_rate = 0.1F};
    struct vkn_adam_result result = {.size = sizeof result};
    struct random random = {5};
    vkn_adam *adam;
    ok(vkn_adam_create(*state, &params, &adam));
    struct problem p = problem_of(adam, 100, 1, &random);
    float *gradients = vkn_adam_gradients(adam)->data;
    take_step(adam, &params, 0.1F, &p, &random);
    ok(vkn_adam_step(adam, 0, &result));
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 100; k++)
            gradients[k] = 1;
        gradients[50] = i == 0 ? NAN : INFINITY;
        ok(vkn_adam_step(adam, 0, &result));
        assert_false(result.finite);
        assert_int_equal(result.skipped, i + 1);
        assert_int_equal(result.steps, 1);
        compare(adam, &p);
    }
    take_step(adam, &params, 0.1F, &p, &random);
    ok(vkn_adam_step(adam, 0, &result));
    assert_true(result.finite);
    assert_int_equal(result.steps, 2);
    compare(adam, &p);
    problem_free(&p);
    vkn_adam_destroy(&adam);
}

static void test_refused(void **state)
{
    static const struct {
        struct vkn_adam_params params;
        const char *message;
    } wrong[] = {
        {{.count = 0},
         "count is out of range: 0, must be a multiple of entry, 1, from 1 to 1073741824"},
        {{.count = 10, .entry = 3}, "count is out of range"},
        {{.count = 66, .entry = 33}, "entry is out of range: 33, must be 1 to 32"},
        {{.count = 10, .learning_rate = -1}, "learning_rate is out of range"},
        {{.count = 10, .learning_rate = NAN}, "learning_rate is out of range"},
        {{.count = 10, .beta1 = 1}, "beta1 is out of range: 1, must be above 0 and below 1"},
        {{.count = 10, .beta2 = -0.5F}, "beta2 is out of range"},
        {{.count = 10, .epsilon = -1}, "epsilon is out of range"},
        {{.count = 10, .weight_decay = -1}, "weight_decay is out of range"},
        {{.count = 10, .clip_norm = INFINITY}, "clip_norm is out of range"},
    };
    vkn_adam *adam = NULL;
    for (size_t i = 0; i < BASE_COUNT(wrong); i++) {
        assert_int_equal(vkn_adam_create(*state, &wrong[i].params, &adam), VKN_BAD_INPUT);
        assert_message(wrong[i].message);
        assert_null(adam);
    }
    const struct vkn_adam_params good = {.count = 10};
    assert_int_equal(vkn_adam_create(NULL, &good, &adam), VKN_BAD_INPUT);
    assert_int_equal(vkn_adam_create(*state, NULL, &adam), VKN_BAD_INPUT);
    assert_int_equal(vkn_adam_create(*state, &good, NULL), VKN_BAD_INPUT);
    assert_int_equal(vkn_adam_step(NULL, 0, NULL), VKN_BAD_INPUT);
    assert_null(vkn_adam_parameters(NULL));
    assert_null(vkn_adam_gradients(NULL));
    vkn_adam_destroy(NULL);
    ok(vkn_adam_create(*state, &good, &adam));
    assert_null(vkn_adam_parameters(adam)->data);
    assert_int_equal(vkn_adam_step(adam, -1, NULL), VKN_BAD_INPUT);
    assert_message("learning_rate");
    vkn_adam_destroy(&adam);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
