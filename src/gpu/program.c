/* Programs (compute pipelines) and bindings (descriptor sets). */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/program_sources.h"

/* ---- programs -------------------------------------------------------------------------------- */

struct gpu_program {
    struct gpu_device *device;
    const char *name;
    VkPipeline pipeline;
    uint32_t local_size;
};

/* Specialisation ids that the room sets itself. */
enum { SUBGROUP_SIZE_ID, LOCAL_SIZE_ID, FIRST_CONSTANT_ID };

static const struct gpu_program_source *find_source(const char *name)
{
    for (size_t i = 0; i < gpu_program_source_count; i++)
        if (strcmp(gpu_program_sources[i].name, name) == 0)
            return &gpu_program_sources[i];
    return NULL;
}

/* The one that goes by addresses, where there is one. */
static const struct gpu_program_source *source_for(const struct gpu_device *device,
                                                   const char *name)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    const struct gpu_program_source *source = NULL;
    char by_address[128];
    snprintf(by_address, sizeof by_address, "%s_addresses", name);
    if (capabilities->type == GPU_CPU && capabilities->buffer_addresses &&
        !gpu_disabled("buffer_addresses"))
        source = find_source(by_address);
    return source ? source : find_source(name);
}

bool gpu_program_exists(const char *name)
{
    return find_source(name) != NULL;
}

uint64_t gpu_program_hash(const struct gpu_device *device, const char *name)
{
    const struct gpu_program_source *source = source_for(device, name);
    if (!source || device->shader_dir)
        return 0;
    return gpu_hash(source->words, source->word_count * sizeof *source->words);
}

static vkn_status check_options(const struct gpu_device *device,
                                const struct gpu_program_options *options)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    if (!options->local_size || options->local_size % capabilities->subgroup_size ||
        options->local_size > capabilities->max_workgroup_size)
        return base_fail(VKN_ERROR,
                         "%s: workgroups of %u on \"%s\", which takes multiples of %u up to %u",
                         options->name, options->local_size, capabilities->name,
                         capabilities->subgroup_size, capabilities->max_workgroup_size);
    if (options->constants && options->constants->count > GPU_MAX_CONSTANTS)
        return base_fail(VKN_ERROR, "%s: %u constants, at most %u are possible", options->name,
                         options->constants->count, GPU_MAX_CONSTANTS);
    return VKN_OK;
}

/* Creates the shader module from the embedded words or from the folder of sources. */
static vkn_status create_module(struct gpu_device *device, const char *name, VkShaderModule *module)
{
    const struct gpu_program_source *source = source_for(device, name);
    if (!source)
        return base_fail(VKN_ERROR,
                         "program %s is not part of this build (see shaders/programs.txt)", name);
    const uint32_t *words = source->words;
    uint32_t *compiled = NULL;
    size_t word_count = source->word_count;
    if (device->shader_dir) {
        char message[1024];
        if (!gpu_runtime_compile(device->shader_dir, source, &compiled, &word_count, message,
                                 sizeof message)) {
            message[strcspn(message, "\n")] = 0;
            return base_fail(VKN_BAD_INPUT, "program %s: %s", name, message);
        }
        words = compiled;
    }
    VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = word_count * sizeof *words,
        .pCode = words,
    };
    VkResult result = device->vk.vkCreateShaderModule(device->handle, &info, NULL, module);
    free(compiled);
    if (result < 0)
        return gpu_vulkan_fail(result, "vkCreateShaderModule", name);
    gpu_name(device, VK_OBJECT_TYPE_SHADER_MODULE, (uint64_t)*module, name);
    return VKN_OK;
}

static VkResult create_pipeline(struct gpu_device *device,
                                const struct gpu_program_options *options, VkShaderModule module,
                                VkPipeline *pipeline)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    uint32_t values[FIRST_CONSTANT_ID + GPU_MAX_CONSTANTS];
    VkSpecializationMapEntry entries[BASE_COUNT(values)];
    uint32_t count = FIRST_CONSTANT_ID;
    values[SUBGROUP_SIZE_ID] = capabilities->subgroup_size;
    values[LOCAL_SIZE_ID] = options->local_size;
    for (uint32_t i = 0; options->constants && i < options->constants->count; i++)
        values[count++] = options->constants->values[i];
    for (uint32_t i = 0; i < count; i++)
        entries[i] = (VkSpecializationMapEntry){i, i * sizeof values[0], sizeof values[0]};
    VkSpecializationInfo specialization = {count, entries, count * sizeof values[0], values};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT subgroup_size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT,
        .requiredSubgroupSize = capabilities->subgroup_size,
    };
    bool pin = capabilities->subgroup_pinnable;
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage =
            {
                .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = pin ? &subgroup_size : NULL,
                .flags = pin ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT : 0u,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = "main",
                .pSpecializationInfo = &specialization,
            },
        .layout = device->pipeline_layout,
    };
    return device->vk.vkCreateComputePipelines(device->handle, device->cache, 1, &info, NULL,
                                               pipeline);
}

vkn_status gpu_program_create(struct gpu_device *device, const struct gpu_program_options *options,
                              struct gpu_program **created)
{
    VkShaderModule module = VK_NULL_HANDLE;
    VkPipeline pipeline = VK_NULL_HANDLE;
    *created = NULL;
    BASE_TRY(check_options(device, options));
    BASE_TRY(create_module(device, options->name, &module));
    VkResult result = create_pipeline(device, options, module, &pipeline);
    device->vk.vkDestroyShaderModule(device->handle, module, NULL);
    if (result < 0)
        return gpu_vulkan_fail(result, "vkCreateComputePipelines", options->name);
    struct gpu_program *program = base_alloc(1, sizeof *program);
    if (!program) {
        device->vk.vkDestroyPipeline(device->handle, pipeline, NULL);
        return VKN_ERROR;
    }
    *program = (struct gpu_program){
        .device = device,
        .name = find_source(options->name)->name,
        .pipeline = pipeline,
        .local_size = options->local_size,
    };
    gpu_name(device, VK_OBJECT_TYPE_PIPELINE, (uint64_t)pipeline, program->name);
    *created = program;
    return VKN_OK;
}

void gpu_program_destroy(struct gpu_program **destroyed)
{
    struct gpu_program *program = *destroyed;
    if (!program)
        return;
    *destroyed = NULL;
    program->device->vk.vkDestroyPipeline(program->device->handle, program->pipeline, NULL);
    free(program);
}

uint32_t gpu_program_local_size(const struct gpu_program *program)
{
    return program->local_size;
}

VkPipeline gpu_program_pipeline(const struct gpu_program *program)
{
    return program->pipeline;
}

const char *gpu_program_name(const struct gpu_program *program)
{
    return program->name;
}

/* ---- bindings -------------------------------------------------------------------------------- */

struct gpu_bindings {
    struct gpu_device *device;
    VkDescriptorPool pool;
    VkDescriptorSet set;
    struct gpu_arena *arena;
    struct gpu_buffer addresses;
};

static vkn_status create_set(struct gpu_device *device, struct gpu_bindings *bindings)
{
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, GPU_BINDINGS};
    VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    GPU_CALL("bindings", device->vk.vkCreateDescriptorPool, device->handle, &pool, NULL,
             &bindings->pool);
    VkDescriptorSetAllocateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = bindings->pool,
        .descriptorSetCount = 1,
        .pSetLayouts = &device->set_layout,
    };
    GPU_CALL("bindings", device->vk.vkAllocateDescriptorSets, device->handle, &set, &bindings->set);
    return VKN_OK;
}

static vkn_status list_addresses(const struct gpu_buffer *const buffers[GPU_BINDINGS],
                                 struct gpu_bindings *bindings)
{
    struct gpu_device *device = bindings->device;
    struct gpu_buffer_request request = {&bindings->addresses, "buffer addresses",
                                         GPU_BINDINGS * sizeof(uint64_t), GPU_HOST};
    BASE_TRY(gpu_arena_create(device, &request, 1, &bindings->arena));
    uint64_t *addresses = bindings->addresses.mapped;
    for (uint32_t i = 0; i < GPU_BINDINGS && device->support.capabilities.buffer_addresses; i++) {
        VkBufferDeviceAddressInfo info = {
            .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
            .buffer = buffers[i] ? buffers[i]->handle : device->dummy.handle,
        };
        addresses[i] = device->vk.vkGetBufferDeviceAddress(device->handle, &info);
    }
    return VKN_OK;
}

static void write_set(const struct gpu_buffer *const buffers[GPU_BINDINGS],
                      const struct gpu_bindings *bindings)
{
    const struct gpu_device *device = bindings->device;
    VkDescriptorBufferInfo infos[GPU_BINDINGS];
    VkWriteDescriptorSet writes[GPU_BINDINGS];
    for (uint32_t i = 0; i < GPU_BINDINGS; i++) {
        const struct gpu_buffer *buffer = i == GPU_ADDRESSES ? &bindings->addresses
                                          : buffers[i]       ? buffers[i]
                                                             : &device->dummy;
        infos[i] = (VkDescriptorBufferInfo){buffer->handle, 0, VK_WHOLE_SIZE};
        writes[i] = (VkWriteDescriptorSet){
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = bindings->set,
            .dstBinding = i,
            .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .pBufferInfo = &infos[i],
        };
    }
    device->vk.vkUpdateDescriptorSets(device->handle, GPU_BINDINGS, writes, 0, NULL);
}

vkn_status gpu_bindings_create(struct gpu_device *device,
                               const struct gpu_buffer *const buffers[GPU_BINDINGS],
                               struct gpu_bindings **created)
{
    *created = NULL;
    struct gpu_bindings *bindings = base_alloc(1, sizeof *bindings);
    if (!bindings)
        return VKN_ERROR;
    bindings->device = device;
    vkn_status status = create_set(device, bindings);
    if (status == VKN_OK)
        status = list_addresses(buffers, bindings);
    if (status != VKN_OK) {
        gpu_bindings_destroy(&bindings);
        return status;
    }
    write_set(buffers, bindings);
    *created = bindings;
    return VKN_OK;
}

void gpu_bindings_destroy(struct gpu_bindings **destroyed)
{
    struct gpu_bindings *bindings = *destroyed;
    if (!bindings)
        return;
    *destroyed = NULL;
    bindings->device->vk.vkDestroyDescriptorPool(bindings->device->handle, bindings->pool, NULL);
    gpu_arena_destroy(&bindings->arena);
    free(bindings);
}

VkDescriptorSet gpu_bindings_set(const struct gpu_bindings *bindings)
{
    return bindings->set;
}
