/* Loads and saves the pipeline cache, and protects cache files by a header with a hash. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char magic[16] = "VKNERF CACHE 2";

#define CACHE_LIMIT ((size_t)256 << 20) /* bytes of the file */

uint64_t gpu_hash(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

/* Returns NULL if none of the variables is set. LOCALAPPDATA is that of Windows. */
static char *default_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"),
               *local = getenv("LOCALAPPDATA");
    if (cache && base_path_is_absolute(cache))
        return base_path_join(cache, "vknerf");
    if (home && base_path_is_absolute(home))
        return base_path_join(home, ".cache/vknerf");
    return local ? base_path_join(local, "vknerf") : NULL;
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

void gpu_cache_fill_header(void *file, size_t size, const char kind[16], uint64_t key)
{
    struct gpu_cache_header *header = file;
    memcpy(header->magic, kind, sizeof header->magic);
    header->key = key;
    header->hash = gpu_hash(header + 1, size - sizeof *header);
}

bool gpu_cache_valid(const void *file, size_t size, const char kind[16], uint64_t key)
{
    const struct gpu_cache_header *header = file;
    return size > sizeof *header && memcmp(header->magic, kind, sizeof header->magic) == 0 &&
           header->key == key && header->hash == gpu_hash(header + 1, size - sizeof *header);
}

vkn_status gpu_cache_open(struct gpu_device *device, const char *cache_dir)
{
    char *file = NULL;
    size_t size = 0, header = sizeof(struct gpu_cache_header);
    bool valid = false;
    if (!gpu_disabled("pipeline_cache")) {
        device->cache_folder = cache_dir ? base_format("%s", cache_dir) : default_folder();
        device->cache_path = gpu_cache_path(device, "pipelines", "bin");
    }
    /* Measured compile times must not depend on a cache. */
    if (device->statistics)
        return VKN_OK;
    if (device->cache_path && base_file_exists(device->cache_path)) {
        valid = base_file_read(device->cache_path, CACHE_LIMIT, &file, &size) == VKN_OK &&
                gpu_cache_valid(file, size, magic, 0);
        device->cache_hash = valid ? ((struct gpu_cache_header *)(void *)file)->hash : 0;
        if (!valid)
            base_log(BASE_LOG_DEBUG, "%s: a damaged pipeline cache; ignored", device->cache_path);
    }
    VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = valid ? size - header : 0,
        .pInitialData = valid ? file + header : NULL,
    };
    VkResult result = device->vk.vkCreatePipelineCache(device->handle, &info, NULL, &device->cache);
    free(file);
    if (result < 0)
        return gpu_vulkan_fail(result, "vkCreatePipelineCache", device->support.capabilities.name);
    return VKN_OK;
}

/* If saving fails, the next start only takes longer. */
static void save(struct gpu_device *device)
{
    size_t size = 0;
    VkResult (*get)(VkDevice, VkPipelineCache, size_t *, void *) =
        device->vk.vkGetPipelineCacheData;
    if (get(device->handle, device->cache, &size, NULL) < 0 || !size || size > CACHE_LIMIT)
        return;
    struct gpu_cache_header *file = base_alloc(1, sizeof *file + size);
    if (!file)
        return;
    if (get(device->handle, device->cache, &size, file + 1) == VK_SUCCESS) {
        gpu_cache_fill_header(file, sizeof *file + size, magic, 0);
        if (file->hash != device->cache_hash && gpu_cache_may_replace(device->cache_path) &&
            (base_make_folder(device->cache_folder) != VKN_OK ||
             base_file_replace(device->cache_path, file, sizeof *file + size) != VKN_OK))
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
