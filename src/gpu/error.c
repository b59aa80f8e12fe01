/* Turns Vulkan results into vknerf errors. */
#include "gpu/internal.h"

#include <string.h>

static const char *result_name(VkResult result)
{
    static const struct {
        VkResult result;
        const char *name;
    } names[] = {
#define NAME(result) {result, #result}
        NAME(VK_NOT_READY),
        NAME(VK_TIMEOUT),
        NAME(VK_INCOMPLETE),
        NAME(VK_ERROR_OUT_OF_HOST_MEMORY),
        NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY),
        NAME(VK_ERROR_INITIALIZATION_FAILED),
        NAME(VK_ERROR_DEVICE_LOST),
        NAME(VK_ERROR_MEMORY_MAP_FAILED),
        NAME(VK_ERROR_LAYER_NOT_PRESENT),
        NAME(VK_ERROR_EXTENSION_NOT_PRESENT),
        NAME(VK_ERROR_FEATURE_NOT_PRESENT),
        NAME(VK_ERROR_INCOMPATIBLE_DRIVER),
        NAME(VK_ERROR_TOO_MANY_OBJECTS),
        NAME(VK_ERROR_FRAGMENTED_POOL),
        NAME(VK_ERROR_OUT_OF_POOL_MEMORY),
        NAME(VK_ERROR_INVALID_SHADER_NV),
        NAME(VK_ERROR_UNKNOWN),
#undef NAME
    };
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        if (names[i].result == result)
            return names[i].name;
    return NULL;
}

vkn_status gpu_vulkan_fail(VkResult result, const char *call, const char *subject)
{
    /* "device->vk.vkQueueSubmit" -> "vkQueueSubmit" */
    const char *dot = strrchr(call, '.');
    if (dot)
        call = dot + 1;
    if (result == VK_ERROR_DEVICE_LOST)
        return base_fail(VKN_NO_DEVICE,
                         "%s: the device was lost (%s): it hung, was reset or was unplugged",
                         subject, call);
    vkn_status status = VKN_ERROR;
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER || result == VK_ERROR_INITIALIZATION_FAILED)
        status = VKN_NO_DEVICE;
    const char *name = result_name(result);
    if (name)
        return base_fail(status, "%s: %s gave %s", subject, call, name);
    return base_fail(status, "%s: %s gave VkResult %d", subject, call, (int)result);
}
