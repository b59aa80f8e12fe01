/* vknerf/vulkan.h: returns the Vulkan handles of a context, for programs that submit their own work
 * to its device. Needs no Vulkan headers. */
#ifndef VKNERF_VULKAN_H
#define VKNERF_VULKAN_H

#include <vknerf/api.h>
#include <vknerf/context.h>

VKN_BEGIN_DECLARATIONS

/* Dispatchable handles, which are pointers on all platforms. Owned by the context, valid as long as
 * it or an object created from it exists. */
struct vkn_vulkan {
    size_t size;
    void *instance;        /* VkInstance */
    void *physical_device; /* VkPhysicalDevice */
    void *device;          /* VkDevice */
    void *queue;           /* VkQueue for compute and copies, to which the context also submits */
    uint32_t queue_family; /* of `queue`, for command pools and exclusive resources */
    uint32_t api_version;  /* of the instance, 1.2 or 1.3, as VK_MAKE_API_VERSION encodes it */
    void (*get_instance_proc_addr)(void); /* PFN_vkGetInstanceProcAddr of the loader in use */
};

/* Fills *vulkan with the context's handles. A queue may be used by one thread at a time: submit
 * from the thread that uses the context. VKN_BAD_INPUT on NULL. */
VKN_API vkn_status vkn_context_vulkan(const vkn_context *context, struct vkn_vulkan *vulkan);

VKN_END_DECLARATIONS

#endif
