/* Ways of sampling in whole steps; passes on several sets of samples: each has samples, values and
 * counts of its own, whatever the others hold. */
#include "step_fixture.h"

#include <vknerf/renderer.h>

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

/* ---- march.sampling ------------------------------------------------------------------------ */

/* No pass of the step updates the occupancy grid, and none of the grid has changed. */
static void check_no_grid(const struct tiny *tiny)
{
    const struct step *step = &tiny->trainer->step;
    float *cells = tiny_take(tiny, &step->buffers.at[BIND_OCCUPANCY]);
    uint32_t *bits = tiny_take(tiny, &step->buffers.at[BIND_BITS]);
    for (size_t i = 0; i < step->pass_count; i++)
        assert_null(strstr(step->passes[i].pass->name, "occupancy"));
    for (size_t i = 0; i < step->buffers.at[BIND_OCCUPANCY].size / 4; i++)
        assert_true(cells[i] == 0 || cells[i] == -1);
    for (size_t i = 0; i < step->buffers.at[BIND_BITS].size / 4; i++)
        assert_int_equal(bits[i], 0);
    free(cells);
    free(bits);
}

/* As many samples of every ray that has some; as many rays as have about as many live samples as
 * are wanted.
 */
static void check_counts(const struct tiny *tiny)
{
    const struct Config *constants = &tiny->trainer->step.setup.constants;
    struct State *state = tiny_take(tiny, &tiny->trainer->step.buffers.at[BIND_STATE]);
    struct RayResult *results = tiny_take(tiny, &tiny->trainer->step.buffers.at[BIND_RESULTS]);
    uint32_t rays = 0;
    for (uint32_t r = 0; r < state->ray_count; r++) {
        assert_true(results[r].count == 0 || results[r].count == constants->ray_samples);
        rays += results[r].count > 0;
    }
    assert_true(rays > state->ray_count / 2);
    assert_int_equal(state->sample_count, rays * constants->ray_samples);
    assert_true(state->sample_count <= constants->sample_capacity);
    assert_true(state->live_count > 0 && state->live_count <= state->sample_count);
    assert_true(state->live_count < 3 * constants->target_samples / 2);
    free(state);
    free(results);
}

/* Mean squared difference of the first view's rendering from what the scene's picture holds on
 * white. */
static double picture_error(const struct tiny *tiny)
{
    const struct scene_camera *camera = &tiny->scene->splits[SCENE_TRAIN].cameras[0];
    vkn_renderer *renderer;
    struct vkn_picture picture;
    double sum = 0;
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    ok(vkn_render(renderer, camera, VKN_BACKGROUND_WHITE, 1, &picture));
    for (uint32_t i = 0; i < 12 * 10; i++) {
        uint32_t x = i % 12, y = i / 12;
        const double color[3] = {20 * x / 255.0, 25 * y / 255.0, 0};
        double alpha = x < 4 ? 60 / 255.0 : 1;
        for (int c = 0; c < 3; c++)
            sum += pow((double)picture.color[3 * i + c] - (color[c] * alpha + 1 - alpha), 2) / 360;
    }
    vkn_picture_free(&picture);
    vkn_renderer_destroy(&renderer);
    return sum;
}

/* Uniform samples: training gets better pictures of the renderer, which samples in the same bins,
 * and a deterministic one repeats itself. */
static void test_uniform(void **state)
{
    struct step_tests *tests = *state;
    float *first = NULL;
    for (int run = 0; run < 3; run++) {
        struct vkn_config config = tiny_config(run > 0);
        config.march.sampling = VKN_SAMPLING_UNIFORM;
        config.march.ray_samples = 20;
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        double before = run == 0 ? picture_error(&tiny) : 0;
        tiny_run(&tiny, 3 * STEPS);
        check_counts(&tiny);
        check_no_grid(&tiny);
        if (run == 0)
            assert_true(picture_error(&tiny) < 0.3 * before);
        const struct gpu_buffer *params = &tiny.trainer->step.buffers.at[BIND_PARAMS];
        float *now = tiny_take(&tiny, params);
        if (run == 2)
            assert_memory_equal(first, now, params->size);
        free(first);
        first = now;
        tiny_destroy(&tiny);
    }
    free(first);
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
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_too_many),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
    clean_up_tests();
    return failed;
}
