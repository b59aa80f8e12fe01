/* Tests subgroup sizes: what devices report, what shaders get, and how pipelines require a size. */
#include "gpu_fixture.h"
#include "gpu/internal.h"

/* ---- what devices offer ---------------------------------------------------------------------- */

static struct offer {
    const char *what;
    uint32_t vendor, own, least, most;
    bool required; /* pipelines can require a size */
    uint32_t size, min, max;
    bool pinnable;
} offered;

static PFN_vkGetPhysicalDeviceProperties real_properties;
static PFN_vkGetPhysicalDeviceProperties2 real_properties2;

static VKAPI_ATTR void VKAPI_CALL feign_properties(VkPhysicalDevice physical,
                                                   VkPhysicalDeviceProperties *properties)
{
    real_properties(physical, properties);
    properties->vendorID = offered.vendor;
}

static VKAPI_ATTR void VKAPI_CALL feign_properties2(VkPhysicalDevice physical,
                                                    VkPhysicalDeviceProperties2 *properties)
{
    real_properties2(physical, properties);
    for (VkBaseOutStructure *next = properties->pNext; next; next = next->pNext) {
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES)
            ((VkPhysicalDeviceVulkan11Properties *)next)->subgroupSize = offered.own;
        /* lavapipe's matrices need its own subgroup size. */
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES)
            ((VkPhysicalDeviceVulkan12Properties *)next)->driverID = VK_DRIVER_ID_MESA_RADV;
        if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT) {
            VkPhysicalDeviceSubgroupSizeControlPropertiesEXT *control = (void *)next;
            control->minSubgroupSize = offered.least;
            control->maxSubgroupSize = offered.most;
            control->maxComputeWorkgroupSubgroups = 16;
            control->requiredSubgroupSizeStages = offered.required ? VK_SHADER_STAGE_ALL : 0;
        }
    }
}

static void test_offers(void **state)
{
    const struct gpu_device *device = *state;
    static const struct offer offers[] = {
        {"RDNA", 0x1002, 64, 32, 64, true, 64, 32, 64, true},
        {"Vega", 0x1002, 64, 64, 64, false, 64, 64, 64, true},
        {"NVK", 0x10de, 32, 32, 32, false, 32, 32, 32, true},
        {"NVIDIA", 0x10de, 32, 32, 32, true, 32, 32, 32, true},
        {"Intel", 0x8086, 32, 8, 32, true, 16, 8, 32, true},
        {"Intel, Xe2", 0x8086, 32, 16, 32, true, 16, 16, 32, true},
        {"Intel with one size", 0x8086, 32, 32, 32, true, 32, 32, 32, true},
        {"another that cannot be asked", 0x5143, 64, 32, 128, false, 64, 64, 64, false},
    };
    bool matrices = gpu_device_capabilities(device)->cooperative_matrix;
    for (size_t i = 0; i < BASE_COUNT(offers); i++) {
        struct gpu_support support;
        offered = offers[i];
        real_properties = vkGetPhysicalDeviceProperties;
        real_properties2 = vkGetPhysicalDeviceProperties2;
        vkGetPhysicalDeviceProperties = feign_properties;
        vkGetPhysicalDeviceProperties2 = feign_properties2;
        vkn_status status = gpu_support_read(device->physical, false, &support, NULL);
        vkGetPhysicalDeviceProperties = real_properties;
        vkGetPhysicalDeviceProperties2 = real_properties2;
        ok(status);
        const struct gpu_capabilities *c = &support.capabilities;
        if (c->subgroup_size != offered.size || c->subgroup_min != offered.min ||
            c->subgroup_max != offered.max || c->subgroup_pinnable != offered.pinnable ||
            support.subgroup_required != offered.required ||
            c->cooperative_matrix != (matrices && offered.pinnable) ||
            c->max_subgroups != (offered.required ? 16 : 0) ||
            gpu_largest_workgroup(c, 8) > (offered.required ? 128 : c->max_workgroup_size))
            fail_msg("%s: size %u of %u to %u, pinnable %d, required %d, matrices %d, workgroups "
                     "of up to %u subgroups",
                     offered.what, c->subgroup_size, c->subgroup_min, c->subgroup_max,
                     c->subgroup_pinnable, support.subgroup_required, c->cooperative_matrix,
                     c->max_subgroups);
    }
}

/* ---- what pipelines require ------------------------------------------------------------------ */

static uint32_t required_size, constant; /* 0: no size required */
static bool full;

static VKAPI_ATTR VkResult VKAPI_CALL create_none(VkDevice device, VkPipelineCache cache,
                                                  uint32_t count,
                                                  const VkComputePipelineCreateInfo *infos,
                                                  const VkAllocationCallbacks *allocator,
                                                  VkPipeline *pipelines)
{
    (void)device, (void)cache, (void)count, (void)allocator, (void)pipelines;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT *size = infos->stage.pNext;
    required_size = size ? size->requiredSubgroupSize : 0;
    full = infos->stage.flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    constant = ((const uint32_t *)infos->stage.pSpecializationInfo->pData)[GPU_SUBGROUP_SIZE];
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_no_shader(VkDevice device, uint32_t count,
                                                       const VkShaderCreateInfoEXT *infos,
                                                       const VkAllocationCallbacks *allocator,
                                                       VkShaderEXT *shaders)
{
    (void)device, (void)count, (void)allocator, (void)shaders;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT *size = infos->pNext;
    required_size = size ? size->requiredSubgroupSize : 0;
    full = infos->flags & VK_SHADER_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    constant = ((const uint32_t *)infos->pSpecializationInfo->pData)[GPU_SUBGROUP_SIZE];
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* Returns true if a pipeline, or a shader object, was requested from the driver. */
static bool requests(struct gpu_device *device, uint32_t size, uint32_t local_size)
{
    struct gpu_pipeline_options options = {
        .name = "gpu_test", .local_size = local_size, .subgroup_size = size};
    struct gpu_pipeline *pipeline;
    required_size = constant = UINT32_MAX;
    assert_int_not_equal(gpu_pipeline_create(device, &options, &pipeline), VKN_OK);
    assert_null(pipeline);
    return constant != UINT32_MAX;
}

static void check_requests(struct gpu_device *device, bool shader_objects)
{
    struct gpu_support real = device->support;
    PFN_vkCreateShadersEXT create_shaders = device->vk.vkCreateShadersEXT;
    device->vk.vkCreateShadersEXT = create_no_shader;
    device->support.shader_objects = shader_objects;
    PFN_vkCreateComputePipelines create = device->vk.vkCreateComputePipelines;
    device->vk.vkCreateComputePipelines = create_none;
    device->support.subgroup_required = device->support.capabilities.subgroup_pinnable = true;
    device->support.capabilities.subgroup_size = 32;
    device->support.capabilities.subgroup_min = 16;
    device->support.capabilities.subgroup_max = 64;
    device->support.capabilities.max_subgroups = 4;

    static const uint32_t sizes[] = {0, 16, 32, 64};
    for (size_t i = 0; i < BASE_COUNT(sizes); i++) {
        uint32_t size = sizes[i] ? sizes[i] : 32;
        assert_true(requests(device, sizes[i], 2 * size));
        assert_int_equal(required_size, size);
        assert_int_equal(constant, size);
        assert_true(full);
        /* The device's limit is a number of subgroups. */
        assert_true(requests(device, sizes[i], 4 * size));
        assert_false(requests(device, sizes[i], 5 * size));
        assert_message("gpu_test");
    }
    assert_false(requests(device, 8, 64) || requests(device, 48, 48) || requests(device, 128, 128));
    assert_message("has 16 to 64");
    assert_false(requests(device, 64, 32));

    /* A device with one size that cannot be required: full subgroups are enough. */
    device->support.subgroup_required = false;
    device->support.capabilities.subgroup_min = device->support.capabilities.subgroup_max = 32;
    assert_true(requests(device, 0, 64) && requests(device, 32, 64));
    assert_true(required_size == 0 && constant == 32 && full);
    assert_false(requests(device, 16, 64) || requests(device, 64, 64));
    /* If the size is unknown, full subgroups cannot be required. */
    device->support.capabilities.subgroup_pinnable = false;
    assert_true(requests(device, 0, 64) && required_size == 0 && constant == 32 && !full);

    device->vk.vkCreateComputePipelines = create;
    device->vk.vkCreateShadersEXT = create_shaders;
    device->support = real;
}

static void test_pipelines(void **state)
{
    check_requests(*state, false);
}

static void test_shader_objects(void **state)
{
    check_requests(*state, true);
}

/* Requests for different subgroup sizes get different pipelines. */
static void test_distinct(void **state)
{
    struct gpu_device *device = *state;
    uint32_t size = gpu_device_capabilities(device)->subgroup_size;
    struct gpu_capabilities *capabilities = &device->support.capabilities;
    struct gpu_pipeline_options options = {.name = "gpu_test", .local_size = 2 * size};
    struct gpu_pipeline *pipelines[3];
    ok(gpu_pipeline_create(device, &options, &pipelines[0]));
    options.subgroup_size = size;
    ok(gpu_pipeline_create(device, &options, &pipelines[1]));
    assert_ptr_equal(pipelines[0], pipelines[1]);
    assert_int_equal(gpu_pipeline_subgroup_size(pipelines[1]), size);

    /* A device with a larger subgroup; the driver lacks this size, so no size is required. */
    struct gpu_support real = device->support;
    device->support.subgroup_required = false;
    capabilities->subgroup_max = 2 * size;
    options.subgroup_size = 2 * size;
    ok(gpu_pipeline_create(device, &options, &pipelines[2]));
    device->support = real;
    assert_ptr_not_equal(pipelines[0], pipelines[2]);
    assert_int_equal(gpu_pipeline_subgroup_size(pipelines[2]), 2 * size);
    for (size_t i = 0; i < BASE_COUNT(pipelines); i++)
        gpu_pipeline_destroy(&pipelines[i]);
}

int main(void)
{
    if (!prepare_tests())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_offers),         cmocka_unit_test(test_pipelines),
        cmocka_unit_test(test_shader_objects), cmocka_unit_test(test_distinct),
        cmocka_unit_test(test_no_messages),
    };
    int failed = cmocka_run_group_tests(tests, open_shared, close_shared);
    clean_up_tests();
    return failed;
}
