/* Tests a slow device with a watchdog: no submission takes longer than 100 ms, and splitting does
 * not change results. Its time is a simulated clock that replaces base_seconds (the linker's
 * --wrap), so that nothing waits and the machine's load does not matter. */
#include "step_fixture.h"

#include "gpu/internal.h"
#include "render/render.h"

#include "step/internal.h"

/* ---- the device ------------------------------------------------------------------------------ */

#define COMMANDS 1024

static struct {
    struct VolkDeviceTable real;
    double seconds; /* duration of each dispatch */
    double delay;   /* of the next submission alone */
    VkCommandBuffer commands[COMMANDS];
    uint32_t dispatches[COMMANDS]; /* recorded in each */
    uint32_t submissions;
    double longest;            /* of a submission, in seconds */
    enum gpu_device_type type; /* of the real device */
} slow;

static _Atomic uint64_t nanoseconds;

/* Each reading advances the clock by a microsecond, so that no time is 0. */
double __wrap_base_seconds(void);
double __wrap_base_seconds(void)
{
    return 1e-9 * (double)(nanoseconds += 1000);
}

/* Returns the count of a command buffer; the oldest entry is reused. */
static uint32_t *dispatches_of(VkCommandBuffer commands)
{
    static uint32_t next;
    for (uint32_t i = 0; i < COMMANDS; i++)
        if (slow.commands[i] == commands)
            return &slow.dispatches[i];
    slow.commands[next % COMMANDS] = commands;
    return &slow.dispatches[next++ % COMMANDS];
}

static VKAPI_ATTR VkResult VKAPI_CALL begin(VkCommandBuffer commands,
                                            const VkCommandBufferBeginInfo *info)
{
    *dispatches_of(commands) = 0;
    return slow.real.vkBeginCommandBuffer(commands, info);
}

static VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y,
                                           uint32_t z)
{
    ++*dispatches_of(commands);
    slow.real.vkCmdDispatch(commands, x, y, z);
}

static VKAPI_ATTR void VKAPI_CALL dispatch_indirect(VkCommandBuffer commands, VkBuffer buffer,
                                                    VkDeviceSize offset)
{
    ++*dispatches_of(commands);
    slow.real.vkCmdDispatchIndirect(commands, buffer, offset);
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count,
                                             const VkSubmitInfo *infos, VkFence fence)
{
    double seconds = slow.seconds * *dispatches_of(infos->pCommandBuffers[0]) + slow.delay;
    slow.delay = 0;
    slow.submissions++;
    slow.longest = fmax(slow.longest, seconds);
    nanoseconds += (uint64_t)(1e9 * seconds);
    return slow.real.vkQueueSubmit(queue, count, infos, fence);
}

static void count_anew(void)
{
    slow.submissions = 0;
    slow.longest = 0;
}

/* No timestamps: those of the real device do not show the simulated time. */
static int make_slow(void **state)
{
    int failed = step_tests_setup(state);
    const struct step_tests *tests = *state;
    if (failed)
        return failed;
    struct gpu_device *device = tests->context->device;
    slow.real = device->vk;
    slow.type = device->support.capabilities.type;
    device->vk.vkBeginCommandBuffer = begin;
    device->vk.vkCmdDispatch = dispatch;
    device->vk.vkCmdDispatchIndirect = dispatch_indirect;
    device->vk.vkQueueSubmit = submit;
    device->support.capabilities.timestamp_period = 0;
    return 0;
}

/* Creates a trainer with the real device's kernels, because lavapipe compiles others slowly. */
static struct tiny create_slow(const struct step_tests *tests, const struct vkn_config *config)
{
    struct gpu_capabilities *capabilities = &tests->context->device->support.capabilities;
    capabilities->type = slow.type;
    struct tiny tiny = tiny_create(tests->context, tests->folder, config);
    capabilities->type = GPU_INTEGRATED;
    return tiny;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static float *train(const struct step_tests *tests, double seconds, uint64_t *size)
{
    const struct vkn_config config = tiny_config(true);
    slow.seconds = seconds;
    count_anew();
    struct tiny tiny = create_slow(tests, &config);
    tiny_run(&tiny, 37);
    /* Joined steps are not split by measured times. */
    for (uint32_t i = 0; i < STEP_RECORDINGS; i++)
        assert_false(seconds > 0 && tiny.trainer->step.joined[i]);
    tiny_run(&tiny, 48);
    float *params = tiny_read(&tiny, &tiny.trainer->step.buffers.at[BIND_PARAMS]);
    *size = tiny.trainer->step.buffers.at[BIND_PARAMS].size;
    tiny_destroy(&tiny);
    return params;
}

/* An update interval would take 0.2 s in one submission. */
static void test_split(void **state)
{
    const struct step_tests *tests = *state;
    uint64_t size;
    float *fast = train(tests, 0, &size);
    float *cut = train(tests, 1e-3, &size);
    assert_true(slow.longest <= 0.1);
    assert_memory_equal(fast, cut, size);
    free(fast);
    free(cut);
}

/* A device that becomes slower, when it heats up or is shared. */
static void test_slowdown(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(true);
    config.steps = 200;
    slow.seconds = 1e-4;
    struct tiny tiny = create_slow(tests, &config);
    tiny_run(&tiny, 16);
    slow.seconds = 1.5e-3;
    tiny_run(&tiny, 80); /* measured by now */
    count_anew();
    tiny_run(&tiny, 112);
    assert_true(slow.longest <= 0.1);
    tiny_destroy(&tiny);
}

static uint32_t samples_after(const struct step_tests *tests, bool open, bool deterministic)
{
    struct vkn_config config = tiny_config(deterministic);
    config.batch.samples = 32768;
    config.batch.max_rays = 64; /* few rays */
    struct tiny tiny = create_slow(tests, &config);
    assert_false(tiny.trainer->may_lower_batch);
    tiny.trainer->may_lower_batch = open;
    tiny_run(&tiny, 2);
    const struct step *step = &tiny.trainer->step;
    struct Config *constants = tiny_read(&tiny, &step->buffers.at[BIND_CONFIG]);
    assert_int_equal(constants->target_samples, vkn_trainer_config(tiny.trainer)->batch.samples);
    assert_int_equal(constants->sample_capacity, 4 * 32768);
    uint32_t samples = constants->target_samples;
    free(constants);
    tiny_destroy(&tiny);
    return samples;
}

/* The batch shrinks if a step is too slow; not if the user has set it, nor in deterministic mode.
 */
static void test_samples(void **state)
{
    const struct step_tests *tests = *state;
    slow.seconds = 1.2e-2;
    assert_int_equal(samples_after(tests, true, false), 16384);
    assert_int_equal(samples_after(tests, false, false), 32768);
    assert_int_equal(samples_after(tests, true, true), 32768);
    slow.seconds = 0;
}

/* Pictures, whose batches of rays take many rounds. */
static void test_picture(void **state)
{
    const struct step_tests *tests = *state;
    struct vkn_config config = tiny_config(false);
    struct vkn_picture fast, cut;
    vkn_renderer *renderer;
    config.march.steps_per_unit = 1024;
    struct tiny tiny = create_slow(tests, &config);
    const struct scene_camera *camera = &tiny.scene->splits[SCENE_TRAIN].cameras[0];
    slow.seconds = 0;
    tiny_run(&tiny, 4);
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    ok(render_picture(renderer, camera, VKN_BACKGROUND_WHITE, 1, &fast));
    vkn_renderer_destroy(&renderer);
    ok(vkn_renderer_of_trainer(tiny.trainer, &renderer));
    slow.seconds = 2e-3;
    for (int i = 0; i < 2; i++) {
        count_anew();
        ok(render_picture(renderer, camera, VKN_BACKGROUND_WHITE, 1, &cut));
        assert_true(slow.longest <= 0.1);
        assert_true(slow.submissions > 2);
        assert_memory_equal(fast.color, cut.color, 4 * 3 * 12 * 10);
        render_picture_free(&cut);
    }
    slow.seconds = 0;
    render_picture_free(&fast);
    vkn_renderer_destroy(&renderer);
    tiny_destroy(&tiny);
}

/* Unseen cells are the same when the pass is split. */
static void test_cells(void **state)
{
    const struct step_tests *tests = *state;
    const struct vkn_config config = tiny_config(true);
    slow.seconds = 0;
    struct tiny tiny = create_slow(tests, &config);
    struct step *step = &tiny.trainer->step;
    const struct gpu_buffer *cells = &step->buffers.at[BIND_OCCUPANCY];
    float *whole = tiny_read(&tiny, cells), *none = base_alloc(cells->size, 1);
    tiny_put(&tiny, cells, none);
    step->setup.constants.camera_count = 1u << 20; /* only the estimate of time reads it */
    count_anew();
    ok(step_mark_unseen(step));
    assert_true(slow.submissions > 5);
    float *split = tiny_read(&tiny, cells);
    assert_memory_equal(split, whole, cells->size);
    free(whole);
    free(none);
    free(split);
    tiny_destroy(&tiny);
}

/* Adds a second to the clock while the first update interval runs, and half a second while the
 * third does: only that half second is training time, by which --seconds limits and schedules. */
static void test_training_time(void **state)
{
    const struct step_tests *tests = *state;
    struct gpu_capabilities *capabilities = &tests->context->device->support.capabilities;
    struct vkn_config config = tiny_config(false);
    config.steps = 0;
    config.seconds = 0.9;
    config.optimizer.warmup_steps = 1;
    config.optimizer.milestones[0] = 0.5f;
    for (int ranks = 1; ranks <= 2; ranks++) {
        config.parallel.ranks_per_device = (uint32_t)ranks;
        capabilities->type = GPU_CPU;
        slow.seconds = 0;
        struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
        const struct Stats *stats = tiny.trainer->step.buffers.at[BIND_STATS].mapped;
        nanoseconds += (uint64_t)1e9;
        tiny_run(&tiny, 5); /* less than an update interval */
        assert_true(vkn_trainer_seconds(tiny.trainer) <= 0);
        slow.submissions = 0;
        slow.delay = 1;
        tiny_run(&tiny, 32);
        double seconds = vkn_trainer_seconds(tiny.trainer);
        assert_true(seconds > 0 && seconds < 0.1);
        assert_false(vkn_trainer_finished(tiny.trainer));
        slow.delay = 0.5;
        tiny_run(&tiny, 48);
        assert_true(vkn_trainer_seconds(tiny.trainer) >= seconds + 0.5);
        assert_true(vkn_trainer_seconds(tiny.trainer) < seconds + 0.6);
        tiny_run(&tiny, 64);
        check_close(stats[64].learning_rate, 1e-2 * tiny.trainer->config.optimizer.decay_factor,
                    1e-6, 1e-2, "learning rate", ranks);
        slow.delay = 0.5;
        ok(vkn_trainer_run(tiny.trainer, NULL)); /* up to the limit */
        assert_true(vkn_trainer_finished(tiny.trainer));
        assert_true(vkn_trainer_step(tiny.trainer) <= 112);
        tiny_destroy(&tiny);
        capabilities->type = GPU_INTEGRATED;
    }
}

/* CPU devices have no watchdog, and nothing changes. */
static void test_cpu(void **state)
{
    const struct step_tests *tests = *state;
    struct gpu_capabilities *capabilities = &tests->context->device->support.capabilities;
    const struct vkn_config config = tiny_config(true);
    capabilities->type = GPU_CPU;
    slow.seconds = 1e-3;
    struct tiny tiny = tiny_create(tests->context, tests->folder, &config);
    count_anew();
    tiny_run(&tiny, 32);
    assert_int_equal(slow.submissions, 2);
    tiny_destroy(&tiny);
    capabilities->type = GPU_INTEGRATED;
    slow.seconds = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),       cmocka_unit_test(test_slowdown),
        cmocka_unit_test(test_samples),     cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_picture),     cmocka_unit_test(test_cells),
        cmocka_unit_test(test_no_messages), cmocka_unit_test(test_training_time),
    };
    setenv("VKNERF_VALIDATION", "1", 1);
    return cmocka_run_group_tests(tests, make_slow, step_tests_teardown);
}
