/* Tests devices of src/gpu: selection, VKNERF_DISABLE, driver issues, self-test, pipeline cache. */
#include "gpu_fixture.h"
#include "gpu/internal.h"
#include "skips.h"
#include <vknerf/context.h>

/* Returns what gpu_open() logs with one variable set; the caller frees the text. */
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

/* ---- drivers --------------------------------------------------------------------------------- */

static const char *const driver_variables[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};

struct drivers {
    char saved[2][4096];
};

static struct drivers drivers_set(const char *files)
{
    struct drivers drivers = {{"", ""}};
    for (int i = 0; i < 2; i++) {
        if (getenv(driver_variables[i]))
            snprintf(drivers.saved[i], sizeof drivers.saved[i], "%s", getenv(driver_variables[i]));
        setenv(driver_variables[i], files, 1);
    }
    return drivers;
}

static void drivers_restore(const struct drivers *drivers)
{
    for (int i = 0; i < 2; i++) {
        if (drivers->saved[i][0])
            setenv(driver_variables[i], drivers->saved[i], 1);
        else
            unsetenv(driver_variables[i]);
    }
}

/* Writes a second ICD file for the same driver, so that its devices are listed twice; the caller
 * frees the path. */
static char *write_driver_file(const char *original)
{
    char *text, *path = base_path_join(cache_dir, "driver.json");
    size_t size;
    ok(base_file_read(original, 1 << 20, &text, &size));
    char *library = strstr(text, "\"library_path\": \""), *folder = base_format("%s", original);
    assert_non_null(library);
    library += strlen("\"library_path\": \"");
    *strrchr(folder, '/') = 0;
    bool relative = library[0] == '.';
    char *copy = base_format("%.*s%s%s%s", (int)(library - text), text, relative ? folder : "",
                             relative ? "/" : "", library);
    ok(base_file_replace(path, copy, strlen(copy)));
    free(folder);
    free(copy);
    free(text);
    return path;
}

/* A device that fails its self-test is skipped with a warning, unless it was asked for by index. */
static void test_next_device(void **state)
{
    (void)state;
    const char *original = getenv(driver_variables[0]);
    struct gpu_device *device;
    vkn_status status;
    size_t count = 0, twice = 0;
    if (!original || strchr(original, ':'))
        skip_because("VK_DRIVER_FILES does not name one driver");
    ok(gpu_list(NULL, 0, &count));
    char *path = write_driver_file(original), *both = base_format("%s:%s", original, path);
    struct drivers drivers = drivers_set(both);
    ok(gpu_list(NULL, 0, &twice));
    assert_int_equal(twice, 2 * count);

    char *log = log_of_open("VKNERF_SELF_TEST_BREAK", "device_0", &status, &device);
    ok(status);
    assert_int_equal(gpu_device_index(device), 1);
    assert_non_null(strstr(log, "fails the self-test"));
    assert_non_null(strstr(log, "the next device is tried"));
    gpu_close(&device);
    free(log);

    log = log_of_open("VKNERF_SELF_TEST_BREAK", "subgroups", &status, &device);
    assert_int_equal(status, VKN_NO_DEVICE);
    assert_message("fails the self-test");
    free(log);

    setenv("VKNERF_SELF_TEST_BREAK", "device_0", 1);
    const struct gpu_options asked = {.cache_dir = cache_dir, .device = "0"};
    assert_int_equal(gpu_open(&asked, &device), VKN_NO_DEVICE);
    assert_message("fails the self-test");
    unsetenv("VKNERF_SELF_TEST_BREAK");
    drivers_restore(&drivers);
    unlink(path);
    free(both);
    free(path);
}

struct issue_case {
    uint32_t driver, version, device;
    enum gpu_device_type type;
    const char *problem; /* NULL: no issue */
    bool warn, crashes;
};

/* Every row of the table of driver issues, and drivers just outside of it. */
static void test_driver_issues(void **state)
{
    (void)state;
    static const struct issue_case cases[] = {
        {VK_DRIVER_ID_AMD_PROPRIETARY, VK_MAKE_VERSION(2, 0, 388), 1, GPU_INTEGRATED,
         "crashes when", false, true},
        {VK_DRIVER_ID_AMD_PROPRIETARY, VK_MAKE_VERSION(2, 0, 389), 1, GPU_INTEGRATED, NULL, 0, 0},
        {VK_DRIVER_ID_AMD_OPEN_SOURCE, VK_MAKE_VERSION(2, 0, 388), 1, GPU_INTEGRATED,
         "crashes when", false, true},
        {VK_DRIVER_ID_AMD_OPEN_SOURCE, VK_MAKE_VERSION(2, 0, 389), 1, GPU_INTEGRATED, NULL, 0, 0},
        {VK_DRIVER_ID_AMD_PROPRIETARY, VK_MAKE_VERSION(9, 9, 9), 1, GPU_DISCRETE, "offers matrices",
         false, false},
        {VK_DRIVER_ID_AMD_OPEN_SOURCE, 0, 1, GPU_DISCRETE, "offers matrices", false, false},
        {VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, VK_MAKE_VERSION(24, 3, 0), 1, GPU_DISCRETE,
         "before Mesa 24.3.1", false, false},
        {VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, VK_MAKE_VERSION(24, 3, 1), 1, GPU_DISCRETE, NULL, 0,
         0},
        {VK_DRIVER_ID_MESA_NVK, VK_MAKE_VERSION(24, 0, 99), 1, GPU_DISCRETE, "is experimental",
         true, false},
        {VK_DRIVER_ID_MESA_NVK, VK_MAKE_VERSION(24, 1, 0), 1, GPU_DISCRETE, NULL, 0, 0},
        {VK_DRIVER_ID_MESA_DOZEN, VK_MAKE_VERSION(26, 1, 0), 1, GPU_DISCRETE, "not a conformant",
         true, false},
        {VK_DRIVER_ID_MESA_RADV, VK_MAKE_VERSION(26, 1, 0), 0x73bf, GPU_DISCRETE,
         "compare-and-swap", false, false},
        {VK_DRIVER_ID_MESA_RADV, VK_MAKE_VERSION(26, 1, 0), 0x73be, GPU_DISCRETE, NULL, 0, 0},
        {VK_DRIVER_ID_NVIDIA_PROPRIETARY, 1, 1, GPU_DISCRETE, NULL, 0, 0},
        {VK_DRIVER_ID_MESA_LLVMPIPE, 1, 1, GPU_CPU, NULL, 0, 0},
    };
    for (size_t i = 0; i < BASE_COUNT(cases); i++) {
        const struct issue_case *c = &cases[i];
        const struct gpu_capabilities device = {.type = c->type,
                                                .device_id = c->device,
                                                .driver_id = c->driver,
                                                .driver_version = c->version};
        struct gpu_driver_issue issues[GPU_MAX_DRIVER_ISSUES];
        size_t count = gpu_driver_issues(&device, issues);
        assert_int_equal(count, c->problem != NULL);
        if (!c->problem)
            continue;
        assert_non_null(strstr(issues[0].problem, c->problem));
        assert_true(strlen(issues[0].advice) > 0);
        assert_true(issues[0].warn == c->warn && issues[0].shape_list_crashes == c->crashes);
    }
    /* This driver has two issues. */
    const struct gpu_capabilities device = {
        .type = GPU_DISCRETE, .device_id = 0x73bf, .driver_id = VK_DRIVER_ID_AMD_PROPRIETARY};
    struct gpu_driver_issue issues[GPU_MAX_DRIVER_ISSUES];
    assert_int_equal(gpu_driver_issues(&device, issues), 2);
}

static PFN_vkGetPhysicalDeviceProperties get_properties;
static PFN_vkGetPhysicalDeviceProperties2 get_properties2;
static VkDriverId fake_driver;

static void fake_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties *properties)
{
    get_properties(device, properties);
    properties->driverVersion = VK_MAKE_VERSION(24, 0, 1);
}

static void fake_properties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *properties)
{
    get_properties2(device, properties);
    for (VkBaseOutStructure *next = properties->pNext; next; next = next->pNext)
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES)
            ((VkPhysicalDeviceVulkan12Properties *)next)->driverID = fake_driver;
}

/* Returns `vknerf info` and the log of a context under a driver of version 24.0.1; the caller frees
 * both. */
static char *info_of_driver(VkDriverId driver, char **log)
{
    VkInstance instance; /* keeps the replaced functions loaded */
    char *json;
    vkn_context *context;
    ok(gpu_instance_acquire(&instance));
    fake_driver = driver;
    get_properties = vkGetPhysicalDeviceProperties;
    get_properties2 = vkGetPhysicalDeviceProperties2;
    vkGetPhysicalDeviceProperties = fake_properties;
    vkGetPhysicalDeviceProperties2 = fake_properties2;
    ok(vkn_info_json(NULL, &json));
    struct capture capture = capture_begin();
    ok(vkn_context_create(NULL, &context));
    *log = capture_end(&capture);
    vkn_context_destroy(&context);
    vkGetPhysicalDeviceProperties = get_properties;
    vkGetPhysicalDeviceProperties2 = get_properties2;
    gpu_instance_release(instance);
    return json;
}

/* info lists every known issue; a context warns only about issues of its default settings. */
static void test_issue_is_named(void **state)
{
    (void)state;
    char *log, *info = info_of_driver(VK_DRIVER_ID_MESA_NVK, &log);
    assert_non_null(strstr(info, "\"known_problems\":"));
    assert_non_null(strstr(info, "is experimental before Mesa 24.1"));
    assert_non_null(strstr(info, "use NVIDIA's own driver"));
    assert_non_null(strstr(log, "warning: \""));
    assert_non_null(strstr(log,
                           " is experimental before Mesa 24.1: wrong results and hangs; update "
                           "Mesa, or use NVIDIA's own driver\n"));
    free(info);
    free(log);
    info = info_of_driver(VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, &log);
    assert_non_null(strstr(info, "before Mesa 24.3.1"));
    assert_string_equal(log, "");
    free(info);
    free(log);
    info = info_of_driver(VK_DRIVER_ID_MESA_RADV, &log);
    assert_null(strstr(info, "known_problems"));
    free(info);
    free(log);
}

/* On a driver that crashes while listing matrix shapes, matrices are off before that. */
static void test_issue_matrices(void **state)
{
    (void)state;
    struct gpu_support support = {
        .memory_model = true,
        .maintenance4 = true,
        .capabilities = {.type = GPU_INTEGRATED,
                         .driver_id = VK_DRIVER_ID_AMD_PROPRIETARY,
                         .subgroup_pinnable = true,
                         .cooperative_matrix = true},
    };
    gpu_read_matrix_shapes(VK_NULL_HANDLE, &support); /* would crash */
    assert_false(support.capabilities.cooperative_matrix);
}

static VkResult create_no_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                 const VkAllocationCallbacks *callbacks, VkDevice *device)
{
    (void)physical, (void)info, (void)callbacks, (void)device;
    return VK_INCOMPLETE;
}

/* VK_INCOMPLETE creates no device, but the device stays in the list, with the error. */
static void test_incomplete_device(void **state)
{
    (void)state;
    VkInstance instance;
    struct gpu_device *device;
    ok(gpu_instance_acquire(&instance));
    PFN_vkCreateDevice create = vkCreateDevice;
    vkCreateDevice = create_no_device;
    assert_int_equal(gpu_open(NULL, &device), VKN_ERROR);
    assert_message("vkCreateDevice gave VK_INCOMPLETE");
    char *info = NULL;
    assert_int_equal(vkn_info_json(NULL, &info), VKN_ERROR);
    vkCreateDevice = create;
    assert_message("vkCreateDevice gave VK_INCOMPLETE");
    assert_non_null(info);
    assert_non_null(strstr(info, "\"error\":"));
    assert_non_null(strstr(info, "vkCreateDevice gave VK_INCOMPLETE"));
    free(info);
    gpu_instance_release(instance);
}

static PFN_vkEnumerateDeviceExtensionProperties list_extensions;
static bool subset_enabled;

/* Appends VK_KHR_portability_subset to the driver's extensions. */
static VkResult list_subset(VkPhysicalDevice physical, const char *layer, uint32_t *count,
                            VkExtensionProperties *extensions)
{
    uint32_t capacity = *count;
    VkResult result = list_extensions(physical, layer, count, extensions);
    if (extensions && *count < capacity)
        extensions[*count] = (VkExtensionProperties){"VK_KHR_portability_subset", 1};
    ++*count;
    return result;
}

static VkResult look_for_subset(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                const VkAllocationCallbacks *callbacks, VkDevice *device)
{
    (void)physical, (void)callbacks, (void)device;
    subset_enabled = false;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
        if (strcmp(info->ppEnabledExtensionNames[i], "VK_KHR_portability_subset") == 0)
            subset_enabled = true;
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

static bool enables_subset(void)
{
    struct gpu_device *device;
    PFN_vkCreateDevice create = vkCreateDevice;
    vkCreateDevice = look_for_subset;
    assert_int_equal(gpu_open(NULL, &device), VKN_ERROR);
    vkCreateDevice = create;
    return subset_enabled;
}

/* Incomplete Vulkan implementations such as MoltenVK are listed only with the portability flag, and
 * need VK_KHR_portability_subset enabled. */
static void test_portability(void **state)
{
    (void)state;
    const char *original = getenv(driver_variables[0]);
    size_t count = 0, usual = 0;
    VkInstance instance;
    if (!original || strchr(original, ':'))
        skip_because("VK_DRIVER_FILES does not name one driver");
    ok(gpu_list(NULL, 0, &usual));
    char *path = write_driver_file(original), *text;
    size_t size;
    ok(base_file_read(path, 1 << 20, &text, &size));
    char *icd = strstr(text, "\"library_path\"");
    assert_non_null(icd);
    char *marked =
        base_format("%.*s\"is_portability_driver\": true, %s", (int)(icd - text), text, icd);
    ok(base_file_replace(path, marked, strlen(marked)));
    struct drivers drivers = drivers_set(path);
    vkn_status status = gpu_list(NULL, 0, &count);
    drivers_restore(&drivers);
    unlink(path);
    free(marked);
    free(text);
    free(path);
    ok(status);
    assert_int_equal(count, usual);

    ok(gpu_instance_acquire(&instance));
    assert_false(enables_subset());
    list_extensions = vkEnumerateDeviceExtensionProperties;
    vkEnumerateDeviceExtensionProperties = list_subset;
    assert_true(enables_subset());
    vkEnumerateDeviceExtensionProperties = list_extensions;
    gpu_instance_release(instance);
}

static void test_no_driver(void **state)
{
    (void)state;
    char *absent = base_path_join(cache_dir, "absent/driver.json");
    struct drivers drivers = drivers_set(absent);
    free(absent);
    size_t count = 1;
    struct gpu_device *device;
    assert_int_equal(gpu_list(NULL, 0, &count), VKN_NO_DEVICE);
    assert_int_equal(count, 0);
    assert_int_equal(gpu_open(NULL, &device), VKN_NO_DEVICE);
    assert_message("river");
    drivers_restore(&drivers);
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
    assert_false(capabilities->subgroup_pinnable || capabilities->packed_f16_atomics);
    assert_true(capabilities->timestamp_period == 0);
    assert_true(gpu_self_test_result(device)->subgroups);
    assert_true(gpu_memory_available(device) > 0);
    gpu_close(&device);

    log = log_of_open("VKNERF_DISABLE", "memory_model,flaot16", &status, &device);
    ok(status);
    assert_non_null(strstr(log, "flaot16"));
    assert_non_null(strstr(log, "float16")); /* all valid names: features and other switches */
    assert_non_null(strstr(log, "owned_sums"));
    assert_non_null(strstr(log, "cpu_kernels"));
    free(log);
    assert_false(gpu_device_capabilities(device)->cooperative_matrix);
    gpu_close(&device);
}

/* VKNERF_DISABLE=cpu_kernels gives CPU devices the kernels of GPUs. */
static void test_cpu_kernels(void **state)
{
    (void)state;
    struct gpu_capabilities device = {.type = GPU_CPU};
    assert_true(gpu_cpu_kernels(&device));
    setenv("VKNERF_DISABLE", "tuning,cpu_kernels", 1);
    assert_false(gpu_cpu_kernels(&device));
    unsetenv("VKNERF_DISABLE");
    device.type = GPU_DISCRETE;
    assert_false(gpu_cpu_kernels(&device));
}

/* Opens a device whose self-test finds `fault`, and checks the warning; NULL: there is none. */
static struct gpu_device *open_broken(const char *fault, const char *warning)
{
    struct gpu_device *device;
    vkn_status status;
    char *log = log_of_open("VKNERF_SELF_TEST_BREAK", fault, &status, &device);
    ok(status);
    assert_true(warning ? strstr(log, warning) != NULL : log[0] == 0);
    free(log);
    return device;
}

/* Each optional part of the self-test switches off what it tests. */
static void test_optional_parts(void **state)
{
    (void)state;
    struct gpu_device *device = open_device();
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    const struct gpu_self_test *result = gpu_self_test_result(device);
    bool has_float_atomics = capabilities->float_atomic_add;
    bool has_f16 = capabilities->float16 && capabilities->storage16;
    assert_true(result->subgroups && result->integer_atomics);
    assert_true(result->float_atomics == has_float_atomics);
    assert_true(result->cas_sums && capabilities->cas_sums);
    assert_true(result->f16_rounding == has_f16 && capabilities->f16_rounding == has_f16);
    if (capabilities->type == GPU_CPU)
        assert_true(result->f16_subnormals == has_f16 && capabilities->f16_subnormals == has_f16);
    gpu_close(&device);

    device =
        open_broken("float_atomics", has_float_atomics ? "float atomics are switched off" : NULL);
    assert_false(gpu_device_capabilities(device)->float_atomic_add);
    assert_false(gpu_self_test_result(device)->float_atomics);
    gpu_close(&device);

    device = open_broken("cas_sums", "(gradient_sums=cas) are switched off: the self-test's sum 1");
    assert_false(gpu_device_capabilities(device)->cas_sums);
    assert_false(gpu_self_test_result(device)->cas_sums);
    assert_true(gpu_device_capabilities(device)->float_atomic_add == has_float_atomics);
    gpu_close(&device);

    device = open_broken("f16_subnormals", NULL);
    assert_false(gpu_device_capabilities(device)->f16_subnormals);
    assert_true(gpu_device_capabilities(device)->f16_rounding == has_f16);
    gpu_close(&device);
    device = open_broken("f16_rounding", NULL);
    assert_false(gpu_device_capabilities(device)->f16_rounding);
    gpu_close(&device);
}

static PFN_vkCreateDevice driver_create_device;
static VkQueueGlobalPriorityKHR asked_priority; /* 0: none */

static VKAPI_ATTR VkResult VKAPI_CALL note_priority(VkPhysicalDevice physical,
                                                    const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *allocator,
                                                    VkDevice *device)
{
    const VkDeviceQueueGlobalPriorityCreateInfoKHR *priority = info->pQueueCreateInfos[0].pNext;
    asked_priority = (VkQueueGlobalPriorityKHR)0;
    if (priority &&
        priority->sType == VK_STRUCTURE_TYPE_DEVICE_QUEUE_GLOBAL_PRIORITY_CREATE_INFO_KHR)
        asked_priority = priority->globalPriority;
    return driver_create_device(physical, info, allocator, device);
}

/* The queue has a low priority if it is asked for and the device has priorities. */
static void test_low_priority(void **state)
{
    (void)state;
    struct gpu_device *first = open_device(), *device; /* `first` keeps the Vulkan functions */
    bool offered = first->support.global_priority_khr || first->support.global_priority_ext;
    driver_create_device = vkCreateDevice;
    vkCreateDevice = note_priority;
    for (int i = 0; i < 3; i++) {
        const struct gpu_options options = {.cache_dir = cache_dir, .low_priority = i > 0};
        struct capture capture = capture_begin();
        if (i == 2)
            setenv("VKNERF_DISABLE", "global_priority", 1);
        vkn_status status = gpu_open(&options, &device);
        unsetenv("VKNERF_DISABLE");
        char *log = capture_end(&capture);
        ok(status);
        gpu_close(&device);
        bool is_low = i == 1 && offered;
        assert_int_equal(asked_priority, is_low ? VK_QUEUE_GLOBAL_PRIORITY_LOW_KHR : 0);
        assert_true((strstr(log, "--low-priority has no effect") != NULL) == (i > 0 && !is_low));
        free(log);
    }
    vkCreateDevice = driver_create_device;
    gpu_close(&first);
}

static void test_self_test(void **state)
{
    (void)state;
    struct gpu_device *device = open_device();
    bool has_float_atomics = gpu_device_capabilities(device)->float_atomic_add;
    gpu_close(&device);
    vkn_status status;
    static const char *const fatal[] = {"subgroups", "integer_atomics"};
    for (size_t i = 0; i < BASE_COUNT(fatal); i++) {
        free(log_of_open("VKNERF_SELF_TEST_BREAK", fatal[i], &status, &device));
        assert_int_equal(status, VKN_NO_DEVICE);
        assert_null(device);
        assert_message("fails the self-test");
    }

    /* A disabled self-test cannot fail. */
    setenv("VKNERF_SELF_TEST_BREAK", "subgroups,integer_atomics,float_atomics,cas_sums", 1);
    free(log_of_open("VKNERF_DISABLE", "self_test", &status, &device));
    unsetenv("VKNERF_SELF_TEST_BREAK");
    ok(status);
    assert_true(gpu_self_test_result(device)->subgroups);
    assert_true(gpu_device_capabilities(device)->float_atomic_add == has_float_atomics);
    assert_true(gpu_device_capabilities(device)->cas_sums);
    gpu_close(&device);
}

/* Counts the device's f16 shapes of these dimensions. */
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

/* Correct shapes pass silently; a broken shape is removed for the broken accumulator type only. */
static void test_matrices(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {
        {8, 8, 8}, {8, 8, 16}, {8, 16, 16}, {16, 8, 16}, {16, 16, 16}};
    struct gpu_device *device = open_device();
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    /* lavapipe has matrices for subgroups of 8. */
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

    /* Corrupt, truncated or empty cache files are ignored and replaced. */
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

    /* An impossible cache folder is no error. */
    struct gpu_options options = {.cache_dir = "/dev/null/cache"};
    ok(gpu_open(&options, &device));
    base_fail(VKN_INTERRUPTED, "interrupted at step 7");
    gpu_close(&device);
    assert_string_equal(vkn_last_error(), "interrupted at step 7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),           cmocka_unit_test(test_choice),
        cmocka_unit_test(test_portability),    cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_kill_switches),  cmocka_unit_test(test_cpu_kernels),
        cmocka_unit_test(test_optional_parts), cmocka_unit_test(test_self_test),
        cmocka_unit_test(test_low_priority),   cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_cache),          cmocka_unit_test(test_next_device),
        cmocka_unit_test(test_driver_issues),  cmocka_unit_test(test_incomplete_device),
        cmocka_unit_test(test_issue_matrices), cmocka_unit_test(test_issue_is_named),
        cmocka_unit_test(test_no_messages),
    };
    if (!prepare_tests())
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    clean_up_tests();
    return failed;
}
