/* Reads and enables optional features and extensions, from one table. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the table of optional features ---------------------------------------------------------- */

#define FEATURES(member) offsetof(struct gpu_features, member)
#define SUPPORT(member)  offsetof(struct gpu_support, member)
#define MAX_BOOLS        2

/* A row applies if the extension is supported (or part of the device's Vulkan version), all of
 * `bools` are supported, and VKNERF_DISABLE does not list the name. */
static const struct optional_feature {
    const char *name;        /* in VKNERF_DISABLE */
    const char *former;      /* name there in earlier versions; NULL: the same */
    const char *extension;   /* NULL: none needed */
    uint32_t core;           /* Vulkan version that includes the extension; 0: none */
    VkStructureType type;    /* of the feature structure; 0: always chained */
    size_t structure;        /* offset of the structure in struct gpu_features */
    size_t bools[MAX_BOOLS]; /* offsets in struct gpu_features */
    uint32_t bool_count;
    size_t flag; /* offset in struct gpu_support of the bool to set */
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
        .name = "buffer_addresses",
        .bools = {FEATURES(vulkan12.bufferDeviceAddress)},
        .bool_count = 1,
        .flag = SUPPORT(capabilities.buffer_addresses),
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
        .bools = {FEATURES(matrix2.cooperativeMatrixFlexibleDimensions),
                  FEATURES(matrix2.cooperativeMatrixConversions)},
        .bool_count = 2,
        .flag = SUPPORT(capabilities.cooperative_matrix2),
    },
    {
        .name = "maintenance4", /* SPIR-V 1.6 needs it to specialise workgroup sizes */
        .extension = VK_KHR_MAINTENANCE_4_EXTENSION_NAME,
        .core = VK_API_VERSION_1_3,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES,
        .structure = FEATURES(maintenance4),
        .bools = {FEATURES(maintenance4.maintenance4)},
        .bool_count = 1,
        .flag = SUPPORT(maintenance4),
    },
    {
        .name = "maximal_reconvergence",
        .extension = VK_KHR_SHADER_MAXIMAL_RECONVERGENCE_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_MAXIMAL_RECONVERGENCE_FEATURES_KHR,
        .structure = FEATURES(reconvergence),
        .bools = {FEATURES(reconvergence.shaderMaximalReconvergence)},
        .bool_count = 1,
        .flag = SUPPORT(maximal_reconvergence),
    },
    {
        .name = "subgroup_uniform_control_flow",
        .extension = VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR,
        .structure = FEATURES(uniform_control_flow),
        .bools = {FEATURES(uniform_control_flow.shaderSubgroupUniformControlFlow)},
        .bool_count = 1,
        .flag = SUPPORT(subgroup_uniform_control_flow),
    },
    {
        .name = "packed_f16_atomics",
        .former = "packed_half_atomics",
        .extension = VK_NV_SHADER_ATOMIC_FLOAT16_VECTOR_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT16_VECTOR_FEATURES_NV,
        .structure = FEATURES(f16_atomics),
        .bools = {FEATURES(f16_atomics.shaderFloat16VectorAtomics)},
        .bool_count = 1,
        .flag = SUPPORT(capabilities.packed_f16_atomics),
    },
    {
        .name = "pipeline_statistics",
        .extension = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .structure = FEATURES(executables),
        .bools = {FEATURES(executables.pipelineExecutableInfo)},
        .bool_count = 1,
        .flag = SUPPORT(pipeline_statistics),
    },
    {
        .name = "shader_objects", /* on CPU devices only, see capabilities.c */
        .extension = VK_EXT_SHADER_OBJECT_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_OBJECT_FEATURES_EXT,
        .structure = FEATURES(shader_object),
        .bools = {FEATURES(shader_object.shaderObject)},
        .bool_count = 1,
        .flag = SUPPORT(shader_objects),
    },
    {
        .name = "global_priority",
        .extension = VK_KHR_GLOBAL_PRIORITY_EXTENSION_NAME,
        .flag = SUPPORT(global_priority_khr),
    },
    {
        .name = "global_priority",
        .extension = VK_EXT_GLOBAL_PRIORITY_EXTENSION_NAME,
        .flag = SUPPORT(global_priority_ext),
    },
    {
        .name = "device_fault",
        .extension = VK_EXT_DEVICE_FAULT_EXTENSION_NAME,
        .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT,
        .structure = FEATURES(fault),
        .bools = {FEATURES(fault.deviceFault)},
        .bool_count = 1,
        .flag = SUPPORT(device_fault),
    },
    {
        .name = "buffer_markers",
        .extension = VK_AMD_BUFFER_MARKER_EXTENSION_NAME,
        .flag = SUPPORT(buffer_markers),
    },
    {
        .name = "checkpoints",
        .extension = VK_NV_DEVICE_DIAGNOSTIC_CHECKPOINTS_EXTENSION_NAME,
        .flag = SUPPORT(checkpoints),
    },
    {
        .name = "memory_budget",
        .extension = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
        .flag = SUPPORT(memory_budget),
    },
    {
        .name = "calibrated_timestamps",
        .extension = VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME,
        .flag = SUPPORT(calibrated_timestamps),
    },
    {
        .name = "non_semantic_info",
        .extension = VK_KHR_SHADER_NON_SEMANTIC_INFO_EXTENSION_NAME,
        .core = VK_API_VERSION_1_3,
        .flag = SUPPORT(non_semantic_info),
    },
};

/* Further names for VKNERF_DISABLE, which are not device features. */
static const char *const other_switches[] = {"pipeline_cache", "timestamps",    "tuning",
                                             "owned_sums",     "cpu_kernels",   "self_test",
                                             "float_controls", "mapped_memory", "certificate"};

bool gpu_environment_lists(const char *variable, const char *name)
{
    return base_list_has(getenv(variable), name);
}

bool gpu_disabled(const char *feature)
{
    return gpu_environment_lists("VKNERF_DISABLE", feature);
}

bool gpu_cpu_kernels(const struct gpu_capabilities *device)
{
    return device->type == GPU_CPU && !gpu_disabled("cpu_kernels");
}

static bool is_switch(const char *known, const char *name, size_t length)
{
    return known && strlen(known) == length && strncmp(known, name, length) == 0;
}

static bool known_switch(const char *name, size_t length)
{
    for (size_t i = 0; i < BASE_COUNT(optional_features); i++)
        if (is_switch(optional_features[i].name, name, length) ||
            is_switch(optional_features[i].former, name, length))
            return true;
    for (size_t i = 0; i < BASE_COUNT(other_switches); i++)
        if (is_switch(other_switches[i], name, length))
            return true;
    return length == 0;
}

static void add_name(char *names, size_t size, const char *name)
{
    size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

void gpu_check_disabled_names(void)
{
    const char *list = getenv("VKNERF_DISABLE");
    while (list && *list) {
        size_t length = strcspn(list, ",");
        if (!known_switch(list, length)) {
            char names[512] = "";
            for (size_t i = 0; i < BASE_COUNT(optional_features); i++)
                add_name(names, sizeof names, optional_features[i].name);
            for (size_t i = 0; i < BASE_COUNT(other_switches); i++)
                add_name(names, sizeof names, other_switches[i]);
            base_log(BASE_LOG_WARNING, "VKNERF_DISABLE: unknown name \"%.*s\"; known: %s",
                     (int)length, list, names);
        }
        list += length + (list[length] == ',');
    }
}

#define PORTABILITY_SUBSET "VK_KHR_portability_subset" /* of vulkan_beta.h */

/* ---- features -------------------------------------------------------------------------------- */

vkn_status gpu_extensions_read(VkPhysicalDevice physical, const char *name,
                               struct gpu_extensions *extensions)
{
    GPU_CALL(name, vkEnumerateDeviceExtensionProperties, physical, NULL, &extensions->count, NULL);
    extensions->entries = base_alloc(extensions->count + 1, sizeof *extensions->entries);
    if (!extensions->entries)
        return VKN_ERROR;
    GPU_CALL(name, vkEnumerateDeviceExtensionProperties, physical, NULL, &extensions->count,
             extensions->entries);
    return VKN_OK;
}

static bool has_extension(const struct gpu_extensions *list, const char *name)
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

void gpu_features_read(VkPhysicalDevice physical, const struct gpu_extensions *extensions,
                       struct gpu_support *support)
{
    struct gpu_features offered = {0};
    bool reachable[BASE_COUNT(optional_features)];
    chain_begin(&offered);
    for (size_t i = 0; i < BASE_COUNT(optional_features); i++) {
        const struct optional_feature *optional = &optional_features[i];
        bool is_core = optional->core && support->capabilities.api_version >= optional->core;
        reachable[i] =
            !optional->extension || is_core || has_extension(extensions, optional->extension);
        if (reachable[i])
            chain_add(&offered, optional);
    }
    vkGetPhysicalDeviceFeatures2(physical, &offered.base);

    for (size_t i = 0; i < BASE_COUNT(optional_features); i++) {
        const struct optional_feature *optional = &optional_features[i];
        bool is_used = reachable[i] && !gpu_disabled(optional->name) &&
                       !(optional->former && gpu_disabled(optional->former));
        for (uint32_t k = 0; k < optional->bool_count; k++)
            is_used = is_used && *bool_of(&offered, optional, k);
        *flag_of(support, optional) = is_used;
    }
}

void gpu_features_enable(struct gpu_support *support, const struct gpu_extensions *extensions,
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
        /* A core feature needs no extension, but requesting it does no harm. */
        if (optional->extension && has_extension(extensions, optional->extension))
            enabled->extensions[enabled->extension_count++] = optional->extension;
    }
    /* The extension must be enabled where it is offered. vknerf uses none of the features that
     * devices with the extension may lack. */
    if (has_extension(extensions, PORTABILITY_SUBSET))
        enabled->extensions[enabled->extension_count++] = PORTABILITY_SUBSET;
}
