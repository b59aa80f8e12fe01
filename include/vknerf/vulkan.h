/* vknerf/vulkan.h: the Vulkan device behind a context, for programs that record work of their own
 * on it. Needs no Vulkan headers. */
#ifndef VKNERF_VULKAN_H
#define VKNERF_VULKAN_H

#include <vknerf/api.h>
#include <vknerf/context.h>

VKN_BEGIN_DECLARATIONS

/* Dispatchable handles, which are pointers everywhere. They stay the context's, and valid as long
 * as it. */
struct vkn_vulkan {
    size_t size;
    void *instance;        /* VkInstance */
    void *physical_device; /* VkPhysicalDevice */
    void *device;          /* VkDevice */
    void *queue; /* VkQueue, for compute and copies: what the context submits goes there too */
    uint32_t queue_family; /* its family; command pools and exclusive resources belong to that */
    uint32_t api_version;  /* VK_MAKE_API_VERSION: what the instance was made with, 1.2 or 1.3 */
    void (*get_instance_proc_addr)(void); /* PFN_vkGetInstanceProcAddr of the loader that was opened
                                           */
};

/* Fills *vulkan with the context's handles. A queue is for one thread at a time: submit from the
 * one that uses the context. VKN_BAD_INPUT on NULL. */
VKN_API vkn_status vkn_context_vulkan(const vkn_context *context, struct vkn_vulkan *vulkan);

VKN_END_DECLARATIONS

#endif
