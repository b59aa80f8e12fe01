/* Reads what a device offers: properties, limits and the queue family to use. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

const char *const gpu_device_type_names[] = {
    [GPU_OTHER] = "other",       [GPU_INTEGRATED] = "integrated",
    [GPU_DISCRETE] = "discrete", [GPU_VIRTUAL] = "virtual",
    [GPU_CPU] = "cpu",
};

/* ---- properties and limits ------------------------------------------------------------------- */

static enum gpu_device_type type_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return GPU_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return GPU_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return GPU_VIRTUAL;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return GPU_CPU;
    default:
        return GPU_OTHER;
    }
}

#define NEEDED_SUBGROUP_OPERATIONS                                                                \
    ((VkSubgroupFeatureFlags)VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | \
     VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT |                           \
     VK_SUBGROUP_FEATURE_VOTE_BIT)

struct properties {
    VkPhysicalDeviceProperties2 base;
    VkPhysicalDeviceVulkan11Properties vulkan11;
    VkPhysicalDeviceVulkan12Properties vulkan12;
    VkPhysicalDeviceSubgroupSizeControlPropertiesEXT subgroup_size;
    VkPhysicalDeviceCooperativeMatrixPropertiesKHR matrix;
};

static void read_properties(VkPhysicalDevice physical, const struct gpu_support *support,
                            struct properties *properties)
{
    *properties = (struct properties){0};
    properties->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties->base.pNext = &properties->vulkan11;
    properties->vulkan11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    properties->vulkan11.pNext = &properties->vulkan12;
    properties->vulkan12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    if (support->capabilities.subgroup_pinnable) {
        properties->subgroup_size.sType =
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT;
        properties->subgroup_size.pNext = properties->vulkan12.pNext;
        properties->vulkan12.pNext = &properties->subgroup_size;
    }
    if (support->capabilities.cooperative_matrix) {
        properties->matrix.sType =
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
        properties->matrix.pNext = properties->vulkan12.pNext;
        properties->vulkan12.pNext = &properties->matrix;
    }
    vkGetPhysicalDeviceProperties2(physical, &properties->base);
}

/* Subgroup sizes of pipelines that request none, on devices with several sizes. On Intel, every
 * doubling of the subgroup halves the registers per invocation, which then spill. Qualcomm's
 * default of 128 is more than the workgroups of most passes. */
static const struct {
    uint32_t vendor, size;
} preferred_subgroups[] = {
    {GPU_VENDOR_AMD, 64},
    {GPU_VENDOR_INTEL, 16},
    {GPU_VENDOR_NVIDIA, 32},
    {GPU_VENDOR_QUALCOMM, 64},
};

static void read_subgroups(const struct properties *properties, struct gpu_support *support)
{
    struct gpu_capabilities *capabilities = &support->capabilities;
    const VkPhysicalDeviceSubgroupSizeControlPropertiesEXT *size = &properties->subgroup_size;
    uint32_t default_size = properties->vulkan11.subgroupSize;
    bool has_control = capabilities->subgroup_pinnable && default_size >= size->minSubgroupSize &&
                       default_size <= size->maxSubgroupSize;
    capabilities->subgroup_size = capabilities->subgroup_min = capabilities->subgroup_max =
        default_size;
    support->subgroup_required =
        has_control && (size->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
    /* A device with a single size needs no request (NVK, RADV before RDNA). */
    capabilities->subgroup_pinnable =
        support->subgroup_required ||
        (has_control && size->minSubgroupSize == size->maxSubgroupSize);
    if (support->subgroup_required) {
        capabilities->subgroup_min = size->minSubgroupSize;
        capabilities->subgroup_max = size->maxSubgroupSize;
        support->capabilities.max_subgroups = size->maxComputeWorkgroupSubgroups;
    }
    for (size_t i = 0; i < BASE_COUNT(preferred_subgroups); i++)
        if (preferred_subgroups[i].vendor == capabilities->vendor_id &&
            preferred_subgroups[i].size >= capabilities->subgroup_min &&
            preferred_subgroups[i].size <= capabilities->subgroup_max)
            capabilities->subgroup_size = preferred_subgroups[i].size;
}

uint32_t gpu_largest_workgroup(const struct gpu_capabilities *device, uint32_t subgroup_size)
{
    uint32_t most = device->max_workgroup_size;
    uint64_t subgroup_limit = (uint64_t)subgroup_size * device->max_subgroups;
    return subgroup_limit && subgroup_limit < most ? (uint32_t)subgroup_limit : most;
}

static void read_memory(VkPhysicalDevice physical, struct gpu_capabilities *capabilities)
{
    VkPhysicalDeviceMemoryProperties memory;
    vkGetPhysicalDeviceMemoryProperties(physical, &memory);
    for (uint32_t i = 0; i < memory.memoryHeapCount; i++)
        if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) &&
            memory.memoryHeaps[i].size > capabilities->device_memory)
            capabilities->device_memory = memory.memoryHeaps[i].size;
}

static void read_limits(const struct properties *properties, struct gpu_support *support)
{
    struct gpu_capabilities *capabilities = &support->capabilities;
    const VkPhysicalDeviceLimits *limits = &properties->base.properties.limits;
    support->limits = *limits;
    support->max_allocation = properties->vulkan11.maxMemoryAllocationSize;
    capabilities->max_workgroup_size = limits->maxComputeWorkGroupInvocations;
    if (limits->maxComputeWorkGroupSize[0] < capabilities->max_workgroup_size)
        capabilities->max_workgroup_size = limits->maxComputeWorkGroupSize[0];
    capabilities->max_groups = limits->maxComputeWorkGroupCount[0];
    capabilities->max_shared_memory = limits->maxComputeSharedMemorySize;
    capabilities->max_buffer_range = limits->maxStorageBufferRange;
    capabilities->timestamp_period = limits->timestampPeriod;
}

/* Selects the queue family: preferably with timestamps, and without graphics, so that a desktop
 * does not wait for long training steps. */
static bool read_queues(VkPhysicalDevice physical, struct gpu_support *support)
{
    VkQueueFamilyProperties families[64];
    uint32_t count = BASE_COUNT(families);
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    int best = -1;
    for (uint32_t i = 0; i < count; i++) {
        if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT))
            continue;
        int score = (families[i].timestampValidBits ? 2 : 0) +
                    (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT ? 0 : 1);
        if (score > best) {
            best = score;
            support->queue_family = i;
            support->timestamp_bits = families[i].timestampValidBits;
        }
    }
    return best >= 0;
}

/* Returns the widths of floats for which a module has to set an execution mode to have it for f16;
 * 0: the device does not offer the mode. `independence`: whether f16 may differ from f32. */
static uint32_t control_widths(VkShaderFloatControlsIndependence independence, VkBool32 f16,
                               VkBool32 f32)
{
    bool is_independent = independence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
    if (gpu_disabled("float_controls") || !f16 || (!is_independent && !f32))
        return 0;
    return is_independent ? 16u : 16u | 32u;
}

static void read_float_controls(const VkPhysicalDeviceVulkan12Properties *properties,
                                struct gpu_support *support)
{
    support->denorm_preserve = control_widths(properties->denormBehaviorIndependence,
                                              properties->shaderDenormPreserveFloat16,
                                              properties->shaderDenormPreserveFloat32);
    support->round_to_even = control_widths(properties->roundingModeIndependence,
                                            properties->shaderRoundingModeRTEFloat16,
                                            properties->shaderRoundingModeRTEFloat32);
}

static const char *why_unusable(const struct gpu_support *support, bool has_queue,
                                VkSubgroupFeatureFlags operations)
{
    if (support->capabilities.api_version < VK_API_VERSION_1_2)
        return "it offers only a Vulkan older than 1.2; a newer driver may help";
    if (!has_queue)
        return "it has no compute queue";
    if ((operations & NEEDED_SUBGROUP_OPERATIONS) != NEEDED_SUBGROUP_OPERATIONS)
        return "its subgroups lack arithmetic, ballot, shuffle or vote operations";
    if (support->capabilities.subgroup_size > 0 && support->capabilities.subgroup_size < 8)
        return "its subgroups have fewer than 8 invocations, the least that the MLP shaders "
               "support";
    if (support->limits.maxPerStageDescriptorStorageBuffers < GPU_BINDINGS ||
        support->limits.maxDescriptorSetStorageBuffers < GPU_BINDINGS ||
        support->limits.maxBoundDescriptorSets < GPU_SETS)
        return "it lets a shader see too few storage buffers (vknerf needs 30)";
    return NULL;
}
_Static_assert(GPU_BINDINGS == 30, "the message above names the number");

static vkn_status read_support(VkPhysicalDevice physical, bool statistics,
                               struct gpu_extensions *extensions, struct gpu_support *support,
                               struct gpu_features *features)
{
    struct gpu_capabilities *capabilities = &support->capabilities;
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical, &properties);
    snprintf(capabilities->name, sizeof capabilities->name, "%s", properties.deviceName);
    capabilities->type = type_of(properties.deviceType);
    capabilities->vendor_id = properties.vendorID;
    capabilities->device_id = properties.deviceID;
    capabilities->driver_version = properties.driverVersion;
    memcpy(capabilities->pipeline_cache_uuid, properties.pipelineCacheUUID, VK_UUID_SIZE);
    capabilities->api_version = properties.apiVersion;
    if (capabilities->api_version > gpu_instance_version())
        capabilities->api_version = gpu_instance_version();
    read_memory(physical, capabilities);
    bool has_queue = read_queues(physical, support);
    support->limits = properties.limits;
    capabilities->unusable = why_unusable(support, has_queue, NEEDED_SUBGROUP_OPERATIONS);
    if (capabilities->unusable)
        return VKN_OK;

    BASE_TRY(gpu_extensions_read(physical, capabilities->name, extensions));
    gpu_features_read(physical, extensions, support);
    support->pipeline_statistics = support->pipeline_statistics && statistics;
    /* Shader objects need dynamic rendering, which is in Vulkan 1.3; statistics exist for pipelines
     * only. */
    support->shader_objects = support->shader_objects && capabilities->type == GPU_CPU &&
                              capabilities->api_version >= VK_API_VERSION_1_3 && !statistics;
    struct properties all;
    read_properties(physical, support, &all);
    snprintf(capabilities->driver, sizeof capabilities->driver, "%.120s %.120s",
             all.vulkan12.driverName, all.vulkan12.driverInfo);
    capabilities->driver_id = (uint32_t)all.vulkan12.driverID;
    capabilities->has_nvidia_driver = all.vulkan12.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
    read_limits(&all, support);
    if (!support->timestamp_bits || gpu_disabled("timestamps"))
        capabilities->timestamp_period = 0;
    read_subgroups(&all, support);
    read_float_controls(&all.vulkan12, support);
    capabilities->unusable =
        why_unusable(support, has_queue, all.vulkan11.subgroupSupportedOperations);
    if (!(all.matrix.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
        capabilities->cooperative_matrix = false;
    gpu_read_matrix_shapes(physical, support);
    if (features)
        gpu_features_enable(support, extensions, features);
    return VKN_OK;
}

vkn_status gpu_support_read(VkPhysicalDevice physical, bool statistics, struct gpu_support *support,
                            struct gpu_features *features)
{
    struct gpu_extensions extensions = {0};
    *support = (struct gpu_support){0};
    vkn_status status = read_support(physical, statistics, &extensions, support, features);
    free(extensions.entries);
    return status;
}
