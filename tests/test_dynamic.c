/* Steps and pictures of the dynamic model, whose samples go through a deformation in chunks before a
 * field that one pass goes through. */
#include "step_fixture.h"

#include "pipeline/internal.h"
#include "render/render.h"

/* Chunks of 1088 samples: a step has room for eight of them. */
static struct vkn_config dynamic_config(void)
{
    struct vkn_config config = tiny_config(true);
    config.model = VKN_MODEL_DYNAMIC;
    config.batch.chunk = 64;
    config.dynamic.width = 32;
    config.dynamic.layers = 2;
    config.dynamic.time_features = VKN_SWITCH_ON;
    config.dynamic.rate = 1;
    return config;
}

/* Trains, `measured` pass by pass at first as on a GPU, and returns the parameters. */
static float *train(const struct step_tests *tests, const struct vkn_config *config, bool measured,
                    struct tiny *tiny)
{
    struct gpu_capabilities *capabilities = &tests->context->device->support.capabilities;
    enum gpu_device_type type = capabilities->type;
    *tiny = tiny_create(tests->context, tests->folder, config);
    if (measured)
        capabilities->type = GPU_INTEGRATED;
    tiny_run(tiny, 20);
    assert_int_equal(tiny->trainer->step.measured, measured);
    capabilities->type = type;
    return tiny_take(tiny, &tiny->trainer->step.buffers.at[BIND_PARAMS]);
}

static double mean_square(const float *values, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += (double)values[i] * (double)values[i];
    return sum / (double)count;
}

/* Its last layer began with weights within 1e-4. */
static void assert_deforms(const struct tiny *tiny, const float *params)
{
    const struct field_model *model = &tiny->trainer->step.setup.model;
    const struct field_layer *last = &model->layers[model->layer_count - 1];
    assert_true(mean_square(params + last->first, last->inputs * last->outputs) > 1e-7);
}

/* However the steps are taken: densities before colours, by two ranks in turn with gradients in pieces against
 * such ranks with all at once, pass by pass as a GPU is measured. */
static void test_same_bits(void **state)
{
    const struct step_tests *tests = *state;
    for (uint32_t ranks = 1; ranks <= 2; ranks++) {
        struct vkn_config config = dynamic_config();
        struct tiny whole, other;
        config.parallel.virtual = ranks;
        config.parallel.pieces = 1;
        float *expected = train(tests, &config, false, &whole);
        assert_deforms(&whole, expected);
        if (ranks == 1)
            config.march.visibility = VKN_SWITCH_ON;
        config.parallel.pieces = 2;
        float *params = train(tests, &config, ranks == 1, &other);
        assert_memory_equal(params, expected, whole.trainer->step.buffers.at[BIND_PARAMS].size);
        free(params);
        free(expected);
        tiny_destroy(&other);
        tiny_destroy(&whole);
    }
}

/* In every precision, and with a coarse field that has a deformation of its own: a loss as in fp32. */
static void test_precisions(void **state)
{
    const struct step_tests *tests = *state;
    double expected = 0;
    for (int n = 0; n < 4; n++) {
        struct vkn_config config = dynamic_config();
        struct tiny tiny;
        config.precision = (enum vkn_precision)(VKN_PRECISION_FP32 + n % 3);
        if (n == 3)
            config.march.sampling = VKN_SAMPLING_HIERARCHICAL;
        free(train(tests, &config, false, &tiny));
        const struct Stats *stats = tiny.trainer->step.buffers.at[BIND_STATS].mapped;
        double loss = (double)stats[20].loss;
        assert_int_equal(stats[20].step, 20);
        expected = n == 0 ? loss : expected;
        assert_true(loss > 0.5 * expected && loss < (n == 3 ? 4 : 1.2) * expected);
        tiny_destroy(&tiny);
    }
}

static float *render_at(const struct tiny *tiny, float time, double frozen)
{
    struct scene_camera camera = tiny->scene->splits[SCENE_TRAIN].cameras[0];
    vkn_renderer *renderer;
    struct vkn_picture picture;
    camera.time = time;
    ok(vkn_renderer_of_trainer(tiny->trainer, &renderer));
    if (frozen >= 0)
        ok(vkn_renderer_freeze(renderer, frozen));
    ok(vkn_render(renderer, &camera, VKN_BACKGROUND_WHITE, 1, &picture));
    float *color = base_alloc(picture.width * (size_t)picture.height, 3 * sizeof *color);
    memcpy(color, picture.color, picture.width * (size_t)picture.height * 3 * sizeof *color);
    vkn_picture_free(&picture);
    vkn_renderer_destroy(&renderer);
    return color;
}

/* A picture is of its moment: the camera's, or the one that all are frozen at. */
static void test_moments(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = dynamic_config();
    const size_t size = 12 * 10 * 3 * sizeof(float);
    struct tiny tiny;
    free(train(tests, &config, false, &tiny));
    float *early = render_at(&tiny, 0.25f, -1), *late = render_at(&tiny, 1, -1);
    float *frozen = render_at(&tiny, 1, 0.25);
    assert_memory_equal(early, frozen, size);
    assert_memory_not_equal(early, late, size);
    free(early);
    free(late);
    free(frozen);
    tiny_destroy(&tiny);
}

/* With a curriculum of all of the training the first step draws from the first moment's view alone; without one,
 * from all. */
static void test_curriculum(void **state)
{
    const struct step_tests *tests = *state;
    for (int all = 0; all < 2; all++) {
        struct vkn_config config = dynamic_config();
        config.dynamic.curriculum = all ? -1 : 1;
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        tiny_run(&tiny, 1);
        const struct step *step = &tiny.trainer->step;
        struct State *left = tiny_take(&tiny, &step->buffers.at[BIND_STATE]);
        struct Ray *rays = tiny_take(&tiny, &step->buffers.at[BIND_RAYS]);
        uint32_t later = 0, used = 0;
        for (uint32_t r = 0; r < left->ray_count; r++)
            if (rays[r].last > -1.5f) {
                used++;
                later += rays[r].time > 0.25f;
            }
        assert_true(used > left->ray_count / 2);
        assert_true(all ? later > used / 2 : later == 0);
        free(rays);
        free(left);
        tiny_destroy(&tiny);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),  cmocka_unit_test(test_precisions),
        cmocka_unit_test(test_moments),    cmocka_unit_test(test_curriculum),
        cmocka_unit_test(test_no_messages),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
