/* Passes on several sets of samples: each has samples, values and counts of its own, whatever the
 * others hold. */
#include "step_fixture.h"

#define STEPS 16u

struct set_state {
    struct State state;
    struct RayResult *results;
    struct Sample *samples;
    float (*values)[4];
};

static struct set_state take_set(const struct tiny *tiny, const struct gpu_buffer *own)
{
    struct set_state taken = {
        .results = tiny_take(tiny, &own[BIND_RESULTS]),
        .samples = tiny_take(tiny, &own[BIND_SAMPLES]),
        .values = tiny_take(tiny, &own[BIND_FIELD]),
    };
    ok(gpu_download(tiny->trainer->device, &own[BIND_STATE], 0, &taken.state, sizeof taken.state));
    return taken;
}

static void free_set(struct set_state *set)
{
    free(set->results);
    free(set->samples);
    free(set->values);
}

static void assert_same(const struct set_state *a, const struct set_state *b)
{
    uint32_t count = a->state.sample_count;
    assert_true(count > 100);
    assert_int_equal(b->state.sample_count, count);
    assert_memory_equal(a->results, b->results, a->state.ray_count * sizeof *a->results);
    assert_memory_equal(a->samples, b->samples, count * sizeof *a->samples);
    assert_memory_equal(a->values, b->values, count * sizeof *a->values);
}

/* The same passes on the step's own set and on another find the same samples and values. */
static void test_same(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    struct step *step = &tiny.trainer->step;
    struct gpu_recording *recording = NULL;
    uint32_t second = 0, third = 0;
    tiny_run(&tiny, STEPS);
    struct Control *control = step->buffers.at[BIND_CONTROL].mapped;
    control->step_limit = STEPS + 1;
    ok(step_add_set(step, &second));
    ok(step_add_set(step, &third));
    assert_int_equal(second, 1);
    assert_int_equal(third, 2);
    ok(gpu_record_begin(tiny.trainer->device, "two sets", 0, &recording));
    step_record_part(step, recording, 0, NULL, "composite");
    step_record_set(step, recording, 0, second, "generate_rays", "composite");
    ok(gpu_run_once(recording));
    gpu_recording_destroy(&recording);

    struct set_state first = take_set(&tiny, step->buffers.at);
    struct set_state other = take_set(&tiny, step->sets[second].own.at);
    struct set_state untouched = take_set(&tiny, step->sets[third].own.at);
    assert_same(&first, &other);
    assert_int_equal(untouched.state.sample_count, 0);
    assert_true(untouched.samples[0].t == 0 && untouched.values[0][0] == 0);

    /* What the second set counts from here on changes nothing of the first. */
    ok(gpu_record_begin(tiny.trainer->device, "one set", 0, &recording));
    step_record_set(step, recording, 0, second, "composite", "field_backward");
    ok(gpu_run_once(recording));
    gpu_recording_destroy(&recording);
    struct set_state still = take_set(&tiny, step->buffers.at);
    struct set_state counted = take_set(&tiny, step->sets[second].own.at);
    assert_same(&first, &still);
    assert_int_equal(still.state.live_rays, first.state.live_rays);
    assert_true(counted.state.live_rays > 0);
    free_set(&first);
    free_set(&other);
    free_set(&untouched);
    free_set(&still);
    free_set(&counted);
    tiny_destroy(&tiny);
}

static void test_too_many(void **state)
{
    struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    uint32_t set = 0;
    for (uint32_t i = 1; i < STEP_MAX_SETS; i++)
        ok(step_add_set(&tiny.trainer->step, &set));
    assert_int_equal(step_add_set(&tiny.trainer->step, &set), VKN_ERROR);
    assert_message("more than 4 sets of samples");
    tiny_destroy(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_too_many),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
    clean_up_tests();
    return failed;
}
