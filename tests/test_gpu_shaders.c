/* Tests shader objects: their binaries are cached on disk and used only for the pipeline that they
 * belong to. */
#include "gpu_fixture.h"

#include <sys/stat.h>

#include "gpu/internal.h"
#include "skips.h"

static PFN_vkCreateShadersEXT driver_create;
static uint32_t from_spirv, from_binary; /* calls of vkCreateShadersEXT */
static bool refuses_binaries;            /* the driver refuses binaries */
static uint32_t unused_constant;

static VKAPI_ATTR VkResult VKAPI_CALL create_counted(VkDevice device, uint32_t count,
                                                     const VkShaderCreateInfoEXT *infos,
                                                     const VkAllocationCallbacks *allocator,
                                                     VkShaderEXT *shaders)
{
    bool binary = infos->codeType == VK_SHADER_CODE_TYPE_BINARY_EXT;
    *(binary ? &from_binary : &from_spirv) += 1;
    if (binary && refuses_binaries)
        return VK_INCOMPATIBLE_SHADER_BINARY_EXT;
    return driver_create(device, count, infos, allocator, shaders);
}

/* Opens a device without pipelines, as another process would. */
static struct gpu_device *open_counted(void)
{
    struct gpu_device *device = open_device();
    driver_create = device->vk.vkCreateShadersEXT;
    device->vk.vkCreateShadersEXT = create_counted;
    from_spirv = from_binary = 0;
    return device;
}

#define SKIP_WITHOUT_SHADER_OBJECTS(device) \
    if (!(device)->support.shader_objects)  \
    skip_because("no VK_EXT_shader_object on a CPU device")

static struct gpu_pipeline *create_named(struct gpu_device *device, const char *name,
                                         uint32_t factor)
{
    /* The shader does not read the last constant. */
    struct gpu_constants constants = {.values = {[2] = factor, [4] = unused_constant}, .count = 5};
    struct gpu_pipeline_options options = {
        .name = name,
        .local_size = gpu_device_capabilities(device)->subgroup_size,
        .constants = &constants,
    };
    struct gpu_pipeline *pipeline;
    ok(gpu_pipeline_create(device, &options, &pipeline));
    return pipeline;
}

static struct gpu_pipeline *create(struct gpu_device *device, uint32_t factor)
{
    return create_named(device, "gpu_test", factor);
}

/* Returns what the pipeline computes from 1 with push constants of zero: `factor`. */
static uint32_t result_of(struct gpu_device *device, struct gpu_pipeline *pipeline)
{
    struct gpu_buffer from, to, facts;
    struct gpu_buffer_request requests[] = {
        {&from, "from", 4, GPU_HOST}, {&to, "to", 4, GPU_HOST}, {&facts, "facts", 12, GPU_HOST}};
    struct gpu_arena *arena;
    struct gpu_bindings *bindings;
    struct gpu_recording *recording;
    const uint32_t count = 1;
    ok(gpu_arena_create(device, requests, BASE_COUNT(requests), &arena));
    *(uint32_t *)from.mapped = 1;
    const struct gpu_buffer *buffers[GPU_BINDINGS] = {
        [0] = &from, [5] = &facts, [GPU_SET_BINDINGS + 8] = &to};
    ok(gpu_bindings_create(device, buffers, &bindings));
    ok(gpu_record_begin(device, "test", 0, &recording));
    gpu_record_dispatch(recording, pipeline, bindings, &count, sizeof count, 1);
    ok(gpu_run_once(&recording));
    uint32_t result = *(const uint32_t *)to.mapped;
    gpu_bindings_destroy(&bindings);
    gpu_arena_destroy(&arena);
    return result;
}

/* Creates the pipeline of `factor` on a fresh device, and checks its result and whether it was
 * created from SPIR-V or a binary. */
static void expect(uint32_t factor, uint32_t spirv, uint32_t binary)
{
    struct gpu_device *device = open_counted();
    struct gpu_pipeline *pipeline = create(device, factor);
    assert_int_equal(result_of(device, pipeline), factor);
    if (from_spirv != spirv || from_binary != binary)
        fail_msg("factor %u: %u from SPIR-V, %u from a binary", factor, from_spirv, from_binary);
    gpu_pipeline_destroy(&pipeline);
    gpu_close(&device);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Lists at most `most` paths of binaries, which the caller frees. Returns the number of files. */
static size_t binary_files(char **paths, size_t most)
{
    char *folder = shader_folder();
    size_t count = 0;
    DIR *opened = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; opened && (entry = readdir(opened));)
        if (entry->d_name[0] != '.') {
            if (count < most)
                paths[count] = base_path_join(folder, entry->d_name);
            count++;
        }
    if (opened)
        closedir(opened);
    free(folder);
    return count;
}

static size_t count_files(void)
{
    return binary_files(NULL, 0);
}

static void read_file(const char *path, char **data, size_t *size)
{
    ok(base_file_read(path, (size_t)1 << 20, data, size));
}

/* Returns the path of the file that the pipeline of `factor` adds; the caller frees it. */
static char *file_of(uint32_t factor)
{
    char *before[64], *after[64], *found = NULL;
    size_t old = binary_files(before, BASE_COUNT(before));
    expect(factor, 1, 0);
    size_t count = binary_files(after, BASE_COUNT(after));
    assert_true(count == old + 1 && count <= BASE_COUNT(after));
    for (size_t i = 0; i < count; i++) {
        bool known = false;
        for (size_t k = 0; k < old; k++)
            known = known || strcmp(after[i], before[k]) == 0;
        if (!known)
            found = base_format("%s", after[i]);
    }
    for (size_t i = 0; i < old; i++)
        free(before[i]);
    for (size_t i = 0; i < count; i++)
        free(after[i]);
    assert_non_null(found);
    return found;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_kept(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    size_t before = count_files();
    expect(11, 1, 0);
    assert_int_equal(count_files(), before + 1);
    expect(11, 0, 1);
    /* Another constant needs another binary. */
    expect(12, 1, 0);
    expect(11, 0, 1);
    expect(12, 0, 1);
    assert_int_equal(count_files(), before + 2);
    /* A constant that the shader does not read does not matter. */
    unused_constant = 7;
    expect(12, 0, 1);
    unused_constant = 0;
}

/* Another shader with the same constants needs another binary. */
static void test_other_code(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    static const char *const names[] = {"gpu_self_test_float", "gpu_atomics"};
    for (size_t i = 0; i < 2 * BASE_COUNT(names); i++) {
        struct gpu_device *device = open_counted();
        struct gpu_pipeline *pipeline = create_named(device, names[i % 2], 0);
        assert_int_equal(from_spirv, i < BASE_COUNT(names));
        gpu_pipeline_destroy(&pipeline);
        gpu_close(&device);
    }
}

/* Every corruption is detected before the driver gets the binary, and the file is replaced. */
static void test_damaged(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    char *path = file_of(21), *data;
    size_t size;
    read_file(path, &data, &size);
    static const struct {
        size_t keep, flip; /* bytes kept; byte changed, the last if out of range */
    } damages[] = {{0, 0},         {10, 0},        {24, 0},
                   {100, 1},       {SIZE_MAX, 0},  {SIZE_MAX, 9},
                   {SIZE_MAX, 17}, {SIZE_MAX, 60}, {SIZE_MAX, SIZE_MAX}};
    for (size_t i = 0; i < BASE_COUNT(damages); i++) {
        size_t keep = damages[i].keep < size ? damages[i].keep : size;
        size_t flip = damages[i].flip < size ? damages[i].flip : size - 1;
        char kept = data[flip];
        data[flip] ^= 1;
        ok(base_file_replace(path, data, keep));
        data[flip] = kept;
        expect(21, 1, 0);
        expect(21, 0, 1);
    }
    free(data);
    free(path);
}

/* Pipes instead of files are neither read nor written, which would block. */
static void test_pipes(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    char *paths[] = {file_of(22), gpu_cache_path(*state, "pipelines", "bin")};
    alarm(60);
    for (size_t i = 0; i < BASE_COUNT(paths); i++) {
        assert_non_null(paths[i]);
        unlink(paths[i]);
        assert_int_equal(mkfifo(paths[i], 0600), 0);
    }
    expect(22, 1, 0);
    expect(22, 1, 0);
    alarm(0);
    for (size_t i = 0; i < BASE_COUNT(paths); i++) {
        assert_int_equal(unlink(paths[i]), 0);
        free(paths[i]);
    }
    expect(22, 1, 0);
    expect(22, 0, 1);
}

/* A valid file of another pipeline, as after a collision of keys. */
static void test_other_pipeline(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    char *path = file_of(31), *other = file_of(32), *data;
    size_t size;
    read_file(other, &data, &size);
    ok(base_file_replace(path, data, size));
    expect(31, 1, 0);
    expect(31, 0, 1);
    expect(32, 0, 1);
    free(data);
    free(path);
    free(other);
}

/* Another driver, or the same driver with another vector width, with the same version number. */
static void test_other_driver(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    expect(41, 1, 0);
    for (int i = 0; i < 2; i++) {
        struct gpu_device *device = open_counted();
        struct gpu_capabilities *capabilities = &device->support.capabilities;
        strcat(i == 0 ? capabilities->name : capabilities->driver, "+");
        struct gpu_pipeline *pipeline = create(device, 41);
        assert_true(from_spirv == 1 && from_binary == 0);
        gpu_pipeline_destroy(&pipeline);
        gpu_close(&device);
    }
    expect(41, 0, 1);
}

static void test_refused(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    expect(51, 1, 0);
    refuses_binaries = true;
    expect(51, 1, 1);
    refuses_binaries = false;
    expect(51, 0, 1);
}

/* A driver's error is the pipeline's error, and no file is written. */
static VKAPI_ATTR VkResult VKAPI_CALL create_none(VkDevice device, uint32_t count,
                                                  const VkShaderCreateInfoEXT *infos,
                                                  const VkAllocationCallbacks *allocator,
                                                  VkShaderEXT *shaders)
{
    (void)device, (void)count, (void)infos, (void)allocator, (void)shaders;
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

static void test_errors(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    struct gpu_device *device = open_counted();
    struct gpu_pipeline_options options = {.name = "gpu_test", .local_size = 64};
    struct gpu_pipeline *pipeline;
    size_t before = count_files();
    device->vk.vkCreateShadersEXT = create_none;
    assert_int_not_equal(gpu_pipeline_create(device, &options, &pipeline), VKN_OK);
    assert_message("gpu_test: vkCreateShadersEXT");
    assert_null(pipeline);
    assert_int_equal(count_files(), before);
    gpu_close(&device);
}

/* Without a cache folder pipelines work without files. */
static void test_no_folder(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    struct gpu_options options = {.cache_dir = "/dev/null/cache"};
    for (int i = 0; i < 2; i++) {
        struct gpu_device *device;
        size_t before = count_files();
        if (i == 1)
            setenv("VKNERF_DISABLE", "pipeline_cache", 1);
        ok(gpu_open(i == 0 ? &options : NULL, &device));
        unsetenv("VKNERF_DISABLE");
        struct gpu_pipeline *pipeline = create(device, 61);
        assert_int_equal(result_of(device, pipeline), 61);
        gpu_pipeline_destroy(&pipeline);
        gpu_close(&device);
        assert_int_equal(count_files(), before);
    }
}

static PFN_vkGetPhysicalDeviceProperties driver_properties;

static VKAPI_ATTR void VKAPI_CALL fake_gpu(VkPhysicalDevice physical,
                                           VkPhysicalDeviceProperties *properties)
{
    driver_properties(physical, properties);
    properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

/* GPUs, statistics and VKNERF_DISABLE=shader_objects use pipelines instead of shader objects. */
static void test_pipelines(void **state)
{
    SKIP_WITHOUT_SHADER_OBJECTS((struct gpu_device *)*state);
    struct gpu_options options = {.cache_dir = cache_dir};
    for (int i = 0; i < 3; i++) {
        struct gpu_device *device;
        options.statistics = i == 1;
        if (i == 2)
            setenv("VKNERF_DISABLE", "shader_objects", 1);
        ok(gpu_open(&options, &device));
        unsetenv("VKNERF_DISABLE");
        assert_true(device->support.shader_objects == (i == 0));
        struct gpu_pipeline *pipeline = create(device, 71);
        struct gpu_executable executable = gpu_pipeline_executable(pipeline);
        assert_true((executable.shader != VK_NULL_HANDLE) == (i == 0));
        assert_true((executable.pipeline != VK_NULL_HANDLE) == (i > 0));
        assert_int_equal(result_of(device, pipeline), 71);
        gpu_pipeline_destroy(&pipeline);
        gpu_close(&device);
    }
    PFN_vkGetPhysicalDeviceProperties real = vkGetPhysicalDeviceProperties;
    struct gpu_device *device = *state;
    struct gpu_support support;
    driver_properties = real;
    vkGetPhysicalDeviceProperties = fake_gpu;
    vkn_status status = gpu_support_read(device->physical, false, &support, NULL);
    vkGetPhysicalDeviceProperties = real;
    ok(status);
    assert_false(support.shader_objects);
}

int main(void)
{
    if (!prepare_tests())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),           cmocka_unit_test(test_other_code),
        cmocka_unit_test(test_damaged),        cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_other_pipeline), cmocka_unit_test(test_other_driver),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_no_folder),      cmocka_unit_test(test_pipelines),
        cmocka_unit_test(test_no_messages),
    };
    int failed = cmocka_run_group_tests(tests, open_shared, close_shared);
    clean_up_tests();
    return failed;
}
