/* The gpu room: devices, memory, programs, recordings, self-test; all of it under the validation
 * layer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/gpu.h"
#include "gpu/internal.h"

static char cache_dir[] = "/tmp/vknerf-test-gpu-XXXXXX";

static void ok(vkn_status status)
{
    if (status != VKN_OK)
        fail_msg("status %d: %s", status, vkn_last_error());
}

static void assert_message(const char *part)
{
    if (!strstr(vkn_last_error(), part))
        fail_msg("\"%s\" is not in the message: %s", part, vkn_last_error());
}

static struct gpu_device *open_device(void)
{
    struct gpu_options options = {.cache_dir = cache_dir};
    struct gpu_device *device;
    ok(gpu_open(&options, &device));
    return device;
}

/* What gpu_open writes to standard error, with one variable set; the caller frees. */
static char *log_of_open(const char *variable, const char *value, vkn_status *status,
                         struct gpu_device **device)
{
    struct gpu_options options = {.cache_dir = cache_dir};
    FILE *file = tmpfile();
    int saved = dup(STDERR_FILENO);
    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    setenv(variable, value, 1);
    *status = gpu_open(&options, device);
    unsetenv(variable);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = base_alloc((size_t)size + 1, 1);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    return text;
}

/* ---- devices --------------------------------------------------------------------------------- */

static void test_list(void **state)
{
    (void)state;
    struct gpu_capabilities devices[8];
    size_t count = 0, again = 0;
    ok(gpu_list(devices, BASE_COUNT(devices), &count));
    assert_true(count > 0);
    ok(gpu_list(NULL, 0, &again));
    assert_int_equal(count, again);
    assert_true(devices[0].name[0] && devices[0].driver[0]);
    assert_true(devices[0].subgroup_size >= 4 && devices[0].subgroup_size <= 128);
    assert_true(devices[0].max_shared_memory >= 16384);
    assert_true(devices[0].device_memory > 0);
}

static void test_choice(void **state)
{
    (void)state;
    struct gpu_options options = {.cache_dir = cache_dir, .device = "0"};
    struct gpu_device *device;
    ok(gpu_open(&options, &device));
    char name[256];
    snprintf(name, sizeof name, "%s", gpu_device_capabilities(device)->name);
    gpu_close(&device);
    assert_null(device);
    gpu_close(&device);

    char part[] = "?????";
    for (int i = 0; i < 5; i++)
        part[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 32 : name[i]);
    options.device = part;
    ok(gpu_open(&options, &device));
    gpu_close(&device);

    const char *absent[] = {"no such GPU", "99", ""};
    for (size_t i = 0; i < BASE_COUNT(absent); i++) {
        options.device = absent[i];
        assert_int_equal(gpu_open(&options, &device), VKN_NO_DEVICE);
        assert_null(device);
        assert_message(absent[i]);
        assert_message(name);
    }
}

static void test_no_driver(void **state)
{
    (void)state;
    static const char *const variables[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
    char saved[2][4096] = {"", ""};
    for (int i = 0; i < 2; i++) {
        if (getenv(variables[i]))
            snprintf(saved[i], sizeof saved[i], "%s", getenv(variables[i]));
        setenv(variables[i], "/nonexistent/driver.json", 1);
    }
    size_t count = 1;
    struct gpu_device *device;
    assert_int_equal(gpu_list(NULL, 0, &count), VKN_NO_DEVICE);
    assert_int_equal(count, 0);
    assert_int_equal(gpu_open(NULL, &device), VKN_NO_DEVICE);
    assert_message("river");
    for (int i = 0; i < 2; i++) {
        if (saved[i][0])
            setenv(variables[i], saved[i], 1);
        else
            unsetenv(variables[i]);
    }
}

static void test_kill_switches(void **state)
{
    (void)state;
    struct gpu_device *device;
    vkn_status status;
    char *log =
        log_of_open("VKNERF_DISABLE",
                    "float_atomics,cooperative_matrix,float16,storage16,timestamps,"
                    "subgroup_size_control,packed_half_atomics,memory_budget,pipeline_cache",
                    &status, &device);
    ok(status);
    assert_string_equal(log, "");
    free(log);
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    assert_false(capabilities->float_atomic_add || gpu_self_test_result(device)->float_atomics);
    assert_false(capabilities->cooperative_matrix || capabilities->cooperative_matrix2);
    assert_int_equal(capabilities->shape_count, 0);
    assert_false(capabilities->float16 || capabilities->storage16);
    assert_false(capabilities->subgroup_pinnable || capabilities->packed_half_atomics);
    assert_true(capabilities->timestamp_period == 0);
    assert_true(gpu_self_test_result(device)->subgroups);
    assert_true(gpu_memory_available(device) > 0);
    gpu_close(&device);

    log = log_of_open("VKNERF_DISABLE", "memory_model,flaot16", &status, &device);
    ok(status);
    assert_non_null(strstr(log, "flaot16"));
    assert_non_null(strstr(log, "float16"));
    free(log);
    assert_false(gpu_device_capabilities(device)->cooperative_matrix);
    gpu_close(&device);
}

static void test_self_test(void **state)
{
    (void)state;
    struct gpu_device *device = open_device();
    bool has_float_atomics = gpu_device_capabilities(device)->float_atomic_add;
    assert_true(gpu_self_test_result(device)->subgroups);
    assert_true(gpu_self_test_result(device)->integer_atomics);
    assert_true(gpu_self_test_result(device)->float_atomics == has_float_atomics);
    gpu_close(&device);

    vkn_status status;
    char *log = log_of_open("VKNERF_SELF_TEST_BREAK", "float_atomics", &status, &device);
    ok(status);
    assert_false(gpu_device_capabilities(device)->float_atomic_add);
    assert_false(gpu_self_test_result(device)->float_atomics);
    if (has_float_atomics)
        assert_non_null(strstr(log, "float atomics are switched off"));
    free(log);
    gpu_close(&device);

    static const char *const fatal[] = {"subgroups", "integer_atomics"};
    for (size_t i = 0; i < BASE_COUNT(fatal); i++) {
        free(log_of_open("VKNERF_SELF_TEST_BREAK", fatal[i], &status, &device));
        assert_int_equal(status, VKN_NO_DEVICE);
        assert_null(device);
        assert_message("fails the self-test");
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_transfers(void **state)
{
    struct gpu_device *device = *state;
    uint64_t held = gpu_memory_held(device);
    /* Odd, empty, and larger than the staging buffer. */
    const uint64_t sizes[] = {1, 0, 1000003, ((uint64_t)33 << 20) + 5, 4096};
    struct gpu_buffer buffers[5];
    struct gpu_buffer_request requests[5];
    for (size_t i = 0; i < 5; i++)
        requests[i] = (struct gpu_buffer_request){&buffers[i], "odd", sizes[i],
                                                  i == 4 ? GPU_HOST : GPU_DEVICE};
    struct gpu_arena *arena;
    ok(gpu_arena_create(device, requests, 5, &arena));
    assert_true(gpu_memory_held(device) >= held + sizes[2] + sizes[3] + sizes[4]);
    for (size_t i = 0; i < 5; i++) {
        assert_true((buffers[i].mapped != NULL) == (i == 4));
        uint64_t size = buffers[i].size;
        assert_true(size >= sizes[i] && size > 0);
        unsigned char *data = base_alloc(size, 1), *back = base_alloc(size, 1);
        memset(back, 255, size);
        ok(gpu_download(device, &buffers[i], 0, back, size));
        assert_memory_equal(data, back, size); /* zeros */
        for (uint64_t k = 0; k < size; k++)
            data[k] = (unsigned char)(k * 7 + k / 251 + i);
        uint64_t at = size / 3;
        ok(gpu_upload(device, &buffers[i], 0, data, at));
        ok(gpu_upload(device, &buffers[i], at, data + at, size - at));
        ok(gpu_download(device, &buffers[i], 0, back, size));
        assert_memory_equal(data, back, size);
        memset(back, 0, size);
        ok(gpu_download(device, &buffers[i], at, back, size - at));
        assert_memory_equal(data + at, back, size - at);
        free(data);
        free(back);
    }
    char byte = 0;
    assert_int_equal(gpu_upload(device, &buffers[2], sizes[2], &byte, 1), VKN_ERROR);
    assert_message("odd");
    assert_int_equal(gpu_download(device, &buffers[2], UINT64_MAX, &byte, 1), VKN_ERROR);
    ok(gpu_upload(device, &buffers[2], sizes[2], &byte, 0));
    gpu_arena_destroy(&arena);
    assert_null(arena);
    gpu_arena_destroy(&arena);
}

static VkResult no_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                          const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory)
{
    (void)device, (void)info, (void)callbacks, (void)memory;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static void test_memory_limits(void **state)
{
    struct gpu_device *device = *state;
    uint64_t held = gpu_memory_held(device);
    struct gpu_buffer small, large;
    struct gpu_buffer_request requests[] = {
        {&small, "small", 16, GPU_DEVICE},
        {&large, "photographs", gpu_device_capabilities(device)->max_buffer_range + 1, GPU_DEVICE},
    };
    struct gpu_arena *arena;
    assert_int_equal(gpu_arena_create(device, requests, 2, &arena), VKN_BAD_INPUT);
    assert_null(arena);
    assert_message("photographs");
    assert_message("MiB");

    requests[1].size = 12345;
    PFN_vkAllocateMemory allocate = device->vk.vkAllocateMemory;
    device->vk.vkAllocateMemory = no_memory;
    assert_int_equal(gpu_arena_create(device, requests, 2, &arena), VKN_ERROR);
    device->vk.vkAllocateMemory = allocate;
    assert_message("out of memory");
    assert_message("photographs");
    assert_message("123"); /* bytes, padded */
    assert_int_equal(gpu_memory_held(device), held);
}

/* An arena larger than one allocation may be. */
static void test_split_arena(void **state)
{
    struct gpu_device *device = *state;
    uint64_t limit = device->support.max_allocation, held = gpu_memory_held(device);
    struct gpu_buffer buffers[9];
    struct gpu_buffer_request requests[9];
    for (uint32_t i = 0; i < 9; i++)
        requests[i] = (struct gpu_buffer_request){&buffers[i], "part", 30000 + i,
                                                  i % 3 ? GPU_DEVICE : GPU_HOST};
    struct gpu_arena *arena;
    device->support.max_allocation = 70000;
    ok(gpu_arena_create(device, requests, 9, &arena));
    device->support.max_allocation = limit;
    for (uint32_t i = 0; i < 9; i++)
        ok(gpu_upload(device, &buffers[i], 100 * i, &i, sizeof i));
    for (uint32_t i = 0; i < 9; i++) {
        uint32_t back[2] = {77, 77};
        ok(gpu_download(device, &buffers[i], 100 * i, back, sizeof back));
        assert_int_equal(back[0], i);
        assert_int_equal(back[1], 0);
    }
    assert_true(gpu_memory_held(device) > held + 9 * 30000);
    gpu_arena_destroy(&arena);
    assert_int_equal(gpu_memory_held(device), held);
}

/* ---- programs and recordings ----------------------------------------------------------------- */

#define COUNT 1000u

/* gpu_test adds FACTOR * from[i] + 8 * SCALE + addend to to[i]. */
struct bench {
    struct gpu_device *device;
    struct gpu_buffer from, to, facts, groups;
    struct gpu_arena *arena;
    struct gpu_bindings *bindings;
    struct gpu_program *program;
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
    struct gpu_constants constants = {.values = {3}, .count = 2};
    float scale = 2.5f;
    memcpy(&constants.values[1], &scale, sizeof scale);
    struct gpu_program_options options = {
        .name = "gpu_test",
        .local_size = 2 * gpu_device_capabilities(device)->subgroup_size,
        .constants = &constants,
    };
    ok(gpu_program_create(device, &options, &bench.program));
    assert_int_equal(gpu_program_local_size(bench.program), options.local_size);
    return bench;
}

static void bench_destroy(struct bench *bench)
{
    gpu_program_destroy(&bench->program);
    gpu_bindings_destroy(&bench->bindings);
    gpu_arena_destroy(&bench->arena);
}

static uint32_t bench_groups(const struct bench *bench)
{
    uint32_t local_size = gpu_program_local_size(bench->program);
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

static void test_program(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench.device, "program", 0, &recording));
    gpu_record_dispatch(recording, bench.program, bench.bindings, push, sizeof push,
                        bench_groups(&bench));
    ok(gpu_record_end(recording));
    submit_and_wait(recording);
    const uint32_t *facts = bench.facts.mapped;
    assert_int_equal(facts[0], bench_groups(&bench));
    assert_int_equal(facts[1], gpu_program_local_size(bench.program));
    assert_int_equal(facts[2], gpu_device_capabilities(bench.device)->subgroup_size);
    assert_to(&bench, 1, 0);

    /* Again: once and thrice in a row without waiting; a submission waits for the one before. */
    submit_and_wait(recording);
    assert_to(&bench, 2, 0);
    for (int i = 0; i < 3; i++)
        ok(gpu_submit(recording));
    assert_to(&bench, 5, 0);
    gpu_recording_destroy(&recording);
    assert_null(recording);
    bench_destroy(&bench);
}

static void test_program_errors(void **state)
{
    struct gpu_device *device = *state;
    uint32_t size = gpu_device_capabilities(device)->subgroup_size;
    struct gpu_program *program;
    struct gpu_program_options options = {.name = "no_such_program", .local_size = size};
    assert_int_equal(gpu_program_create(device, &options, &program), VKN_ERROR);
    assert_message("no_such_program");
    options.name = "gpu_test";
    const uint32_t bad_sizes[] = {0, size + 1, size << 16};
    for (size_t i = 0; i < BASE_COUNT(bad_sizes); i++) {
        options.local_size = bad_sizes[i];
        assert_int_equal(gpu_program_create(device, &options, &program), VKN_ERROR);
        assert_message("gpu_test");
        assert_null(program);
    }
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
    gpu_record_dispatch_indirect(recording, bench.program, bench.bindings, push, sizeof push,
                                 &bench.groups, 8);
    gpu_record_barrier(recording);
    gpu_record_dispatch(recording, bench.program, bench.bindings, push, sizeof push,
                        bench_groups(&bench));
    /* The counts change between the dispatches that read them. */
    gpu_record_barrier(recording);
    gpu_record_fill(recording, &bench.groups, 8, 4, 0);
    gpu_record_barrier(recording);
    gpu_record_dispatch_indirect(recording, bench.program, bench.bindings, push, sizeof push,
                                 &bench.groups, 8);
    ok(gpu_record_end(recording));
    submit_and_wait(recording);
    assert_to(&bench, 2, 9);
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
}

/* Recordings in flight together run in the order of their submission and see each other's results.
 */
static void test_order(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recordings[2];
    for (int i = 0; i < 2; i++) {
        ok(gpu_record_begin(bench.device, i ? "second" : "first", 0, &recordings[i]));
        if (i == 0)
            gpu_record_fill(recordings[i], &bench.to, 0, bench.to.size, 4);
        else
            gpu_record_dispatch(recordings[i], bench.program, bench.bindings, push, sizeof push,
                                bench_groups(&bench));
        ok(gpu_record_end(recordings[i]));
    }
    for (int round = 0; round < 3; round++) {
        ok(gpu_submit(recordings[0]));
        ok(gpu_submit(recordings[1]));
    }
    assert_to(&bench, 1, 4);
    /* Destroying waits for what is in flight. */
    ok(gpu_submit(recordings[0]));
    gpu_recording_destroy(&recordings[0]);
    gpu_recording_destroy(&recordings[1]);
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
    ok(gpu_record_end(recording));
    submit_and_wait(recording);
    uint32_t to[COUNT];
    ok(gpu_download(bench.device, &bench.to, 0, to, sizeof to));
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(to[i], i >= 100 && i < 110 ? 5 * (i - 99) + 1 : 0);
    const uint32_t *facts = bench.facts.mapped;
    assert_int_equal(facts[1], 16);
    gpu_recording_destroy(&recording);
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
            gpu_record_dispatch(recording, bench.program, bench.bindings, long_push,
                                sizeof long_push, 1);
        if (i == 1)
            gpu_record_dispatch(recording, bench.program, bench.bindings, NULL, 0, UINT32_MAX);
        if (i == 2)
            gpu_record_dispatch_indirect(recording, bench.program, bench.bindings, NULL, 0,
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
        skip();
    }
    struct gpu_recording *recording;
    ok(gpu_record_begin(bench.device, "timed", 3, &recording));
    gpu_record_timestamp(recording, "fill");
    gpu_record_fill(recording, &bench.to, 0, bench.to.size, 0);
    gpu_record_barrier(recording);
    gpu_record_timestamp(recording, "dispatch");
    gpu_record_dispatch(recording, bench.program, bench.bindings, push, sizeof push,
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
    gpu_recording_destroy(&recording);

    ok(gpu_record_begin(bench.device, "too many", 1, &recording));
    gpu_record_timestamp(recording, "one");
    gpu_record_timestamp(recording, "two");
    assert_int_equal(gpu_record_end(recording), VKN_ERROR);
    assert_message("two");
    gpu_recording_destroy(&recording);

    ok(gpu_record_begin(bench.device, "none", 0, &recording));
    gpu_record_timestamp(recording, "ignored");
    ok(gpu_record_end(recording));
    submit_and_wait(recording);
    assert_int_equal(gpu_recording_times(recording, labels, milliseconds, 4), 0);
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

static void test_two_devices(void **state)
{
    struct bench benches[2] = {bench_create(*state), bench_create(open_device())};
    struct gpu_recording *recordings[2];
    assert_ptr_not_equal(benches[0].device, benches[1].device);
    for (int i = 0; i < 2; i++) {
        ok(gpu_record_begin(benches[i].device, "one of two", 0, &recordings[i]));
        for (int k = 0; k <= i; k++) {
            gpu_record_dispatch(recordings[i], benches[i].program, benches[i].bindings, push,
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

/* ---- the pipeline cache ---------------------------------------------------------------------- */

/* The one cache file; the caller frees. */
static char *cache_file(void)
{
    char *path = NULL;
    DIR *folder = opendir(cache_dir);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, "pipelines-", 10) == 0) {
            assert_null(path);
            path = base_path_join(cache_dir, entry->d_name);
        }
    closedir(folder);
    return path;
}

static void test_cache(void **state)
{
    (void)state;
    struct gpu_device *device = open_device();
    gpu_close(&device);
    char *path = cache_file();
    assert_non_null(path);
    char *good, *now;
    size_t good_size, now_size;
    ok(base_file_read(path, 1 << 28, &good, &good_size));

    /* Broken in the middle, cut short, empty: ignored and replaced. */
    for (int i = 0; i < 3; i++) {
        good[good_size / 2] ^= i == 0;
        ok(base_file_replace(path, good, i == 0 ? good_size : i == 1 ? good_size / 2 : 0));
        good[good_size / 2] ^= i == 0;
        device = open_device();
        gpu_close(&device);
        ok(base_file_read(path, 1 << 28, &now, &now_size));
        assert_true(now_size > 16);
        assert_memory_equal(now, good, 8);
        free(now);
    }
    unlink(path);
    free(path);
    free(good);

    /* A folder that cannot be made is no error. */
    struct gpu_options options = {.cache_dir = "/dev/null/cache"};
    ok(gpu_open(&options, &device));
    gpu_close(&device);
}

/* ---- the validation layer -------------------------------------------------------------------- */

static void test_no_messages(void **state)
{
    (void)state;
    assert_int_equal(gpu_validation_messages(), 0);
}

/* Proof that the silence above means something. */
static void test_hazard_is_seen(void **state)
{
    struct bench bench = bench_create(*state);
    struct gpu_recording *recording;
    if (!gpu_validating()) {
        bench_destroy(&bench);
        skip();
    }
    base_log_threshold(BASE_LOG_WARNING + 1);
    ok(gpu_record_begin(bench.device, "hazard", 0, &recording));
    gpu_record_fill(recording, &bench.to, 0, bench.to.size, 1);
    gpu_record_fill(recording, &bench.to, 0, bench.to.size, 2);
    ok(gpu_record_end(recording));
    base_log_threshold(BASE_LOG_INFO);
    assert_true(gpu_validation_messages() > 0);
    gpu_recording_destroy(&recording);
    bench_destroy(&bench);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int open_shared(void **state)
{
    *state = open_device();
    return 0;
}

static int close_shared(void **state)
{
    struct gpu_device *device = *state;
    gpu_close(&device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(test_list),      cmocka_unit_test(test_choice),
        cmocka_unit_test(test_no_driver), cmocka_unit_test(test_kill_switches),
        cmocka_unit_test(test_self_test), cmocka_unit_test(test_cache),
    };
    const struct CMUnitTest on_device[] = {
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_memory_limits),
        cmocka_unit_test(test_split_arena),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_program_errors),
        cmocka_unit_test(test_indirect),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_recording_errors),
        cmocka_unit_test(test_timestamps),
        cmocka_unit_test(test_device_lost),
        cmocka_unit_test(test_two_devices),
        cmocka_unit_test(test_no_messages),
        cmocka_unit_test(test_hazard_is_seen),
    };
    if (!mkdtemp(cache_dir))
        return 1;
    setenv("VKNERF_VALIDATION", "1", 1);
    int failed = cmocka_run_group_tests(alone, NULL, NULL);
    failed += cmocka_run_group_tests(on_device, open_shared, close_shared);
    char *path = cache_file();
    if (path)
        unlink(path);
    free(path);
    rmdir(cache_dir);
    return failed;
}
