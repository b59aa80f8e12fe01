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
 *     VKFAULT_MARKERS=5           executes only the first 5 marker commands that are recorded, as if
 *                                 the device then stopped; negative: all
 *     VKFAULT_OFFER=1             offers VK_EXT_device_fault and VK_AMD_buffer_marker, which the
 *                                 manifest has to list as device_extensions, too
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

/* ---- extensions that the layer offers ------------------------------------------------------- */

static PFN_vkCmdFillBuffer next_fill;
static PFN_vkGetPhysicalDeviceFeatures2 next_features;
static atomic_long markers;

/* The driver's memory fill executes in the order of commands as well. */
static VKAPI_ATTR void VKAPI_CALL write_marker(VkCommandBuffer commands,
                                               VkPipelineStageFlagBits stage, VkBuffer buffer,
                                               VkDeviceSize offset, uint32_t marker)
{
    (void)stage;
    long most = number("VKFAULT_MARKERS", -1);
    if (most < 0 || atomic_fetch_add(&markers, 1) < most)
        next_fill(commands, buffer, offset, sizeof marker, marker);
}

static VKAPI_ATTR VkResult VKAPI_CALL get_fault(VkDevice device, VkDeviceFaultCountsEXT *counts,
                                                VkDeviceFaultInfoEXT *info)
{
    (void)device;
    if (info) {
        snprintf(info->description, sizeof info->description, "the layer lost it");
        info->pAddressInfos[0] = (VkDeviceFaultAddressInfoEXT){
            VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT, 0xdead000, 4096};
        info->pVendorInfos[0] = (VkDeviceFaultVendorInfoEXT){"ring 3 stalled", 7, 0x2a};
    }
    counts->addressInfoCount = counts->vendorInfoCount = 1;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice physical,
                                               VkPhysicalDeviceFeatures2 *features)
{
    next_features(physical, features);
    for (VkBaseOutStructure *at = features->pNext; at; at = at->pNext)
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT)
            ((VkPhysicalDeviceFaultFeaturesEXT *)at)->deviceFault = VK_TRUE;
}

static const char *const offered[] = {VK_EXT_DEVICE_FAULT_EXTENSION_NAME,
                                      VK_AMD_BUFFER_MARKER_EXTENSION_NAME};
#define OFFERED (sizeof offered / sizeof offered[0])

static bool is_offered(const char *extension)
{
    for (size_t i = 0; i < OFFERED; i++)
        if (strcmp(offered[i], extension) == 0)
            return true;
    return false;
}

/* Adds the layer's extensions to those of the driver. */
static VKAPI_ATTR VkResult VKAPI_CALL list_extensions(VkPhysicalDevice physical, const char *layer,
                                                      uint32_t *count,
                                                      VkExtensionProperties *entries)
{
    uint32_t capacity = *count, more = layer || !number("VKFAULT_OFFER", 0) ? 0 : OFFERED;
    if (entries && capacity >= more)
        *count = capacity - more;
    VkResult result = my_vkEnumerateDeviceExtensionProperties(physical, layer, count, entries);
    for (uint32_t i = 0; entries && result == VK_SUCCESS && i < more; i++) {
        VkExtensionProperties *entry = &entries[*count + i];
        *entry = (VkExtensionProperties){.specVersion = 1};
        snprintf(entry->extensionName, sizeof entry->extensionName, "%s", offered[i]);
    }
    *count += more;
    return result;
}

#define MOST_EXTENSIONS 64

/* Creates the device without the extensions that only the layer has. */
static VkResult create_without_offered(PFN_vkCreateDevice create, VkPhysicalDevice physical,
                                       const VkDeviceCreateInfo *info,
                                       const VkAllocationCallbacks *callbacks, VkDevice *device)
{
    const char *kept[MOST_EXTENSIONS];
    VkDeviceCreateInfo changed = *info;
    changed.enabledExtensionCount = 0;
    changed.ppEnabledExtensionNames = kept;
    for (uint32_t i = 0; i < info->enabledExtensionCount && i < MOST_EXTENSIONS; i++)
        if (!is_offered(info->ppEnabledExtensionNames[i]))
            kept[changed.enabledExtensionCount++] = info->ppEnabledExtensionNames[i];
    VkBaseOutStructure *before = (VkBaseOutStructure *)&changed, *fault;
    while (before->pNext &&
           before->pNext->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT)
        before = before->pNext;
    fault = before->pNext;
    before->pNext = fault ? fault->pNext : NULL;
    VkResult result = create(physical, &changed, callbacks, device);
    before->pNext = fault;
    if (result == VK_SUCCESS)
        next_fill = (PFN_vkCmdFillBuffer)next.vkGetDeviceProcAddr(*device, "vkCmdFillBuffer");
    return result;
}

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
    next_features = (PFN_vkGetPhysicalDeviceFeatures2)next.vkGetInstanceProcAddr(
        *instance, "vkGetPhysicalDeviceFeatures2");
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
    result = create_without_offered(create, physical, info, callbacks, device);
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
    if (strcmp(name, "vkCmdWriteBufferMarkerAMD") == 0)
        return (PFN_vkVoidFunction)write_marker;
    if (strcmp(name, "vkGetDeviceFaultInfoEXT") == 0)
        return (PFN_vkVoidFunction)get_fault;
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
    if (strcmp(name, "vkEnumerateDeviceExtensionProperties") == 0)
        return (PFN_vkVoidFunction)list_extensions;
    if (strcmp(name, "vkGetPhysicalDeviceFeatures2") == 0)
        return (PFN_vkVoidFunction)get_features;
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
