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
    char saved[2][4096] = {"", ""}, *absent = base_path_join(cache_dir, "absent/driver.json");
    for (int i = 0; i < 2; i++) {
        if (getenv(variables[i]))
            snprintf(saved[i], sizeof saved[i], "%s", getenv(variables[i]));
        setenv(variables[i], absent, 1);
    }
    free(absent);
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
    assert_non_null(strstr(log, "float16")); /* what is known: features and other switches */
    assert_non_null(strstr(log, "owned_sums"));
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

/* Entries of f16 matrices of that shape. */
static uint32_t count_shapes(const struct gpu_device *device, uint32_t m, uint32_t n, uint32_t k)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    uint32_t count = 0;
    for (uint32_t i = 0; i < capabilities->shape_count; i++) {
        const struct gpu_matrix_shape *shape = &capabilities->shapes[i];
        count +=
            shape->m == m && shape->n == n && shape->k == k && strcmp(shape->a_type, "f16") == 0;
    }
    return count;
}

static char *log_of_matrices(struct gpu_device *device, const uint32_t shape[3])
{
    struct capture capture = capture_begin();
    ok(gpu_self_test_matrices(device, shape[0], shape[1], shape[2]));
    return capture_end(&capture);
}

/* Products of every shape are right; what is broken goes, and what goes with it stays. */
static void test_matrices(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {
        {8, 8, 8}, {8, 8, 16}, {8, 16, 16}, {16, 8, 16}, {16, 16, 16}};
    struct gpu_device *device = open_device();
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    /* lavapipe has them for subgroups of 8. */
    bool all = capabilities->type == GPU_CPU && capabilities->subgroup_size == 8;
    for (size_t i = 0; i < BASE_COUNT(shapes); i++) {
        const uint32_t *s = shapes[i];
        uint32_t before = count_shapes(device, s[0], s[1], s[2]);
        char *log = log_of_matrices(device, s);
        assert_string_equal(log, "");
        free(log);
        assert_int_equal(count_shapes(device, s[0], s[1], s[2]), before);
        if (all)
            assert_int_equal(before, 2);
    }
    gpu_close(&device);

    device = open_device();
    setenv("VKNERF_SELF_TEST_BREAK", "matrix_16x16x16_f16,matrix_8x8x8", 1);
    for (size_t i = 0; i < BASE_COUNT(shapes); i += 4) {
        const uint32_t *s = shapes[i];
        uint32_t before = count_shapes(device, s[0], s[1], s[2]);
        uint32_t all = gpu_device_capabilities(device)->shape_count;
        char *log = log_of_matrices(device, s);
        if (before == 0)
            assert_string_equal(log, "");
        else
            assert_non_null(strstr(log, i == 0 ? "8x8x8 matrices of f16 with f32 accumulation are "
                                                 "switched off: gpu_matrix_8x8x8: row 1, column "
                                               : "gpu_matrix_16x16x16_f16: row 1, column "));
        free(log);
        assert_int_equal(count_shapes(device, s[0], s[1], s[2]), before - (before > 0));
        assert_int_equal(gpu_device_capabilities(device)->shape_count, all - (before > 0));
        log = log_of_matrices(device, s);
        assert_string_equal(log, "");
        free(log);
    }
    unsetenv("VKNERF_SELF_TEST_BREAK");
    gpu_close(&device);
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
        cmocka_unit_test(test_list),      cmocka_unit_test(test_choice),
        cmocka_unit_test(test_no_driver), cmocka_unit_test(test_kill_switches),
        cmocka_unit_test(test_self_test), cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_cache),     cmocka_unit_test(test_no_messages),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clean_up_tests();
    return failed;
}
