/* Opens and closes a device. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

#include <vknerf/vulkan.h>

static const char *name_of(const struct gpu_device *device)
{
    return device->support.capabilities.name;
}

/* Returns whether the queue gets a low priority; warns if it should and the device has none. */
static bool takes_low_priority(const struct gpu_device *device, const struct gpu_options *options)
{
    const struct gpu_support *support = &device->support;
    if (!options->low_priority || support->global_priority_khr || support->global_priority_ext)
        return options->low_priority;
    base_log(BASE_LOG_WARNING,
             "\"%s\" has no priorities of programs (VK_KHR_global_priority), so --low-priority has "
             "no effect",
             name_of(device));
    return false;
}

static vkn_status create_device(struct gpu_device *device, const struct gpu_options *options)
{
    float priority = 1;
    VkDeviceQueueGlobalPriorityCreateInfoKHR low = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_GLOBAL_PRIORITY_CREATE_INFO_KHR,
        .globalPriority = VK_QUEUE_GLOBAL_PRIORITY_LOW_KHR,
    };
    VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .pNext = takes_low_priority(device, options) ? &low : NULL,
        .queueFamilyIndex = device->support.queue_family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &device->features.base,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = device->features.extension_count,
        .ppEnabledExtensionNames = device->features.extensions,
    };
    /* The loader may return VK_INCOMPLETE, which is no error, from its own listing of extensions:
     * no device was created then. */
    VkResult result = vkCreateDevice(device->physical, &info, NULL, &device->handle);
    if (result != VK_SUCCESS)
        return gpu_vulkan_fail(result, "vkCreateDevice", name_of(device));
    volkLoadDeviceTable(&device->vk, device->handle);
    device->vk.vkGetDeviceQueue(device->handle, device->support.queue_family, 0, &device->queue);
    vkGetPhysicalDeviceMemoryProperties(device->physical, &device->memory);
    return VKN_OK;
}

static vkn_status create_layouts(struct gpu_device *device)
{
    VkDescriptorSetLayoutBinding bindings[GPU_SET_BINDINGS];
    for (uint32_t i = 0; i < GPU_SET_BINDINGS; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = GPU_SET_BINDINGS,
        .pBindings = bindings,
    };
    GPU_CALL(name_of(device), device->vk.vkCreateDescriptorSetLayout, device->handle, &set, NULL,
             &device->set_layout);
    gpu_name(device, VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, (uint64_t)device->set_layout,
             "common bindings");
    VkPushConstantRange push = {
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        .size = GPU_PUSH_BYTES,
    };
    const VkDescriptorSetLayout sets[GPU_SETS] = {device->set_layout, device->set_layout};
    VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = GPU_SETS,
        .pSetLayouts = sets,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    GPU_CALL(name_of(device), device->vk.vkCreatePipelineLayout, device->handle, &layout, NULL,
             &device->pipeline_layout);
    gpu_name(device, VK_OBJECT_TYPE_PIPELINE_LAYOUT, (uint64_t)device->pipeline_layout,
             "common layout");
    return VKN_OK;
}

static vkn_status open_device(struct gpu_device *device, const struct gpu_options *options)
{
    BASE_TRY(create_device(device, options));
    BASE_TRY(create_layouts(device));
    const struct gpu_buffer_request reached = {&device->markers.reached, "markers",
                                               sizeof(uint32_t), GPU_HOST};
    /* Host memory, which outlives the device. */
    if (device->support.buffer_markers)
        BASE_TRY(gpu_arena_create(device, &reached, 1, &device->markers.arena));
    if (options->shader_dir) {
        device->shader_dir = base_format("%s", options->shader_dir);
        if (!device->shader_dir)
            return VKN_ERROR;
    }
    BASE_TRY(gpu_cache_open(device, options->cache_dir));
    struct gpu_buffer_request dummy = {&device->dummy, "unbound", 0, GPU_DEVICE};
    BASE_TRY(gpu_arena_create(device, &dummy, 1, &device->dummy_arena));
    BASE_TRY(gpu_self_test_run(device));
    gpu_apply_certificate(device);
    return VKN_OK;
}

/* Opens the requested device, else the best one that is not skipped. If opening fails, adds the
 * device to the mask *skipped; *another: whether a further device can be tried. */
static vkn_status open_next(const struct gpu_options *options, uint64_t *skipped,
                            struct gpu_device **opened, bool *another)
{
    VkInstance instance;
    *another = false;
    BASE_TRY(gpu_instance_acquire(&instance));
    struct gpu_device *device = base_alloc(1, sizeof *device);
    if (!device) {
        gpu_instance_release(instance);
        return VKN_ERROR;
    }
    device->instance = instance;
    base_guard_create(&device->guard);
    gpu_pipelines_open(device);
    device->statistics = options->statistics;
    device->progress = options->progress;
    vkn_status status = gpu_choose(instance, options->device, *skipped, device, another);
    if (status == VKN_OK)
        status = open_device(device, options);
    if (status == VKN_OK) {
        *opened = device;
        return VKN_OK;
    }
    if (*another)
        *skipped |= (uint64_t)1 << device->index;
    gpu_close(&device);
    return status;
}

vkn_status gpu_open(const struct gpu_options *options, struct gpu_device **opened)
{
    static const struct gpu_options defaults;
    uint64_t skipped = 0;
    bool another;
    *opened = NULL;
    gpu_check_disabled_names();
    for (;;) {
        vkn_status status = open_next(options ? options : &defaults, &skipped, opened, &another);
        if (status != VKN_NO_DEVICE || !another)
            return status;
        base_log(BASE_LOG_WARNING, "%s; the next device is tried", vkn_last_error());
    }
}

void gpu_close(struct gpu_device **closed)
{
    BASE_KEEP_ERROR;
    struct gpu_device *device = *closed;
    if (!device)
        return;
    *closed = NULL;
    if (device->handle) {
        device->vk.vkDeviceWaitIdle(device->handle);
        gpu_pipelines_close(device);
        gpu_cache_close(device);
        gpu_transfer_destroy(device);
        gpu_arena_destroy(&device->dummy_arena);
        gpu_arena_destroy(&device->markers.arena);
        device->vk.vkDestroyPipelineLayout(device->handle, device->pipeline_layout, NULL);
        device->vk.vkDestroyDescriptorSetLayout(device->handle, device->set_layout, NULL);
        device->vk.vkDestroyDevice(device->handle, NULL);
    }
    if (!device->hung)
        gpu_instance_release(device->instance);
    free(device->markers.entries);
    free(device->cache_folder);
    free(device->cache_path);
    free(device->shader_dir);
    free(device);
}

struct base_guard *gpu_guard(struct gpu_device *device)
{
    return &device->guard;
}

void gpu_report_progress(const struct gpu_device *device, const char *what, size_t done,
                         size_t total)
{
    base_progress_report(&device->progress, what, done, total);
}

const struct gpu_capabilities *gpu_device_capabilities(const struct gpu_device *device)
{
    return &device->support.capabilities;
}

uint32_t gpu_device_index(const struct gpu_device *device)
{
    return device->index;
}

void gpu_device_handles(const struct gpu_device *device, struct vkn_vulkan *handles)
{
    *handles = (struct vkn_vulkan){
        .instance = device->instance,
        .physical_device = device->physical,
        .device = device->handle,
        .queue = device->queue,
        .queue_family = device->support.queue_family,
        .api_version = gpu_instance_version(),
        .get_instance_proc_addr = (void (*)(void))vkGetInstanceProcAddr,
    };
}

const struct gpu_self_test *gpu_self_test_result(const struct gpu_device *device)
{
    return &device->self_test;
}
