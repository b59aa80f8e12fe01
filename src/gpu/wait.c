/* Waiting for the device, and giving up one that hangs. */
#include "gpu/internal.h"

#define SLICE_NANOSECONDS 250000000u

double gpu_patience = 20;

const volatile sig_atomic_t *gpu_watch_stop(struct gpu_device *device,
                                            const volatile sig_atomic_t *stop)
{
    const volatile sig_atomic_t *before = device->stop;
    device->stop = stop;
    return before;
}

/* ---- giving up ------------------------------------------------------------------------------- */

/* What a hung device may still use is not destroyed. */
#define KEEP(type)                                                                                 \
    static VKAPI_ATTR void VKAPI_CALL keep_##type(VkDevice device, Vk##type object,                \
                                                  const VkAllocationCallbacks *allocator)          \
    {                                                                                              \
        (void)device, (void)object, (void)allocator;                                               \
    }
KEEP(Buffer)
KEEP(CommandPool)
KEEP(DescriptorPool)
KEEP(DescriptorSetLayout)
KEEP(DeviceMemory)
KEEP(Fence)
KEEP(Pipeline)
KEEP(PipelineCache)
KEEP(PipelineLayout)
KEEP(QueryPool)

static VKAPI_ATTR void VKAPI_CALL keep_device(VkDevice device,
                                              const VkAllocationCallbacks *allocator)
{
    (void)device, (void)allocator;
}

static VKAPI_ATTR VkResult VKAPI_CALL do_not_wait(VkDevice device)
{
    (void)device;
    return VK_ERROR_DEVICE_LOST;
}

static vkn_status give_up(struct gpu_device *device, const char *name)
{
    struct VolkDeviceTable *vk = &device->vk;
    device->hung = true;
    vk->vkDestroyBuffer = keep_Buffer;
    vk->vkDestroyCommandPool = keep_CommandPool;
    vk->vkDestroyDescriptorPool = keep_DescriptorPool;
    vk->vkDestroyDescriptorSetLayout = keep_DescriptorSetLayout;
    vk->vkFreeMemory = keep_DeviceMemory;
    vk->vkDestroyFence = keep_Fence;
    vk->vkDestroyPipeline = keep_Pipeline;
    vk->vkDestroyPipelineCache = keep_PipelineCache;
    vk->vkDestroyPipelineLayout = keep_PipelineLayout;
    vk->vkDestroyQueryPool = keep_QueryPool;
    vk->vkDestroyDevice = keep_device;
    vk->vkDeviceWaitIdle = do_not_wait;
    return base_fail(VKN_NO_DEVICE,
                     "%s: the device does not answer, %g seconds after it was to stop; what came "
                     "after the last checkpoint is not saved",
                     name, gpu_patience);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* In slices, so that a stop is noticed: a device that hangs would ignore it for ever. */
vkn_status gpu_wait_for(struct gpu_device *device, VkFence fence, const char *name)
{
    double asked = 0;
    VkResult result = device->hung ? VK_ERROR_DEVICE_LOST : VK_TIMEOUT;
    while (result == VK_TIMEOUT) {
        result = device->vk.vkWaitForFences(device->handle, 1, &fence, VK_TRUE, SLICE_NANOSECONDS);
        if (result != VK_TIMEOUT || !base_stop_asked(device->stop))
            continue;
        if (asked <= 0)
            asked = base_seconds();
        else if (base_seconds() - asked >= gpu_patience)
            return give_up(device, name);
    }
    if (result < 0)
        return gpu_vulkan_fail(result, "vkWaitForFences", name);
    GPU_CALL(name, device->vk.vkResetFences, device->handle, 1, &fence);
    return VKN_OK;
}
