/* Tests pipelines, bindings, command buffers and timestamps of src/gpu. */
#include "gpu_fixture.h"
#include "gpu/internal.h"
#include "skips.h"

#include <math.h>

#define COUNT 1000u

/* gpu_test adds FACTOR * from[i] + 8 * SCALE + addend to to[i]. */
struct bench {
    struct gpu_device *device;
    struct gpu_buffer from, to, facts, groups;
    struct gpu_arena *arena;
    struct gpu_bindings *bindings;
    struct gpu_pipeline *pipeline;
};
static const uint32_t push[] = {COUNT, 100};
#define ADDED(i) (3u * (5u * (i) + 1u) + 20u + 100u)

static struct bench bench_create(struct gpu_device *device)
{
    struct bench bench = {.device = device};
    struct gpu_buffer_request requests[] = {
        {&bench.from, "from", COUNT * 4, GPU_DEVICE},
        {&bench.to, "to", COUNT * 4, GPU_DEVICE},
        {&bench.facts, "facts", 12, GPU_HOST},
        {&bench.groups, "groups", 20, GPU_DEVICE},
    };
    ok(gpu_arena_create(device, requests, BASE_COUNT(requests), &bench.arena));
    uint32_t from[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        from[i] = 5 * i + 1;
    ok(gpu_upload(device, &bench.from, 0, from, sizeof from));
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {
        [0] = &bench.from, [23] = &bench.to, [5] = &bench.facts};
    ok(gpu_bindings_create(device, buffers, &bench.bindings));
    struct gpu_constants constants = {.values = {[2] = 3}, .count = 4};
    float scale = 2.5f;
    memcpy(&constants.values[3], &scale, sizeof scale);
    struct gpu_pipeline_options options = {
        .name = "gpu_test",
        .local_size = 2 * gpu_device_capabilities(device)->subgroup_size,
        .constants = &constants,
    };
    ok(gpu_pipeline_create(device, &options, &bench.pipeline));
    assert_int_equal(gpu_pipeline_local_size(bench.pipeline), options.local_size);
    return bench;
}

static void bench_destroy(struct bench *bench)
{
    gpu_pipeline_destroy(&bench->pipeline);
    gpu_bindings_destroy(&bench->bindings);
    gpu_arena_destroy(&bench->arena);
}

static uint32_t bench_groups(const struct bench *bench)
{
    uint32_t local_size = gpu_pipeline_local_size(bench->pipeline);
    return (COUNT + local_size - 1) / local_size;
}

static void assert_to(const struct bench *bench, uint32_t times, uint32_t start)
{
    uint32_t to[COUNT];
    ok(gpu_download(bench->device, &bench->to, 0, to, sizeof to));
    for (uint32_t i = 0; i < COUNT; i++)
        if (to[i] != start + times * ADDED(i))
            fail_msg("to[%u] is %u, not %u", i, to[i], start + times * ADDED(i));
}

static void submit_and_wait(struct gpu_recording *recording)
{
    ok(gpu_submit(recording));
    ok(gpu_wait(recording));
}

static void test_dispatch(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench.device, "program", 0, &recording));
    gpu_record_dispatch(recording, bench.pipeline, bench.bindings, push, sizeof push,
                        bench_groups(&bench));
    ok(gpu_record_end(recording));
    submit_and_wait(recording);
    const uint32_t *facts = bench.facts.mapped;
    assert_int_equal(facts[0], bench_groups(&bench));
    assert_int_equal(facts[1], gpu_pipeline_local_size(bench.pipeline));
    assert_int_equal(facts[2], gpu_device_capabilities(bench.device)->subgroup_size);
    assert_to(&bench, 1, 0);

    /* Submitted again, once and thrice without waiting: submissions run one after the other. */
    submit_and_wait(recording);
    assert_to(&bench, 2, 0);
    for (int i = 0; i < 3; i++)
        ok(gpu_submit(recording));
    assert_to(&bench, 5, 0);
    gpu_recording_destroy(&recording);
    assert_null(recording);
    bench_destroy(&bench);
}

static void test_indirect(void **state)
{
    struct bench bench = bench_create(*state);
    const uint32_t groups[] = {bench_groups(&bench), 1, 1};
    ok(gpu_upload(bench.device, &bench.groups, 8, groups, sizeof groups));
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench.device, "indirect", 0, &recording));
    gpu_record_fill(recording, &bench.to, 0, bench.to.size, 9);
    gpu_record_barrier(recording);
    gpu_record_dispatch_indirect(recording, bench.pipeline, bench.bindings, push, sizeof push,
                                 &bench.groups, 8);
    gpu_record_compute_barrier(recording);
    gpu_record_dispatch(recording, bench.pipeline, bench.bindings, push, sizeof push,
                        bench_groups(&bench));
    /* The group counts change between the indirect dispatches that read them. */
    gpu_record_barrier(recording);
    gpu_record_fill(recording, &bench.groups, 8, 4, 0);
    gpu_record_barrier(recording);
    gpu_record_dispatch_indirect(recording, bench.pipeline, bench.bindings, push, sizeof push,
                                 &bench.groups, 8);
    ok(gpu_record_end(recording));
    submit_and_wait(recording);
    assert_to(&bench, 2, 9);
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
}

/* Command buffers in flight run in submission order, and each sees the results of those before. */
static void test_order(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recordings[2];
    for (int i = 0; i < 2; i++) {
        ok(gpu_record_begin(bench.device, i ? "second" : "first", 0, &recordings[i]));
        if (i == 0)
            gpu_record_fill(recordings[i], &bench.to, 0, bench.to.size, 4);
        else
            gpu_record_dispatch(recordings[i], bench.pipeline, bench.bindings, push, sizeof push,
                                bench_groups(&bench));
        ok(gpu_record_end(recordings[i]));
    }
    for (int round = 0; round < 3; round++) {
        ok(gpu_submit(recordings[0]));
        ok(gpu_submit(recordings[1]));
    }
    assert_to(&bench, 1, 4);
    /* Destruction waits for command buffers in flight. */
    ok(gpu_submit(recordings[0]));
    gpu_recording_destroy(&recordings[0]);
    gpu_recording_destroy(&recordings[1]);
    bench_destroy(&bench);
}

static PFN_vkQueueSubmit driver_submit;
static unsigned submissions, fails_at;

static VKAPI_ATTR VkResult VKAPI_CALL count_submissions(VkQueue queue, uint32_t count,
                                                        const VkSubmitInfo *infos, VkFence fence)
{
    if (++submissions == fails_at)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    return driver_submit(queue, count, infos, fence);
}

/* A command buffer split into several submissions has the same order, times and reuse. */
static void test_split(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    const char *labels[2];
    double milliseconds[2];
    ok(gpu_record_begin(bench.device, "parts", 2, &recording));
    gpu_record_timestamp(recording, "all");
    gpu_record_fill(recording, &bench.to, 0, bench.to.size, 4);
    gpu_record_barrier(recording);
    for (int i = 0; i < 2; i++) {
        gpu_record_split(recording);
        gpu_record_dispatch(recording, bench.pipeline, bench.bindings, push, sizeof push,
                            bench_groups(&bench));
        gpu_record_barrier(recording);
    }
    gpu_record_timestamp(recording, NULL);
    ok(gpu_record_end(recording));
    driver_submit = bench.device->vk.vkQueueSubmit;
    bench.device->vk.vkQueueSubmit = count_submissions;
    submissions = fails_at = 0;
    for (int i = 0; i < 3; i++)
        submit_and_wait(recording);
    assert_int_equal(submissions, 9);
    assert_to(&bench, 2, 4);
    bool timed = gpu_device_capabilities(bench.device)->timestamp_period > 0;
    assert_int_equal(gpu_recording_times(recording, labels, milliseconds, 2), timed);
    /* The submissions before the failing submission have finished. */
    submissions = 0;
    fails_at = 3;
    assert_int_equal(gpu_submit(recording), VKN_ERROR);
    bench.device->vk.vkQueueSubmit = driver_submit;
    gpu_recording_destroy(&recording);
    assert_to(&bench, 1, 4);
    bench_destroy(&bench);
}

static void test_copies(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench.device, "copies", 0, &recording));
    gpu_record_copy(recording, &bench.from, 4, &bench.to, 400, 40);
    gpu_record_copy(recording, &bench.from, 0, &bench.to, 0, 0);
    gpu_record_copy(recording, &bench.from, 8, &bench.facts, 0, 12);
    ok(gpu_run_once(&recording));
    assert_null(recording);
    uint32_t to[COUNT];
    ok(gpu_download(bench.device, &bench.to, 0, to, sizeof to));
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(to[i], i >= 100 && i < 110 ? 5 * (i - 99) + 1 : 0);
    const uint32_t *facts = bench.facts.mapped;
    assert_int_equal(facts[1], 16);
    bench_destroy(&bench);
}

static void test_recording_errors(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    const uint32_t long_push[9] = {0};
    for (int i = 0; i < 5; i++) {
        ok(gpu_record_begin(bench.device, "faulty", 1, &recording));
        if (i == 0)
            gpu_record_dispatch(recording, bench.pipeline, bench.bindings, long_push,
                                sizeof long_push, 1);
        if (i == 1)
            gpu_record_dispatch(recording, bench.pipeline, bench.bindings, NULL, 0, UINT32_MAX);
        if (i == 2)
            gpu_record_dispatch_indirect(recording, bench.pipeline, bench.bindings, NULL, 0,
                                         &bench.groups, 12);
        if (i == 3)
            gpu_record_fill(recording, &bench.to, 0, bench.to.size + 4, 0);
        if (i == 4)
            gpu_record_copy(recording, &bench.to, 4, &bench.from, 0, bench.to.size);
        base_fail(VKN_ERROR, "something else");
        bool limited =
            i != 1 || bench.device->support.limits.maxComputeWorkGroupCount[0] < UINT32_MAX;
        assert_int_equal(gpu_record_end(recording), limited ? VKN_ERROR : VKN_OK);
        if (limited) {
            assert_message("faulty");
            assert_int_equal(gpu_submit(recording), VKN_ERROR);
        }
        gpu_recording_destroy(&recording);
    }
    bench_destroy(&bench);
}

static void test_timestamps(void **state)
{
    struct bench bench = bench_create(*state);
    if (gpu_device_capabilities(bench.device)->timestamp_period == 0) {
        bench_destroy(&bench);
        skip_because("the device has no timestamps");
    }
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench.device, "timed", 3, &recording));
    gpu_record_timestamp(recording, "fill");
    gpu_record_fill(recording, &bench.to, 0, bench.to.size, 0);
    gpu_record_barrier(recording);
    gpu_record_timestamp(recording, "dispatch");
    gpu_record_dispatch(recording, bench.pipeline, bench.bindings, push, sizeof push,
                        bench_groups(&bench));
    gpu_record_timestamp(recording, "end");
    ok(gpu_record_end(recording));
    const char *labels[4];
    double milliseconds[4];
    assert_int_equal(gpu_recording_times(recording, labels, milliseconds, 4), 0);
    for (int round = 0; round < 2; round++) {
        submit_and_wait(recording);
        assert_int_equal(gpu_recording_times(recording, labels, milliseconds, 4), 2);
        assert_string_equal(labels[0], "fill");
        assert_string_equal(labels[1], "dispatch");
        for (int i = 0; i < 2; i++)
            assert_true(milliseconds[i] >= 0 && milliseconds[i] < 10000);
        assert_int_equal(gpu_recording_times(recording, labels, milliseconds, 1), 1);
    }
    assert_true(gpu_recording_start(recording) >= 0);
    gpu_recording_destroy(&recording);

    ok(gpu_record_begin(bench.device, "too many", 1, &recording));
    gpu_record_timestamp(recording, "one");
    gpu_record_timestamp(recording, "two");
    assert_int_equal(gpu_run_once(&recording), VKN_ERROR);
    assert_null(recording);
    assert_message("two");

    ok(gpu_record_begin(bench.device, "none", 0, &recording));
    gpu_record_timestamp(recording, "ignored");
    ok(gpu_record_end(recording));
    submit_and_wait(recording);
    assert_int_equal(gpu_recording_times(recording, labels, milliseconds, 4), 0);
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
}

/* A command buffer's timestamps lie between two readings of the device's and host's clocks. */
static void test_clocks(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_clocks before, after;
    if (!gpu_read_clocks(bench.device, &before)) {
        bench_destroy(&bench);
        skip_because("the device's clock cannot be read beside the host's");
    }
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench.device, "clocks", 2, &recording));
    gpu_record_timestamp(recording, "dispatch");
    gpu_record_dispatch(recording, bench.pipeline, bench.bindings, push, sizeof push, 1);
    gpu_record_timestamp(recording, NULL);
    ok(gpu_record_end(recording));
    assert_true(gpu_recording_start(recording) < 0);
    submit_and_wait(recording);
    assert_true(gpu_read_clocks(bench.device, &after));
    double start = gpu_recording_start(recording);
    assert_true(before.device <= start && start <= after.device);
    assert_true(before.host <= after.host && after.host <= base_seconds());
    double drift = (after.device - before.device) - (after.host - before.host);
    assert_true(fabs(drift) < 1e-3 + before.deviation + after.deviation);
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
}

/* A 36-bit timestamp counter, which wraps about once an hour, is extended to 64 bits. */
static void test_ticks(void **state)
{
    struct gpu_device *device = *state;
    uint32_t bits = device->support.timestamp_bits;
    uint64_t last = device->last_ticks;
    device->support.timestamp_bits = 36;
    device->last_ticks = 0;
    const uint64_t wrap = (uint64_t)1 << 36;
    assert_int_equal(gpu_extend_ticks(device, wrap - 5), wrap - 5);
    assert_int_equal(gpu_extend_ticks(device, 7), wrap + 7);
    assert_int_equal(gpu_extend_ticks(device, wrap - 1), wrap - 1);
    assert_int_equal(gpu_extend_ticks(device, 100), wrap + 100);
    device->support.timestamp_bits = bits;
    device->last_ticks = last;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static struct {
    int open, most_open, begun, open_at_end; /* open_at_end: when a command buffer ended */
    char names[8][64];
} labels;
static PFN_vkEndCommandBuffer end_commands;

static void begin_label(VkCommandBuffer commands, const VkDebugUtilsLabelEXT *label)
{
    (void)commands;
    snprintf(labels.names[labels.begun++ % 8], sizeof labels.names[0], "%s", label->pLabelName);
    if (++labels.open > labels.most_open)
        labels.most_open = labels.open;
}

static void end_label(VkCommandBuffer commands)
{
    (void)commands;
    labels.open--;
}

static VkResult end_recording(VkCommandBuffer commands)
{
    labels.open_at_end += labels.open;
    return end_commands(commands);
}

/* The command buffer and each dispatch have a debug label, and every label ends. */
static void test_labels(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    PFN_vkCmdBeginDebugUtilsLabelEXT begin = vkCmdBeginDebugUtilsLabelEXT;
    PFN_vkCmdEndDebugUtilsLabelEXT end = vkCmdEndDebugUtilsLabelEXT;
    assert_true(begin && end);
    end_commands = bench.device->vk.vkEndCommandBuffer;
    vkCmdBeginDebugUtilsLabelEXT = begin_label;
    vkCmdEndDebugUtilsLabelEXT = end_label;
    bench.device->vk.vkEndCommandBuffer = end_recording;
    const uint32_t groups[] = {1, 1, 1};
    ok(gpu_upload(bench.device, &bench.groups, 0, groups, sizeof groups));
    ok(gpu_record_begin(bench.device, "an interval", 0, &recording));
    gpu_record_dispatch(recording, bench.pipeline, bench.bindings, push, sizeof push, 1);
    gpu_record_barrier(recording);
    gpu_record_dispatch_indirect(recording, bench.pipeline, bench.bindings, push, sizeof push,
                                 &bench.groups, 0);
    ok(gpu_record_end(recording));
    vkCmdBeginDebugUtilsLabelEXT = begin;
    vkCmdEndDebugUtilsLabelEXT = end;
    bench.device->vk.vkEndCommandBuffer = end_commands;
    assert_int_equal(labels.begun, 3);
    assert_int_equal(labels.most_open, 2);
    assert_int_equal(labels.open, 0);
    assert_int_equal(labels.open_at_end, 0);
    assert_string_equal(labels.names[0], "an interval");
    assert_string_equal(labels.names[1], "gpu_test");
    assert_string_equal(labels.names[2], "gpu_test");
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
}

static VkResult lost(VkDevice device, uint32_t count, const VkFence *fences, VkBool32 all,
                     uint64_t timeout)
{
    (void)device, (void)count, (void)fences, (void)all, (void)timeout;
    return VK_ERROR_DEVICE_LOST;
}

static void test_device_lost(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench.device, "doomed", 0, &recording));
    ok(gpu_record_end(recording));
    ok(gpu_submit(recording));
    PFN_vkWaitForFences wait = bench.device->vk.vkWaitForFences;
    bench.device->vk.vkWaitForFences = lost;
    assert_int_equal(gpu_wait(recording), VKN_NO_DEVICE);
    bench.device->vk.vkWaitForFences = wait;
    assert_message("doomed");
    assert_message("lost");
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
}

static VkResult hang(VkDevice device, uint32_t count, const VkFence *fences, VkBool32 all,
                     uint64_t timeout)
{
    (void)device, (void)count, (void)fences, (void)all;
    usleep((useconds_t)(timeout / 10000)); /* a tenth of the timeout, to save time */
    return VK_TIMEOUT;
}

/* A device that does not answer after a stop request is given up, and later calls do not wait. */
static void test_hung_device(void **state)
{
    (void)state;
    static volatile sig_atomic_t stop = 1;
    struct gpu_device *device = open_device();
    struct bench bench = bench_create(device);
    struct gpu_recording *recording;
    ok(gpu_record_begin(device, "endless", 0, &recording));
    ok(gpu_record_end(recording));
    ok(gpu_submit(recording));
    struct VolkDeviceTable working = device->vk;
    device->vk.vkWaitForFences = hang;
    double patience = gpu_stop_timeout, began = base_seconds();
    gpu_stop_timeout = 0.1;
    assert_null(gpu_set_stop_flag(device, &stop));
    assert_int_equal(gpu_wait(recording), VKN_NO_DEVICE);
    gpu_stop_timeout = patience;
    assert_message("endless: the device did not finish within 0.1 seconds after the stop request");
    assert_int_equal(gpu_wait(recording), VKN_NO_DEVICE);
    assert_true(base_seconds() - began < 5);
    assert_true(device->vk.vkDestroyFence != working.vkDestroyFence &&
                device->vk.vkFreeMemory != working.vkFreeMemory &&
                device->vk.vkDestroyDevice != working.vkDestroyDevice);
    assert_message("endless: the device was given up");
    struct gpu_bindings *bindings;
    const struct gpu_buffer *none[GPU_BINDINGS] = {NULL};
    assert_int_equal(gpu_bindings_create(device, none, &bindings), VKN_NO_DEVICE);
    assert_null(bindings);
    /* Without a stop request the device is given up after the wait limit. */
    device->hung = false;
    gpu_set_stop_flag(device, NULL);
    assert_true(gpu_set_wait_limit(device, 0.1) == 0);
    assert_int_equal(gpu_wait(recording), VKN_NO_DEVICE);
    assert_message("endless: not finished after 0.1 seconds: a loop in the field's GLSL");
    assert_true(device->hung);
    /* The device is fine: restoring it avoids leaks. */
    device->vk = working;
    device->hung = false;
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
    gpu_close(&device);
}

static PFN_vkWaitForFences patient_wait;
static int impatient_waits;

static VkResult impatient(VkDevice device, uint32_t count, const VkFence *fences, VkBool32 all,
                          uint64_t timeout)
{
    return impatient_waits++ < 2 ? VK_TIMEOUT : patient_wait(device, count, fences, all, timeout);
}

/* A fence wait that times out early is repeated until the work is done. */
static void test_timeout(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench.device, "long", 0, &recording));
    gpu_record_dispatch(recording, bench.pipeline, bench.bindings, push, sizeof push,
                        bench_groups(&bench));
    ok(gpu_record_end(recording));
    patient_wait = bench.device->vk.vkWaitForFences;
    bench.device->vk.vkWaitForFences = impatient;
    ok(gpu_submit(recording));
    ok(gpu_wait(recording));
    bench.device->vk.vkWaitForFences = patient_wait;
    assert_int_equal(impatient_waits, 3);
    assert_to(&bench, 1, 0);
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
}

static void test_two_devices(void **state)
{
    struct bench benches[2] = {bench_create(*state), bench_create(open_device())};
    struct gpu_recording *recordings[2];
    assert_ptr_not_equal(benches[0].device, benches[1].device);
    for (int i = 0; i < 2; i++) {
        ok(gpu_record_begin(benches[i].device, "one of two", 0, &recordings[i]));
        for (int k = 0; k <= i; k++) {
            gpu_record_dispatch(recordings[i], benches[i].pipeline, benches[i].bindings, push,
                                sizeof push, bench_groups(&benches[i]));
            gpu_record_barrier(recordings[i]);
        }
        ok(gpu_record_end(recordings[i]));
    }
    for (int i = 0; i < 2; i++)
        ok(gpu_submit(recordings[i]));
    for (int i = 0; i < 2; i++)
        ok(gpu_wait(recordings[i]));
    for (uint32_t i = 0; i < 2; i++) {
        assert_to(&benches[i], i + 1, 0);
        gpu_recording_destroy(&recordings[i]);
        bench_destroy(&benches[i]);
    }
    gpu_close(&benches[1].device);
}

/* The validation layer finds a deliberate hazard, so its silence in other tests has a meaning. */
static void test_hazard_is_seen(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    if (!gpu_validating()) {
        bench_destroy(&bench);
        skip_because("there are no validation layers");
    }
    base_log_threshold(BASE_LOG_NOTHING);
    ok(gpu_record_begin(bench.device, "hazard", 0, &recording));
    gpu_record_fill(recording, &bench.to, 0, bench.to.size, 1);
    gpu_record_fill(recording, &bench.to, 0, bench.to.size, 2);
    ok(gpu_record_end(recording));
    base_log_threshold(BASE_LOG_INFO);
    assert_true(gpu_validation_messages() > 0);
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatch),    cmocka_unit_test(test_indirect),
        cmocka_unit_test(test_order),       cmocka_unit_test(test_split),
        cmocka_unit_test(test_copies),      cmocka_unit_test(test_recording_errors),
        cmocka_unit_test(test_timestamps),  cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_ticks),       cmocka_unit_test(test_labels),
        cmocka_unit_test(test_device_lost), cmocka_unit_test(test_hung_device),
        cmocka_unit_test(test_timeout),     cmocka_unit_test(test_two_devices),
        cmocka_unit_test(test_no_messages), cmocka_unit_test(test_hazard_is_seen),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, open_shared, close_shared);
    clean_up_tests();
    return failed;
}
