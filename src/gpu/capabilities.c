/* What a device offers: one table of optional features, limits, matrix shapes. */
#include "gpu/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const gpu_device_type_names[] = {
    [GPU_OTHER] = "other",     [GPU_INTEGRATED] = "integrated", [GPU_DISCRETE] = "discrete",
    [GPU_VIRTUAL] = "virtual", [GPU_CPU] = "cpu",
};

/* ---- the table of optional features ----------------------------------------------------------- */

#define FEATURES(member) offsetof(struct gpu_features, member)
#define SUPPORT(member) offsetof(struct gpu_support, member)
#define MAX_BOOLS 2

/* A row is used when the extension is there (or the device's Vulkan has it in its core), every one
 * of `bools` is offered and VKNERF_DISABLE does not name it. */
static const struct optional_feature {
    const char *name;      /* in VKNERF_DISABLE */
    const char *extension; /* NULL: none needed */
    uint32_t core;         /* Vulkan version that needs no extension, 0: none */
    VkStructureType type;  /* of the feature structure, 0: a structure that is always chained */
    size_t structure;      /* in struct gpu_features */
    size_t bools[MAX_BOOLS];
    uint32_t bool_count;
    size_t flag; /* the bool in struct gpu_support that says it is there */
} optional_features[] = {
    {
        .name = "subgroup_size_control",
        .extension = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
        .core = VK_API_VERSION_1_3,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT,
        .structure = FEATURES(subgroup_size),
        .bools = {FEATURES(subgroup_size.subgroupSizeControl),
                  FEATURES(subgroup_size.computeFullSubgroups)},
        .bool_count = 2,
        .flag = SUPPORT(capabilities.subgroup_pinnable),
    },
    {
        .name = "float16",
        .bools = {FEATURES(vulkan12.shaderFloat16)},
        .bool_count = 1,
        .flag = SUPPORT(capabilities.float16),
    },
    {
        .name = "storage16",
        .bools = {FEATURES(vulkan11.storageBuffer16BitAccess)},
        .bool_count = 1,
        .flag = SUPPORT(capabilities.storage16),
    },
    {
        .name = "memory_model",
        .bools = {FEATURES(vulkan12.vulkanMemoryModel),
                  FEATURES(vulkan12.vulkanMemoryModelDeviceScope)},
        .bool_count = 2,
        .flag = SUPPORT(memory_model),
    },
    {
        .name = "float_atomics",
        .extension = VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT,
        .structure = FEATURES(float_atomics),
        .bools = {FEATURES(float_atomics.shaderBufferFloat32AtomicAdd)},
        .bool_count = 1,
        .flag = SUPPORT(capabilities.float_atomic_add),
    },
    {
        .name = "cooperative_matrix",
        .extension = VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
        .structure = FEATURES(matrix),
        .bools = {FEATURES(matrix.cooperativeMatrix)},
        .bool_count = 1,
        .flag = SUPPORT(capabilities.cooperative_matrix),
    },
    {
        .name = "cooperative_matrix2",
        .extension = VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV,
        .structure = FEATURES(matrix2),
        .bools = {FEATURES(matrix2.cooperativeMatrixFlexibleDimensions)},
        .bool_count = 1,
        .flag = SUPPORT(capabilities.cooperative_matrix2),
    },
    {
        .name = "packed_half_atomics",
        .extension = VK_NV_SHADER_ATOMIC_FLOAT16_VECTOR_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT16_VECTOR_FEATURES_NV,
        .structure = FEATURES(half_atomics),
        .bools = {FEATURES(half_atomics.shaderFloat16VectorAtomics)},
        .bool_count = 1,
        .flag = SUPPORT(capabilities.packed_half_atomics),
    },
    {
        .name = "memory_budget",
        .extension = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
        .flag = SUPPORT(memory_budget),
    },
};

/* Switches that are no device feature. */
static const char *const other_switches[] = {"pipeline_cache", "timestamps"};

bool gpu_disabled(const char *name)
{
    const char *list = getenv("VKNERF_DISABLE");
    size_t length = strlen(name);
    while (list && *list) {
        size_t entry = strcspn(list, ",");
        if (entry == length && strncmp(list, name, length) == 0)
            return true;
        list += entry + (list[entry] == ',');
    }
    return false;
}

static bool known_switch(const char *name, size_t length)
{
    for (size_t i = 0; i < BASE_COUNT(optional_features); i++)
        if (strlen(optional_features[i].name) == length &&
            strncmp(optional_features[i].name, name, length) == 0)
            return true;
    for (size_t i = 0; i < BASE_COUNT(other_switches); i++)
        if (strlen(other_switches[i]) == length && strncmp(other_switches[i], name, length) == 0)
            return true;
    return length == 0;
}

void gpu_check_disabled_names(void)
{
    const char *list = getenv("VKNERF_DISABLE");
    while (list && *list) {
        size_t length = strcspn(list, ",");
        if (!known_switch(list, length)) {
            char names[512] = "";
            for (size_t i = 0; i < BASE_COUNT(optional_features); i++)
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s, ",
                         optional_features[i].name);
            base_log(BASE_LOG_WARNING, "VKNERF_DISABLE: nothing is called \"%.*s\"; known: %s%s, %s",
                     (int)length, list, names, other_switches[0], other_switches[1]);
        }
        list += length + (list[length] == ',');
    }
}

/* ---- features --------------------------------------------------------------------------------- */

struct extension_list {
    VkExtensionProperties *entries;
    uint32_t count;
};

static bool has_extension(const struct extension_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->entries[i].extensionName, name) == 0)
            return true;
    return false;
}

static bool *flag_of(struct gpu_support *support, const struct optional_feature *optional)
{
    return (bool *)((char *)support + optional->flag);
}

static VkBool32 *bool_of(struct gpu_features *features, const struct optional_feature *optional,
                         uint32_t index)
{
    return (VkBool32 *)((char *)features + optional->bools[index]);
}

static void chain_begin(struct gpu_features *features)
{
    features->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    features->base.pNext = &features->vulkan11;
    features->vulkan11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    features->vulkan11.pNext = &features->vulkan12;
    features->vulkan12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
}

static void chain_add(struct gpu_features *features, const struct optional_feature *optional)
{
    if (!optional->type)
        return;
    VkBaseOutStructure *structure = (void *)((char *)features + optional->structure);
    structure->sType = optional->type;
    structure->pNext = features->vulkan12.pNext;
    features->vulkan12.pNext = structure;
}

/* Sets the flags of the table's features that the device has and that are not switched off. */
static void read_features(VkPhysicalDevice physical, const struct extension_list *extensions,
                          struct gpu_support *support)
{
    struct gpu_features offered = {0};
    bool reachable[BASE_COUNT(optional_features)];
    chain_begin(&offered);
    for (size_t i = 0; i < BASE_COUNT(optional_features); i++) {
        const struct optional_feature *optional = &optional_features[i];
        bool core = optional->core && support->capabilities.api_version >= optional->core;
        reachable[i] = !optional->extension || core ||
                       has_extension(extensions, optional->extension);
        if (reachable[i])
            chain_add(&offered, optional);
    }
    vkGetPhysicalDeviceFeatures2(physical, &offered.base);

    for (size_t i = 0; i < BASE_COUNT(optional_features); i++) {
        const struct optional_feature *optional = &optional_features[i];
        bool use = reachable[i] && !gpu_disabled(optional->name);
        for (uint32_t k = 0; k < optional->bool_count; k++)
            use = use && *bool_of(&offered, optional, k);
        *flag_of(support, optional) = use;
    }
}

/* Fills the chain and the extension list with what is still flagged in `support`. */
static void enable_features(struct gpu_support *support, const struct extension_list *extensions,
                            struct gpu_features *enabled)
{
    *enabled = (struct gpu_features){0};
    chain_begin(enabled);
    for (size_t i = 0; i < BASE_COUNT(optional_features); i++) {
        const struct optional_feature *optional = &optional_features[i];
        if (!*flag_of(support, optional))
            continue;
        for (uint32_t k = 0; k < optional->bool_count; k++)
            *bool_of(enabled, optional, k) = VK_TRUE;
        chain_add(enabled, optional);
        /* A core feature needs no extension, but naming it does no harm. */
        if (optional->extension && has_extension(extensions, optional->extension))
            enabled->extensions[enabled->extension_count++] = optional->extension;
    }
}

/* ---- properties and limits -------------------------------------------------------------------- */

static enum gpu_device_type type_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return GPU_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return GPU_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return GPU_VIRTUAL;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return GPU_CPU;
    default: return GPU_OTHER;
    }
}

#define NEEDED_SUBGROUP_OPERATIONS                                                                 \
    ((VkSubgroupFeatureFlags)VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |  \
     VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT |                            \
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

static void read_subgroups(const struct properties *properties, struct gpu_capabilities *capabilities)
{
    capabilities->subgroup_size = properties->vulkan11.subgroupSize;
    capabilities->subgroup_min = capabilities->subgroup_max = capabilities->subgroup_size;
    if (!capabilities->subgroup_pinnable)
        return;
    const VkPhysicalDeviceSubgroupSizeControlPropertiesEXT *size = &properties->subgroup_size;
    capabilities->subgroup_min = size->minSubgroupSize;
    capabilities->subgroup_max = size->maxSubgroupSize;
    capabilities->subgroup_pinnable =
        (size->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
        capabilities->subgroup_size >= size->minSubgroupSize &&
        capabilities->subgroup_size <= size->maxSubgroupSize;
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
    capabilities->max_shared_memory = limits->maxComputeSharedMemorySize;
    capabilities->max_workgroup_size = limits->maxComputeWorkGroupInvocations;
    if (limits->maxComputeWorkGroupSize[0] < capabilities->max_workgroup_size)
        capabilities->max_workgroup_size = limits->maxComputeWorkGroupSize[0];
    capabilities->max_buffer_range = limits->maxStorageBufferRange;
    capabilities->timestamp_period = limits->timestampPeriod;
}

/* The queue family to use: compute, and if possible the one without graphics for its freedom from
 * the desktop's work; timestamps matter more. */
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
                    (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT ? 1 : 0);
        if (score > best) {
            best = score;
            support->queue_family = i;
            support->timestamp_bits = families[i].timestampValidBits;
        }
    }
    return best >= 0;
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
    if (support->limits.maxPerStageDescriptorStorageBuffers < GPU_BINDINGS ||
        support->limits.maxDescriptorSetStorageBuffers < GPU_BINDINGS)
        return "it lets a shader see too few storage buffers (vknerf needs 24)";
    return NULL;
}
_Static_assert(GPU_BINDINGS == 24, "the message above names the number");

static vkn_status read_extensions(VkPhysicalDevice physical, const char *name,
                                  struct extension_list *list)
{
    GPU_CALL(name, vkEnumerateDeviceExtensionProperties, physical, NULL, &list->count, NULL);
    list->entries = base_alloc(list->count + 1, sizeof *list->entries);
    if (!list->entries)
        return VKN_ERROR;
    GPU_CALL(name, vkEnumerateDeviceExtensionProperties, physical, NULL, &list->count, list->entries);
    return VKN_OK;
}

static vkn_status read_support(VkPhysicalDevice physical, struct extension_list *extensions,
                               struct gpu_support *support, struct gpu_features *features)
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
    support->unusable = why_unusable(support, has_queue, NEEDED_SUBGROUP_OPERATIONS);
    if (support->unusable)
        return VKN_OK;

    BASE_TRY(read_extensions(physical, capabilities->name, extensions));
    read_features(physical, extensions, support);
    struct properties all;
    read_properties(physical, support, &all);
    snprintf(capabilities->driver, sizeof capabilities->driver, "%.120s %.120s", all.vulkan12.driverName,
             all.vulkan12.driverInfo);
    read_limits(&all, support);
    if (!support->timestamp_bits || gpu_disabled("timestamps"))
        capabilities->timestamp_period = 0;
    read_subgroups(&all, capabilities);
    support->unusable = why_unusable(support, has_queue, all.vulkan11.subgroupSupportedOperations);
    if (!(all.matrix.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
        capabilities->cooperative_matrix = false;
    gpu_read_matrix_shapes(physical, support);
    if (features)
        enable_features(support, extensions, features);
    return VKN_OK;
}

vkn_status gpu_support_read(VkPhysicalDevice physical, struct gpu_support *support,
                            struct gpu_features *features)
{
    struct extension_list extensions = {0};
    *support = (struct gpu_support){0};
    vkn_status status = read_support(physical, &extensions, support, features);
    free(extensions.entries);
    return status;
}
