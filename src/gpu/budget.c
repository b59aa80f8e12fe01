/* Determines how much memory is available on a device, and checks requests against it. */
#include <stdlib.h>
#include <string.h>

#include "gpu/internal.h"

#define LEAST_CHECKED ((uint64_t)1 << 20) /* bytes; smaller requests are not checked */

uint64_t gpu_padded_size(uint64_t asked)
{
    uint64_t size = asked ? asked : 1;
    return size > UINT64_MAX - GPU_BUFFER_GRANULE
               ? UINT64_MAX
               : (size + GPU_BUFFER_GRANULE - 1) / GPU_BUFFER_GRANULE * GPU_BUFFER_GRANULE;
}

uint64_t gpu_memory_available(const struct gpu_device *device)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT,
    };
    VkPhysicalDeviceMemoryProperties2 memory = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
        .pNext = device->support.memory_budget ? &budget : NULL,
    };
    vkGetPhysicalDeviceMemoryProperties2(device->physical, &memory);
    uint64_t best = 0;
    for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; i++) {
        const VkMemoryHeap *heap = &memory.memoryProperties.memoryHeaps[i];
        uint64_t total = device->support.memory_budget ? budget.heapBudget[i] : heap->size;
        uint64_t used = device->support.memory_budget ? budget.heapUsage[i] : device->allocated;
        if ((heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && total > used && total - used > best)
            best = total - used;
    }
    /* Drivers of CPU devices ignore the limits of containers. */
    if (device->support.capabilities.type == GPU_CPU && base_memory_available() < best)
        best = base_memory_available();
    return best;
}

/* ---- checks before allocation ---------------------------------------------------------------- */

vkn_status gpu_check_range(const struct gpu_device *device, const struct gpu_need *need)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    uint64_t limit = capabilities->max_buffer_range;
    if (need->size <= limit && gpu_padded_size(need->size) <= device->support.max_allocation)
        return VKN_OK;
    return base_fail(
        VKN_BAD_INPUT, "%s: %.1f MiB in one buffer, but \"%s\" takes at most %.1f MiB: reduce %s",
        need->name, base_mib(need->size), capabilities->name,
        base_mib(limit < device->support.max_allocation ? limit : device->support.max_allocation),
        need->settings ? need->settings : "the data (--downscale) or the model");
}

#define MOST_NAMED  3u /* settings in a message */
#define LEAST_SHARE 8u /* a message names settings that cause at least 1/8 of the size */

/* Returns the settings that cause most of the bytes and are not in `named`; NULL: none of the rest
 * causes enough. */
static const char *find_cause(const struct gpu_need *needs, size_t count, uint64_t needed,
                              const char *const named[MOST_NAMED])
{
    const char *cause = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        bool excluded = !needs[i].settings;
        for (size_t n = 0; n < MOST_NAMED && !excluded; n++)
            excluded = named[n] && strcmp(named[n], needs[i].settings) == 0;
        for (size_t k = i; k < count && !excluded; k++)
            if (needs[k].settings && strcmp(needs[k].settings, needs[i].settings) == 0)
                bytes += gpu_padded_size(needs[k].size);
        if (bytes > most && bytes >= needed / LEAST_SHARE) {
            most = bytes;
            cause = needs[i].settings;
        }
    }
    return cause;
}

static vkn_status fail_need(const struct gpu_device *device, const struct gpu_need *needs,
                            size_t count, uint64_t needed, uint64_t available, const char *what)
{
    const char *named[MOST_NAMED] = {NULL};
    struct base_text list = {0};
    for (size_t n = 0; n < MOST_NAMED; n++) {
        named[n] = find_cause(needs, count, needed, named);
        if (named[n])
            base_text_add(&list, "%s%s", n > 0 ? ", " : "", named[n]);
    }
    vkn_status status = base_fail(
        VKN_BAD_INPUT, "%s: %.1f MiB of memory are needed, and \"%s\" has %.1f MiB left: reduce %s",
        what, base_mib(needed), device->support.capabilities.name, base_mib(available),
        list.data && !list.failed ? list.data : "the data (--downscale) or the model");
    free(list.data);
    return status;
}

/* Returns the memory available on the device, plus the host memory that device memory can fall back
 * to. */
static uint64_t usable_memory(const struct gpu_device *device)
{
    uint64_t available = gpu_memory_available(device), host = 0;
    if (device->support.capabilities.type == GPU_CPU)
        return available < base_memory_usable() ? available : base_memory_usable();
    for (uint32_t i = 0; i < device->memory.memoryHeapCount; i++)
        if (!(device->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT))
            host += device->memory.memoryHeaps[i].size;
    return available + (host < base_memory_usable() ? host : base_memory_usable());
}

vkn_status gpu_memory_check(const struct gpu_device *device, const struct gpu_need *needs,
                            size_t count, const char *what)
{
    uint64_t needed = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t size = gpu_padded_size(needs[i].size);
        needed = size > UINT64_MAX - needed ? UINT64_MAX : needed + size;
    }
    if (needed < LEAST_CHECKED)
        return VKN_OK;
    uint64_t available = usable_memory(device);
    return needed <= available ? VKN_OK : fail_need(device, needs, count, needed, available, what);
}
