/* The pipeline cache on disk. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* In front of the driver's data, which drivers do not check themselves. */
struct cache_header {
    char magic[8];
    uint64_t hash; /* of the data that follows */
};
static const char cache_magic[8] = "VKNCACHE";

#define CACHE_LIMIT ((size_t)256 << 20)

uint64_t gpu_hash(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

/* NULL when there is no folder for it. */
static char *default_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/')
        return base_path_join(cache, "vknerf");
    if (home && home[0] == '/')
        return base_path_join(home, ".cache/vknerf");
    return NULL;
}

char *gpu_cache_path(const struct gpu_device *device, const char *kind, const char *extension)
{
    const struct gpu_capabilities *capabilities = &device->support.capabilities;
    char uuid[2 * VK_UUID_SIZE + 1];
    if (!device->cache_folder)
        return NULL;
    for (uint32_t i = 0; i < VK_UUID_SIZE; i++)
        snprintf(uuid + 2 * i, 3, "%02x", capabilities->pipeline_cache_uuid[i]);
    return base_format("%s/%s-%s-%08x.%s", device->cache_folder, kind, uuid,
                       capabilities->driver_version, extension);
}

bool gpu_cache_may_replace(const char *path)
{
    struct stat information;
    return stat(path, &information) != 0 || S_ISREG(information.st_mode);
}

/* Points *data into `file` when its content is whole. */
static bool check_file(const char *file, size_t size, const void **data, size_t *data_size,
                       uint64_t *hash)
{
    struct cache_header header;
    if (size < sizeof header)
        return false;
    memcpy(&header, file, sizeof header);
    if (memcmp(header.magic, cache_magic, sizeof cache_magic) != 0 ||
        header.hash != gpu_hash(file + sizeof header, size - sizeof header))
        return false;
    *data = file + sizeof header;
    *data_size = size - sizeof header;
    *hash = header.hash;
    return true;
}

vkn_status gpu_cache_open(struct gpu_device *device, const char *cache_dir)
{
    char *file = NULL;
    size_t file_size = 0, size = 0;
    const void *data = NULL;
    if (!gpu_disabled("pipeline_cache")) {
        device->cache_folder = cache_dir ? base_format("%s", cache_dir) : default_folder();
        device->cache_path = gpu_cache_path(device, "pipelines", "bin");
    }
    /* Else what is compiled twice would take no time at all. */
    if (device->statistics)
        return VKN_OK;
    if (device->cache_path && base_file_exists(device->cache_path)) {
        bool whole = base_file_read(device->cache_path, CACHE_LIMIT, &file, &file_size) == VKN_OK &&
                     check_file(file, file_size, &data, &size, &device->cache_hash);
        if (!whole)
            base_log(BASE_LOG_DEBUG, "%s: not a whole pipeline cache; ignored", device->cache_path);
    }
    VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = size,
        .pInitialData = data,
    };
    VkResult result = device->vk.vkCreatePipelineCache(device->handle, &info, NULL, &device->cache);
    free(file);
    if (result < 0)
        return gpu_vulkan_fail(result, "vkCreatePipelineCache", device->support.capabilities.name);
    return VKN_OK;
}

/* Failing to save costs time at the next start and nothing else. */
static void save(struct gpu_device *device)
{
    size_t size = 0;
    VkResult (*get)(VkDevice, VkPipelineCache, size_t *, void *) =
        device->vk.vkGetPipelineCacheData;
    if (get(device->handle, device->cache, &size, NULL) < 0 || !size || size > CACHE_LIMIT)
        return;
    struct cache_header header;
    char *file = base_alloc(1, sizeof header + size);
    if (!file)
        return;
    if (get(device->handle, device->cache, &size, file + sizeof header) == VK_SUCCESS) {
        memcpy(header.magic, cache_magic, sizeof cache_magic);
        header.hash = gpu_hash(file + sizeof header, size);
        memcpy(file, &header, sizeof header);
        if (header.hash != device->cache_hash && gpu_cache_may_replace(device->cache_path) &&
            (base_make_folder(device->cache_folder) != VKN_OK ||
             base_file_replace(device->cache_path, file, sizeof header + size) != VKN_OK))
            base_log(BASE_LOG_DEBUG, "pipeline cache not saved: %s", vkn_last_error());
    }
    free(file);
}

void gpu_cache_close(struct gpu_device *device)
{
    BASE_KEEP_ERROR;
    if (device->cache && device->cache_path && !device->hung)
        save(device);
    device->vk.vkDestroyPipelineCache(device->handle, device->cache, NULL);
}
