/* Holds the Vulkan instance of the process, lists the devices and selects one. */
#include "gpu/internal.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the instance ---------------------------------------------------------------------------- */

/* One instance serves all devices of the process, because volk keeps its functions in globals. */
static struct {
    pthread_mutex_t lock;
    VkInstance handle;
    uint32_t users;
    pid_t process; /* process that created it: a driver's threads do not survive fork() */
    uint32_t version;
    bool debug_utils;
    VkDebugUtilsMessengerEXT messenger; /* with VKNERF_VALIDATION=1 */
} instance = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Instances with a hung device, see gpu_instance_abandon. Other devices may still use them. */
static struct abandoned {
    VkInstance handle;
    uint32_t users;
    VkDebugUtilsMessengerEXT messenger;
    struct abandoned *next;
} *abandoned;

uint32_t gpu_instance_version(void)
{
    return instance.version;
}

bool gpu_validating(void)
{
    pthread_mutex_lock(&instance.lock);
    bool validating = instance.messenger != VK_NULL_HANDLE;
    for (const struct abandoned *entry = abandoned; entry; entry = entry->next)
        validating = validating || entry->messenger != VK_NULL_HANDLE;
    pthread_mutex_unlock(&instance.lock);
    return validating;
}

static bool has_instance_extension(const char *name)
{
    uint32_t count = 0;
    bool found = false;
    if (vkEnumerateInstanceExtensionProperties(NULL, &count, NULL) < 0)
        return false;
    VkExtensionProperties *list = base_alloc(count + 1, sizeof *list);
    if (list && vkEnumerateInstanceExtensionProperties(NULL, &count, list) >= 0)
        for (uint32_t i = 0; i < count && !found; i++)
            found = strcmp(list[i].extensionName, name) == 0;
    free(list);
    return found;
}

static vkn_status create_instance(void)
{
    if (volkInitialize() != VK_SUCCESS)
        return base_fail(VKN_NO_DEVICE,
                         "no Vulkan loader (libvulkan.so.1) found; install libvulkan1 and a Vulkan "
                         "driver (mesa-vulkan-drivers runs on any machine)");
    instance.version = volkGetInstanceVersion();
    if (instance.version > VK_API_VERSION_1_3)
        instance.version = VK_API_VERSION_1_3;
    if (instance.version < VK_API_VERSION_1_2)
        return base_fail(VKN_NO_DEVICE, "the Vulkan loader is older than 1.2; update libvulkan1");

    const char *extensions[2];
    uint32_t extension_count = 0;
    instance.debug_utils = has_instance_extension(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    if (instance.debug_utils)
        extensions[extension_count++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    /* Devices that wrap another API (MoltenVK) are listed only on request. */
    bool has_portability = has_instance_extension(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    if (has_portability)
        extensions[extension_count++] = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "vknerf",
        .pEngineName = "vknerf",
        .apiVersion = instance.version,
    };
    VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .flags = has_portability ? VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR : 0u,
        .pApplicationInfo = &application,
        .enabledExtensionCount = extension_count,
        .ppEnabledExtensionNames = extensions,
    };
    bool validate = instance.debug_utils && gpu_validation_request(&info);
    VkResult result = vkCreateInstance(&info, NULL, &instance.handle);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return base_fail(VKN_NO_DEVICE, "no Vulkan driver found; install the one of your GPU, or "
                                        "mesa-vulkan-drivers, which also runs without a GPU");
    if (result < 0)
        return gpu_vulkan_fail(result, "vkCreateInstance", "Vulkan");
    volkLoadInstanceOnly(instance.handle);
    instance.messenger = validate ? gpu_validation_listen(instance.handle) : VK_NULL_HANDLE;
    return VKN_OK;
}

vkn_status gpu_instance_acquire(VkInstance *handle)
{
    vkn_status status = VKN_OK;
    pthread_mutex_lock(&instance.lock);
    if (instance.users && instance.process != getpid()) { /* belongs to the parent process */
        instance.users = 0;
        instance.messenger = VK_NULL_HANDLE;
    }
    instance.process = getpid();
    if (!instance.users)
        status = create_instance();
    if (status == VKN_OK)
        instance.users++;
    *handle = instance.handle;
    pthread_mutex_unlock(&instance.lock);
    return status;
}

static void destroy_instance(VkInstance handle, VkDebugUtilsMessengerEXT messenger)
{
    if (messenger)
        vkDestroyDebugUtilsMessengerEXT(handle, messenger, NULL);
    vkDestroyInstance(handle, NULL);
}

/* The lock is held. */
static void release_abandoned(VkInstance handle)
{
    struct abandoned **at = &abandoned;
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    struct abandoned *found = *at;
    if (!found || --found->users > 0)
        return;
    *at = found->next;
    destroy_instance(handle, found->messenger);
    free(found);
}

void gpu_instance_release(VkInstance handle)
{
    pthread_mutex_lock(&instance.lock);
    if (handle != instance.handle) {
        release_abandoned(handle);
    } else if (--instance.users == 0) {
        destroy_instance(handle, instance.messenger);
        instance.messenger = VK_NULL_HANDLE;
        instance.handle = NULL;
    }
    pthread_mutex_unlock(&instance.lock);
}

void gpu_instance_abandon(VkInstance handle)
{
    pthread_mutex_lock(&instance.lock);
    struct abandoned *entry = handle == instance.handle ? base_alloc(1, sizeof *entry) : NULL;
    if (entry) {
        *entry = (struct abandoned){handle, instance.users, instance.messenger, abandoned};
        abandoned = entry;
        instance.users = 0;
        instance.messenger = VK_NULL_HANDLE;
        instance.handle = NULL;
    }
    pthread_mutex_unlock(&instance.lock);
}

bool gpu_instance_is_abandoned(VkInstance handle)
{
    pthread_mutex_lock(&instance.lock);
    bool is_abandoned = handle != instance.handle;
    pthread_mutex_unlock(&instance.lock);
    return is_abandoned;
}

void gpu_name(const struct gpu_device *device, VkObjectType type, uint64_t handle, const char *name)
{
    if (!instance.debug_utils || !vkSetDebugUtilsObjectNameEXT || !name)
        return;
    VkDebugUtilsObjectNameInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = type,
        .objectHandle = handle,
        .pObjectName = name,
    };
    vkSetDebugUtilsObjectNameEXT(device->handle, &info);
}

void gpu_label_begin(VkCommandBuffer commands, const char *name)
{
    const VkDebugUtilsLabelEXT label = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT,
        .pLabelName = name,
    };
    if (instance.debug_utils && vkCmdBeginDebugUtilsLabelEXT)
        vkCmdBeginDebugUtilsLabelEXT(commands, &label);
}

void gpu_label_end(VkCommandBuffer commands)
{
    if (instance.debug_utils && vkCmdEndDebugUtilsLabelEXT)
        vkCmdEndDebugUtilsLabelEXT(commands);
}

/* ---- the list -------------------------------------------------------------------------------- */

struct device_list {
    VkPhysicalDevice *handles;
    struct gpu_support *supports;
    uint32_t count;
};

static void list_free(struct device_list *list)
{
    free(list->handles);
    free(list->supports);
}

static vkn_status list_read(VkInstance handle, struct device_list *list)
{
    GPU_CALL("Vulkan", vkEnumeratePhysicalDevices, handle, &list->count, NULL);
    list->handles = base_alloc(list->count + 1, sizeof(VkPhysicalDevice));
    list->supports = base_alloc(list->count + 1, sizeof *list->supports);
    if (!list->handles || !list->supports)
        return VKN_ERROR;
    GPU_CALL("Vulkan", vkEnumeratePhysicalDevices, handle, &list->count, list->handles);
    if (!list->count)
        return base_fail(VKN_NO_DEVICE,
                         "Vulkan finds no device; install the driver of your GPU, or "
                         "mesa-vulkan-drivers, which also runs without a GPU");
    for (uint32_t i = 0; i < list->count; i++)
        BASE_TRY(gpu_support_read(list->handles[i], false, &list->supports[i], NULL));
    return VKN_OK;
}

vkn_status gpu_list(struct gpu_capabilities *capabilities, size_t capacity, size_t *count)
{
    VkInstance handle;
    struct device_list list = {0};
    *count = 0;
    BASE_TRY(gpu_instance_acquire(&handle));
    vkn_status status = list_read(handle, &list);
    if (status == VKN_OK) {
        *count = list.count;
        for (uint32_t i = 0; i < list.count && i < capacity; i++)
            capabilities[i] = list.supports[i].capabilities;
    }
    list_free(&list);
    gpu_instance_release(handle);
    return status;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static bool contains(const char *text, const char *part)
{
    size_t length = strlen(part);
    for (; *text; text++) {
        size_t i = 0;
        while (i < length && text[i] &&
               tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == length)
            return true;
    }
    return false;
}

/* Returns the position of a device type in the order of preference; smaller is better. */
static int preference_of(enum gpu_device_type type)
{
    switch (type) {
    case GPU_DISCRETE:
        return 0;
    case GPU_INTEGRATED:
        return 1;
    case GPU_VIRTUAL:
        return 2;
    case GPU_OTHER:
        return 3;
    case GPU_CPU:
        break;
    }
    return 4;
}

static vkn_status fail_with_list(const struct device_list *list, const char *wanted)
{
    struct base_text text = {0};
    for (uint32_t i = 0; i < list->count; i++)
        base_text_add(&text, "%s%u \"%s\"%s", i ? ", " : "", i, list->supports[i].capabilities.name,
                      list->supports[i].capabilities.unusable ? " (unusable)" : "");
    vkn_status status =
        base_fail(VKN_NO_DEVICE, "no device matches \"%s\"; there %s %s", wanted,
                  list->count == 1 ? "is only" : "are", text.failed ? "others" : text.data);
    free(text.data);
    return status;
}

static vkn_status fail_unusable(const struct gpu_support *support)
{
    return base_fail(VKN_NO_DEVICE, "device \"%s\" cannot be used: %s", support->capabilities.name,
                     support->capabilities.unusable);
}

static bool parse_index(const char *text, uint32_t count, uint32_t *index)
{
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    unsigned long value = strtoul(text, &end, 10);
    if (*end || value >= count)
        return false;
    *index = (uint32_t)value;
    return true;
}

/* Returns the best device whose name contains `part` (NULL: any) and whose bit in `skipped` is not
 * set; usable devices come first. -1: none. */
static int best_match(const struct device_list *list, const char *part, uint64_t skipped)
{
    int best = -1, best_preference = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct gpu_support *support = &list->supports[i];
        if ((part && !contains(support->capabilities.name, part)) ||
            (i < GPU_MAX_CHOICES && skipped >> i & 1))
            continue;
        int preference =
            preference_of(support->capabilities.type) + (support->capabilities.unusable ? 100 : 0);
        if (best < 0 || preference < best_preference) {
            best = (int)i;
            best_preference = preference;
        }
    }
    return best;
}

static vkn_status choose(const struct device_list *list, const char *wanted, uint64_t skipped,
                         uint32_t *index)
{
    if (!wanted || !parse_index(wanted, list->count, index)) {
        /* One or two digits are always an index, never part of a name such as "LLVM 19.1.7"; longer
         * numbers, such as "4070", can be part of a name. */
        bool is_index =
            wanted && strlen(wanted) <= 2 && strspn(wanted, "0123456789") == strlen(wanted);
        int best = is_index ? -1 : best_match(list, wanted, skipped);
        if (best < 0)
            return fail_with_list(list, wanted);
        *index = (uint32_t)best;
    }
    if (list->supports[*index].capabilities.unusable)
        return fail_unusable(&list->supports[*index]);
    return VKN_OK;
}

/* Returns whether a usable device is left besides the skipped ones and this one. */
static bool has_another(const struct device_list *list, uint64_t skipped, uint32_t index)
{
    if (index >= GPU_MAX_CHOICES)
        return false;
    int next = best_match(list, NULL, skipped | (uint64_t)1 << index);
    return next >= 0 && !list->supports[next].capabilities.unusable;
}

vkn_status gpu_choose(VkInstance handle, const char *wanted, uint64_t skipped,
                      struct gpu_device *device, bool *another)
{
    struct device_list list = {0};
    vkn_status status = list_read(handle, &list);
    *another = false;
    if (status == VKN_OK)
        status = choose(&list, wanted, skipped, &device->index);
    if (status == VKN_OK) {
        *another = !wanted && has_another(&list, skipped, device->index);
        device->physical = list.handles[device->index];
        status = gpu_support_read(device->physical, device->statistics, &device->support,
                                  &device->features);
    }
    list_free(&list);
    return status;
}
