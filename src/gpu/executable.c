/* Creates a compute pipeline or a shader object from a shader's SPIR-V. */
#include <stdlib.h>
#include <string.h>

#include "gpu/internal.h"
#include "gpu/shaders.h"

/* ---- SPIR-V ---------------------------------------------------------------------------------- */

uint32_t gpu_pipeline_constants(const struct gpu_pipeline_options *options, uint32_t subgroup_size,
                                uint32_t values[GPU_MAX_CONSTANTS])
{
    uint32_t count = options->constants ? options->constants->count : 0;
    if (options->constants)
        memcpy(values, options->constants->values, GPU_MAX_CONSTANTS * sizeof values[0]);
    values[GPU_SUBGROUP_SIZE] = subgroup_size;
    values[GPU_LOCAL_SIZE] = options->local_size;
    return count > GPU_FIRST_CONSTANT ? count : GPU_FIRST_CONSTANT;
}

/* Returns the changed module, or the module before if `changed` is NULL; frees the other. */
static uint32_t *replace(uint32_t *changed, uint32_t *before)
{
    if (!changed)
        return before;
    free(before);
    return changed;
}

uint32_t *gpu_fit_module(const struct gpu_support *support, bool has_snippet,
                         const uint32_t *values, uint32_t value_count, const uint32_t *words,
                         size_t *count)
{
    uint32_t *fitting = gpu_specialize(words, count, values, value_count);
    words = fitting ? fitting : words;
    fitting = replace(gpu_add_execution_modes(support, words, count), fitting);
    words = fitting ? fitting : words;
    if (has_snippet && support->capabilities.type == GPU_CPU)
        fitting = replace(gpu_disable_unrolling(words, *count), fitting);
    return fitting;
}

/* ---- pipelines and shader objects ------------------------------------------------------------ */

/* Creates the pipeline of a stage that has no module yet. */
static vkn_status create_pipeline(struct gpu_device *device, const char *name,
                                  const VkPipelineShaderStageCreateInfo *stage,
                                  const uint32_t *words, size_t word_count, VkPipeline *pipeline)
{
    VkShaderModule module = VK_NULL_HANDLE;
    VkShaderModuleCreateInfo module_info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = word_count * sizeof *words,
        .pCode = words,
    };
    GPU_CALL(name, device->vk.vkCreateShaderModule, device->handle, &module_info, NULL, &module);
    gpu_name(device, VK_OBJECT_TYPE_SHADER_MODULE, (uint64_t)module, name);
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .flags = device->support.pipeline_statistics ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR
                                                     : 0u,
        .stage = *stage,
        .layout = device->pipeline_layout,
    };
    info.stage.module = module;
    VkResult result = device->vk.vkCreateComputePipelines(device->handle, device->cache, 1, &info,
                                                          NULL, pipeline);
    device->vk.vkDestroyShaderModule(device->handle, module, NULL);
    if (result < 0)
        return gpu_vulkan_fail(result, "vkCreateComputePipelines", name);
    gpu_name(device, VK_OBJECT_TYPE_PIPELINE, (uint64_t)*pipeline, name);
    return VKN_OK;
}

static vkn_status create(struct gpu_device *device, const char *name, const uint32_t *values,
                         uint32_t count, const uint32_t *words, size_t word_count,
                         struct gpu_executable *executable)
{
    const struct gpu_support *support = &device->support;
    VkSpecializationMapEntry entries[GPU_MAX_CONSTANTS]; /* for modules that gpu_specialize cannot
                                                            specialise */
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (VkSpecializationMapEntry){i, i * sizeof values[0], sizeof values[0]};
    VkSpecializationInfo specialization = {count, entries, count * sizeof values[0], values};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT required = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT,
        .requiredSubgroupSize = values[GPU_SUBGROUP_SIZE],
    };
    VkPipelineShaderStageCreateFlags full =
        VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    const VkPipelineShaderStageCreateInfo stage = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
        .pNext = support->subgroup_required ? &required : NULL,
        .flags = support->capabilities.subgroup_pinnable ? full : 0u,
        .stage = VK_SHADER_STAGE_COMPUTE_BIT,
        .pName = "main",
        .pSpecializationInfo = &specialization,
    };
    if (!support->shader_objects)
        return create_pipeline(device, name, &stage, words, word_count, &executable->pipeline);
    return gpu_shader_create(device, name, &stage, words, word_count, &executable->shader);
}

vkn_status gpu_executable_create(struct gpu_device *device,
                                 const struct gpu_pipeline_options *options, uint32_t subgroup_size,
                                 bool has_snippet, const uint32_t *words, size_t word_count,
                                 struct gpu_executable *executable)
{
    uint32_t values[GPU_MAX_CONSTANTS];
    uint32_t count = gpu_pipeline_constants(options, subgroup_size, values);
    uint32_t *fitting =
        gpu_fit_module(&device->support, has_snippet, values, count, words, &word_count);
    vkn_status status = create(device, options->name, values, count, fitting ? fitting : words,
                               word_count, executable);
    free(fitting);
    return status;
}

void gpu_executable_destroy(struct gpu_device *device, const struct gpu_executable *executable)
{
    if (executable->shader)
        device->vk.vkDestroyShaderEXT(device->handle, executable->shader, NULL);
    device->vk.vkDestroyPipeline(device->handle, executable->pipeline, NULL);
}
