/* Implements a Vulkan layer that fails the Nth call of one function, for tests of vknerf's
 * reaction.
 *
 *     VKFAULT_CALL=vkQueueSubmit  the function, one of the tables below
 *     VKFAULT_N=12                fails its 12th call (from 1); 0: none
 *     VKFAULT_RESULT=-4           the VkResult. Negative: the call is not made. After -4 (device
 *                                 lost) submissions and waits keep returning -4. Positive: the call
 *                                 is made, and its success is replaced by this result
 *     VKFAULT_STICKY=1            fails all later calls of the function as well
 *     VKFAULT_HANG=SECONDS        sleeps before the call
 *     VKFAULT_COUNTS=FILE         writes lines "function calls" at the end
 *
 * When a submission or a wait fails the layer waits for the device, because a lost device would
 * stop, but this one would go on using memory that the program rightly frees. A process may have
 * one device at a time. The layer's name in VK_INSTANCE_LAYERS is VK_LAYER_vknerf_fault; the sweep
 * writes its manifest. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#define EXPORT __attribute__((visibility("default"))) VKAPI_ATTR

/* clang-format off */
/* Device functions, found through vkGetDeviceProcAddr: name, parameters, arguments. */
#define DEVICE_CALLS(X)                                                                                              \
    X(vkQueueSubmit, (VkQueue a, uint32_t b, const VkSubmitInfo *c, VkFence d), (a, b, c, d))                        \
    X(vkWaitForFences, (VkDevice a, uint32_t b, const VkFence *c, VkBool32 d, uint64_t e), (a, b, c, d, e))          \
    X(vkDeviceWaitIdle, (VkDevice a), (a))                                                                           \
    X(vkResetFences, (VkDevice a, uint32_t b, const VkFence *c), (a, b, c))                                          \
    X(vkAllocateMemory, (VkDevice a, const VkMemoryAllocateInfo *b, const VkAllocationCallbacks *c,                  \
                         VkDeviceMemory *d), (a, b, c, d))                                                           \
    X(vkMapMemory, (VkDevice a, VkDeviceMemory b, VkDeviceSize c, VkDeviceSize d, VkMemoryMapFlags e, void **f),     \
      (a, b, c, d, e, f))                                                                                            \
    X(vkBindBufferMemory, (VkDevice a, VkBuffer b, VkDeviceMemory c, VkDeviceSize d), (a, b, c, d))                  \
    X(vkCreateBuffer, (VkDevice a, const VkBufferCreateInfo *b, const VkAllocationCallbacks *c, VkBuffer *d),        \
      (a, b, c, d))                                                                                                  \
    X(vkCreateFence, (VkDevice a, const VkFenceCreateInfo *b, const VkAllocationCallbacks *c, VkFence *d),           \
      (a, b, c, d))                                                                                                  \
    X(vkCreateCommandPool, (VkDevice a, const VkCommandPoolCreateInfo *b, const VkAllocationCallbacks *c,            \
                            VkCommandPool *d), (a, b, c, d))                                                         \
    X(vkAllocateCommandBuffers, (VkDevice a, const VkCommandBufferAllocateInfo *b, VkCommandBuffer *c), (a, b, c))   \
    X(vkBeginCommandBuffer, (VkCommandBuffer a, const VkCommandBufferBeginInfo *b), (a, b))                          \
    X(vkEndCommandBuffer, (VkCommandBuffer a), (a))                                                                  \
    X(vkCreateQueryPool, (VkDevice a, const VkQueryPoolCreateInfo *b, const VkAllocationCallbacks *c,                \
                          VkQueryPool *d), (a, b, c, d))                                                             \
    X(vkCreateShaderModule, (VkDevice a, const VkShaderModuleCreateInfo *b, const VkAllocationCallbacks *c,          \
                             VkShaderModule *d), (a, b, c, d))                                                       \
    X(vkCreateComputePipelines, (VkDevice a, VkPipelineCache b, uint32_t c, const VkComputePipelineCreateInfo *d,    \
                                 const VkAllocationCallbacks *e, VkPipeline *f), (a, b, c, d, e, f))                 \
    X(vkCreateShadersEXT, (VkDevice a, uint32_t b, const VkShaderCreateInfoEXT *c, const VkAllocationCallbacks *d,   \
                           VkShaderEXT *e), (a, b, c, d, e))                                                         \
    X(vkGetShaderBinaryDataEXT, (VkDevice a, VkShaderEXT b, size_t *c, void *d), (a, b, c, d))                       \
    X(vkCreatePipelineCache, (VkDevice a, const VkPipelineCacheCreateInfo *b, const VkAllocationCallbacks *c,        \
                              VkPipelineCache *d), (a, b, c, d))                                                     \
    X(vkGetPipelineCacheData, (VkDevice a, VkPipelineCache b, size_t *c, void *d), (a, b, c, d))                     \
    X(vkCreatePipelineLayout, (VkDevice a, const VkPipelineLayoutCreateInfo *b, const VkAllocationCallbacks *c,      \
                               VkPipelineLayout *d), (a, b, c, d))                                                   \
    X(vkCreateDescriptorSetLayout, (VkDevice a, const VkDescriptorSetLayoutCreateInfo *b,                            \
                                    const VkAllocationCallbacks *c, VkDescriptorSetLayout *d), (a, b, c, d))         \
    X(vkCreateDescriptorPool, (VkDevice a, const VkDescriptorPoolCreateInfo *b, const VkAllocationCallbacks *c,      \
                               VkDescriptorPool *d), (a, b, c, d))                                                   \
    X(vkAllocateDescriptorSets, (VkDevice a, const VkDescriptorSetAllocateInfo *b, VkDescriptorSet *c), (a, b, c))   \
    X(vkGetCalibratedTimestampsEXT, (VkDevice a, uint32_t b, const VkCalibratedTimestampInfoEXT *c, uint64_t *d,     \
                                     uint64_t *e), (a, b, c, d, e))                                                  \
    X(vkSetDebugUtilsObjectNameEXT, (VkDevice a, const VkDebugUtilsObjectNameInfoEXT *b), (a, b))
/* Instance functions, found through vkGetInstanceProcAddr. */
#define INSTANCE_CALLS(X)                                                                                            \
    X(vkEnumeratePhysicalDevices, (VkInstance a, uint32_t *b, VkPhysicalDevice *c), (a, b, c))                       \
    X(vkEnumerateDeviceExtensionProperties, (VkPhysicalDevice a, const char *b, uint32_t *c,                         \
                                             VkExtensionProperties *d), (a, b, c, d))                                \
    X(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR, (VkPhysicalDevice a, uint32_t *b,                           \
                                                          VkCooperativeMatrixPropertiesKHR *c), (a, b, c))           \
    X(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT, (VkPhysicalDevice a, uint32_t *b, VkTimeDomainEXT *c),         \
      (a, b, c))
/* clang-format on */

enum {
#define X(name, parameters, arguments) AT_##name,
    DEVICE_CALLS(X) INSTANCE_CALLS(X)
#undef X
        AT_vkCreateInstance,
    AT_vkCreateDevice,
    CALLS
};
static const char *const names[CALLS] = {
#define X(name, parameters, arguments) #name,
    DEVICE_CALLS(X) INSTANCE_CALLS(X)
#undef X
        "vkCreateInstance",
    "vkCreateDevice",
};

/* Functions of the next layer. */
static struct {
#define X(name, parameters, arguments) PFN_##name name;
    DEVICE_CALLS(X)
    INSTANCE_CALLS(X)
#undef X
    PFN_vkGetDeviceProcAddr vkGetDeviceProcAddr;
    PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
} next;

static atomic_long counts[CALLS];
static atomic_bool lost;
static VkDevice the_device;

/* ---- faults -------------------------------------------------------------------------------- */

static long number(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("VKFAULT_COUNTS");
    FILE *file = path ? fopen(path, "w") : NULL;
    for (int i = 0; file && i < CALLS; i++)
        if (counts[i])
            fprintf(file, "%s %ld\n", names[i], (long)counts[i]);
    if (file)
        fclose(file);
}

static bool is_wait(int call)
{
    return call == AT_vkQueueSubmit || call == AT_vkWaitForFences || call == AT_vkDeviceWaitIdle;
}

/* Returns whether this call is to fail. */
static bool is_due(int call)
{
    long count = atomic_fetch_add(&counts[call], 1) + 1, n = number("VKFAULT_N", 0);
    const char *wanted = getenv("VKFAULT_CALL");
    if (!wanted || n == 0 || strcmp(wanted, names[call]) != 0)
        return false;
    return count == n || (count > n && number("VKFAULT_STICKY", 0) != 0);
}

/* Returns the result of the call; VK_SUCCESS: unchanged. */
static VkResult fault(int call)
{
    bool due = is_due(call);
    if (lost && is_wait(call))
        return VK_ERROR_DEVICE_LOST;
    if (!due)
        return VK_SUCCESS;
    sleep((unsigned)number("VKFAULT_HANG", 0));
    VkResult result = (VkResult)number("VKFAULT_RESULT", VK_ERROR_DEVICE_LOST);
    if (the_device && (result == VK_ERROR_DEVICE_LOST || is_wait(call)))
        next.vkDeviceWaitIdle(the_device);
    if (result == VK_ERROR_DEVICE_LOST)
        lost = true;
    return result;
}

#define X(name, parameters, arguments)                             \
    static VKAPI_ATTR VkResult VKAPI_CALL my_##name parameters     \
    {                                                              \
        VkResult given = fault(AT_##name);                         \
        VkResult result = given < 0 ? given : next.name arguments; \
        return result == VK_SUCCESS && given > 0 ? given : result; \
    }
DEVICE_CALLS(X)
INSTANCE_CALLS(X)
#undef X

/* ---- the layer chain ----------------------------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL my_vkCreateInstance(const VkInstanceCreateInfo *info,
                                                          const VkAllocationCallbacks *callbacks,
                                                          VkInstance *instance)
{
    VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)info->pNext;
    while (link && !(link->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO &&
                     link->function == VK_LAYER_LINK_INFO))
        link = (VkLayerInstanceCreateInfo *)link->pNext;
    if (!link)
        return VK_ERROR_INITIALIZATION_FAILED;
    VkResult result = fault(AT_vkCreateInstance);
    if (result != VK_SUCCESS)
        return result;
    next.vkGetInstanceProcAddr = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)next.vkGetInstanceProcAddr(NULL, "vkCreateInstance");
    result = create(info, callbacks, instance);
    if (result != VK_SUCCESS)
        return result;
#define X(name, parameters, arguments) \
    next.name = (PFN_##name)next.vkGetInstanceProcAddr(*instance, #name);
    INSTANCE_CALLS(X)
#undef X
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL my_vkCreateDevice(VkPhysicalDevice physical,
                                                        const VkDeviceCreateInfo *info,
                                                        const VkAllocationCallbacks *callbacks,
                                                        VkDevice *device)
{
    VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)info->pNext;
    while (link && !(link->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO &&
                     link->function == VK_LAYER_LINK_INFO))
        link = (VkLayerDeviceCreateInfo *)link->pNext;
    if (!link)
        return VK_ERROR_INITIALIZATION_FAILED;
    VkResult result = fault(AT_vkCreateDevice);
    if (result != VK_SUCCESS)
        return result;
    PFN_vkGetInstanceProcAddr find = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    next.vkGetDeviceProcAddr = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    PFN_vkCreateDevice create = (PFN_vkCreateDevice)find(NULL, "vkCreateDevice");
    result = create(physical, info, callbacks, device);
    if (result != VK_SUCCESS)
        return result;
#define X(name, parameters, arguments) \
    next.name = (PFN_##name)next.vkGetDeviceProcAddr(*device, #name);
    DEVICE_CALLS(X)
#undef X
    the_device = *device;
    return result;
}

static PFN_vkVoidFunction find_device_call(const char *name)
{
#define X(function, parameters, arguments) \
    if (strcmp(name, #function) == 0)      \
        return next.function ? (PFN_vkVoidFunction)my_##function : NULL;
    DEVICE_CALLS(X)
#undef X
    return NULL;
}

static PFN_vkVoidFunction find_instance_call(const char *name)
{
#define X(function, parameters, arguments) \
    if (strcmp(name, #function) == 0)      \
        return (PFN_vkVoidFunction)my_##function;
    DEVICE_CALLS(X)
    INSTANCE_CALLS(X)
#undef X
    return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_of_device(VkDevice device, const char *name)
{
    PFN_vkVoidFunction found = find_device_call(name);
    return found ? found : next.vkGetDeviceProcAddr(device, name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_of_instance(VkInstance instance,
                                                                 const char *name)
{
    if (strcmp(name, "vkGetInstanceProcAddr") == 0)
        return (PFN_vkVoidFunction)find_of_instance;
    if (strcmp(name, "vkGetDeviceProcAddr") == 0)
        return (PFN_vkVoidFunction)find_of_device;
    if (strcmp(name, "vkCreateInstance") == 0)
        return (PFN_vkVoidFunction)my_vkCreateInstance;
    if (strcmp(name, "vkCreateDevice") == 0)
        return (PFN_vkVoidFunction)my_vkCreateDevice;
    PFN_vkVoidFunction found = find_instance_call(name);
    if (found || !next.vkGetInstanceProcAddr)
        return found;
    return next.vkGetInstanceProcAddr(instance, name);
}

EXPORT VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface)
{
    interface->loaderLayerInterfaceVersion = 2;
    interface->pfnGetInstanceProcAddr = find_of_instance;
    interface->pfnGetDeviceProcAddr = find_of_device;
    interface->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
