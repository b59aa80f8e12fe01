/* Waits for submissions, and marks a device as hung if they do not finish. */
#include "gpu/internal.h"

#include <stdlib.h>

#define SLICE_NANOSECONDS 250000000u

double gpu_stop_timeout = 20;

/* Longer than an update interval of a field in GLSL on a slow CPU device, including compilation. */
#define FIELD_SECONDS 600.0

double gpu_snippet_seconds(void)
{
    const char *given = getenv("VKNERF_FIELD_SECONDS");
    char *end = NULL;
    double seconds = given ? strtod(given, &end) : FIELD_SECONDS;
    return given && (end == given || *end || !(seconds > 0)) ? FIELD_SECONDS : seconds;
}

double gpu_set_wait_limit(struct gpu_device *device, double seconds)
{
    double previous = device->wait_limit;
    device->wait_limit = seconds;
    return previous;
}

const volatile sig_atomic_t *gpu_set_stop_flag(struct gpu_device *device,
                                               const volatile sig_atomic_t *stop)
{
    const volatile sig_atomic_t *previous = device->stop;
    device->stop = stop;
    return previous;
}

/* ---- hung devices ---------------------------------------------------------------------------- */

/* Objects that a hung device may still use are not destroyed: the functions below replace its
 * destroy functions. */
#define KEEP(type)                                                                        \
    static VKAPI_ATTR void VKAPI_CALL keep_##type(VkDevice device, Vk##type object,       \
                                                  const VkAllocationCallbacks *allocator) \
    {                                                                                     \
        (void)device, (void)object, (void)allocator;                                      \
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
KEEP(ShaderEXT)

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

static void give_up(struct gpu_device *device)
{
    struct VolkDeviceTable *vk = &device->vk;
    device->hung = true;
    gpu_instance_abandon(device->instance);
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
    vk->vkDestroyShaderEXT = keep_ShaderEXT;
    vk->vkDestroyDevice = keep_device;
    vk->vkDeviceWaitIdle = do_not_wait;
}

static vkn_status fail_stopped(struct gpu_device *device, const char *name)
{
    give_up(device);
    base_fail(VKN_NO_DEVICE,
              "%s: the device did not finish within %g seconds after the stop request; progress "
              "since the last checkpoint is lost",
              name, gpu_stop_timeout);
    return gpu_hang_fail(device);
}

static vkn_status fail_endless(struct gpu_device *device, const char *name)
{
    give_up(device);
    base_fail(VKN_NO_DEVICE,
              "%s: not finished after %g seconds: a loop in the field's GLSL may never end "
              "(VKNERF_FIELD_SECONDS allows more)",
              name, device->wait_limit);
    return gpu_hang_fail(device);
}

/* Fails on a device that shares its threads with a hung device of the process. */
static vkn_status fail_shared_threads(struct gpu_device *device, const char *name)
{
    give_up(device);
    return base_fail(
        VKN_NO_DEVICE,
        "%s: the device does not answer: its threads run a shader of this process that "
        "never ends; create a new context",
        name);
}

static bool has_lost_threads(const struct gpu_device *device)
{
    return device->support.capabilities.type == GPU_CPU &&
           gpu_instance_is_abandoned(device->instance);
}

vkn_status gpu_check_hung(const struct gpu_device *device, const char *subject)
{
    if (!device->hung)
        return VKN_OK;
    return base_fail(VKN_NO_DEVICE,
                     "%s: the device was given up after it hung; create a new context", subject);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Waits in short intervals to notice a stop request and the limit: a hung device never signals the
 * fence. */
vkn_status gpu_wait_for(struct gpu_device *device, VkFence fence, const char *name)
{
    double began = 0, asked = 0; /* base_seconds(); asked: of the stop request, 0: none */
    VkResult result;
    BASE_TRY(gpu_check_hung(device, name));
    while ((result = device->vk.vkWaitForFences(device->handle, 1, &fence, VK_TRUE,
                                                SLICE_NANOSECONDS)) == VK_TIMEOUT) {
        double now = base_seconds();
        bool stop = base_stop_asked(device->stop);
        began = began > 0 ? began : now;
        asked = stop && asked <= 0 ? now : asked;
        if (stop && now - asked >= gpu_stop_timeout)
            return fail_stopped(device, name);
        if (device->wait_limit > 0 && now - began >= device->wait_limit)
            return fail_endless(device, name);
        if (now - began >= gpu_stop_timeout && has_lost_threads(device))
            return fail_shared_threads(device, name);
    }
    if (result < 0)
        return gpu_device_fail(device, result, "vkWaitForFences", name);
    GPU_CALL(name, device->vk.vkResetFences, device->handle, 1, &fence);
    return VKN_OK;
}
