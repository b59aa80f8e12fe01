/* Tests dispatches with a small limit of workgroups, set by the test: the smallest limit of Vulkan,
 * 65535, would need more rays than a test has. */
#include "step_fixture.h"
#include "gpu/internal.h"

static struct gpu_device *device_of(const struct step_tests *tests)
{
    return tests->context->device;
}

struct trained {
    struct State state;
    float *params;
    uint64_t size;
};

static struct trained train(const struct step_tests *tests, const struct vkn_config *config)
{
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    const struct gpu_buffer *buffers = tiny.trainer->step.buffers.at;
    struct trained trained = {.size = buffers[BIND_PARAMS].size};
    tiny_run(&tiny, 16);
    ok(gpu_download(device_of(tests), &buffers[BIND_STATE], 0, &trained.state,
                    sizeof trained.state));
    trained.params = tiny_read(&tiny, &buffers[BIND_PARAMS]);
    tiny_destroy(&tiny);
    return trained;
}

/* No dispatch exceeds the limit, and the training is bit for bit the same. */
static void test_training(void **state)
{
    const struct step_tests *tests = *state;
    struct gpu_capabilities *capabilities = &device_of(tests)->support.capabilities;
    const uint32_t real = capabilities->max_groups;
    struct vkn_config config = tiny_config(true);
    config.batch.samples = 32768;
    config.batch.max_rays = 2048;
    struct setup setup;
    ok(setup_create(&config, capabilities, &setup));
    /* Gradients depend on the number of workgroups of field_backward; one has 64 rays. */
    uint32_t few = setup.constants.backward_groups > 32 ? setup.constants.backward_groups : 32;

    struct trained usual = train(tests, &config);
    assert_true(usual.state.dispatches[DISPATCH_MARCH].x > few);
    capabilities->max_groups = few;
    struct trained limited = train(tests, &config);
    capabilities->max_groups = real;
    for (int i = 0; i < DISPATCH_COUNT; i++)
        assert_true(limited.state.dispatches[i].x <= few);
    assert_int_equal(limited.state.dispatches[DISPATCH_MARCH].x, few);
    assert_int_equal(limited.state.ray_count, usual.state.ray_count);
    assert_int_equal(limited.state.sample_count, usual.state.sample_count);
    assert_memory_equal(limited.params, usual.params, usual.size);
    free(usual.params);
    free(limited.params);
}

/* Buffers and dispatches that cannot be repeated are limited to what one dispatch covers. */
static void test_setup(void **state)
{
    const struct step_tests *tests = *state;
    struct gpu_capabilities device = *gpu_device_capabilities(device_of(tests));
    struct vkn_config config = tiny_config(false);
    struct setup setup;
    config.batch.max_rays = 4194304;
    device.max_groups = UINT32_MAX;
    ok(setup_create(&config, &device, &setup));
    assert_int_equal(setup.constants.ray_capacity, REDUCE_GROUPS * PASS_LOCAL_SIZE);
    uint32_t forward = setup.constants.forward_groups, backward = setup.constants.backward_groups;
    device.max_groups = 3;
    ok(setup_create(&config, &device, &setup));
    assert_int_equal(setup.constants.ray_capacity, 3 * PASS_LOCAL_SIZE);
    assert_true(forward > 3 && setup.constants.forward_groups == 3);
    assert_true(backward > 3 && setup.constants.backward_groups == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_setup),
        cmocka_unit_test(test_no_messages),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    return cmocka_run_group_tests(tests, step_tests_setup, step_tests_teardown);
}
