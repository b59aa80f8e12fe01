/* Runs the validation layer with synchronisation validation if VKNERF_VALIDATION=1, and logs its
 * messages. */
#include "gpu/internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char layer_name[] = "VK_LAYER_KHRONOS_validation";

static atomic_ullong message_count;

uint64_t gpu_validation_messages(void)
{
    return message_count;
}

static bool layer_installed(void)
{
    uint32_t count = 0;
    bool found = false;
    if (vkEnumerateInstanceLayerProperties(&count, NULL) < 0)
        return false;
    VkLayerProperties *layers = base_alloc(count + 1, sizeof *layers);
    if (layers && vkEnumerateInstanceLayerProperties(&count, layers) >= 0)
        for (uint32_t i = 0; i < count && !found; i++)
            found = strcmp(layers[i].layerName, layer_name) == 0;
    free(layers);
    return found;
}

static VKAPI_ATTR VkBool32 VKAPI_CALL receive(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                              VkDebugUtilsMessageTypeFlagsEXT types,
                                              const VkDebugUtilsMessengerCallbackDataEXT *data,
                                              void *user)
{
    (void)severity, (void)types, (void)user;
    message_count++;
    base_log(BASE_LOG_WARNING, "validation: %s", data->pMessage);
    return VK_FALSE;
}

static const VkValidationFeatureEnableEXT enabled[] = {
    VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
};
static const VkValidationFeaturesEXT validation_features = {
    .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
    .enabledValidationFeatureCount = BASE_COUNT(enabled),
    .pEnabledValidationFeatures = enabled,
};
static const VkDebugUtilsMessengerCreateInfoEXT messenger_info = {
    .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
    .pNext = &validation_features,
    .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
    .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                   VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
    .pfnUserCallback = receive,
};

bool gpu_validation_request(VkInstanceCreateInfo *info)
{
    static const char *const layers[] = {layer_name};
    const char *wanted = getenv("VKNERF_VALIDATION");
    if (!wanted || strcmp(wanted, "1") != 0)
        return false;
    if (!layer_installed()) {
        base_log(BASE_LOG_WARNING,
                 "VKNERF_VALIDATION: %s is not installed (Debian and Ubuntu: "
                 "vulkan-validationlayers)",
                 layer_name);
        return false;
    }
    info->enabledLayerCount = 1;
    info->ppEnabledLayerNames = layers;
    info->pNext = &messenger_info;
    return true;
}

VkDebugUtilsMessengerEXT gpu_validation_listen(VkInstance instance)
{
    VkDebugUtilsMessengerCreateInfoEXT info = messenger_info;
    VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
    info.pNext = NULL;
    if (vkCreateDebugUtilsMessengerEXT)
        vkCreateDebugUtilsMessengerEXT(instance, &info, NULL, &messenger);
    return messenger;
}
