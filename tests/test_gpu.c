/* The gpu room: devices, kill switches, self-test, pipeline cache. */
#include "gpu_fixture.h"

/* What gpu_open writes to standard error, with one variable set; the caller frees. */
static char *log_of_open(const char *variable, const char *value, vkn_status *status,
                         struct gpu_device **device)
{
    struct gpu_options options = {.cache_dir = cache_dir};
    struct capture capture = capture_begin();
    setenv(variable, value, 1);
    *status = gpu_open(&options, device);
    unsetenv(variable);
    return capture_end(&capture);
}

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

    const char *absent[] = {"no such GPU", "99", "7", ""};
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

/* ---- the pipeline cache ---------------------------------------------------------------------- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_no_driver),   cmocka_unit_test(test_kill_switches),
        cmocka_unit_test(test_self_test),   cmocka_unit_test(test_cache),
        cmocka_unit_test(test_no_messages),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clean_up_tests();
    return failed;
}
