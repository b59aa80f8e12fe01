/* Creates shader objects for CPU devices, and caches their binaries on disk.
 *
 * lavapipe caches machine code, but translates SPIR-V into its intermediate representation anew in
 * every process; VkPipelineCache does not hold that representation. A binary of
 * VK_EXT_shader_object holds it, and reading a binary is thirty times as fast as translating. The
 * pipeline caches of GPU drivers hold the machine code. */
#include "gpu/internal.h"

#include <stdlib.h>
#include <string.h>

/* A binary's file is named by its key modulo FILES, so a binary may replace another. */
#define FILES      2048u
#define FILE_LIMIT ((size_t)16 << 20) /* bytes */

_Static_assert(sizeof(struct gpu_cache_header) % 16 == 0, "malloc() aligns the file to 16 bytes");
/* The number changes when all pipelines' layout changes in a way that the shader's key misses. */
static const char magic[16] = "VKNERF SHADER 1";

struct shader {
    struct gpu_device *device;
    VkShaderCreateInfoEXT info; /* to create the shader from SPIR-V */
    uint64_t key;
    char *path; /* file of the binary; NULL: not cached */
};

/* ---- files ----------------------------------------------------------------------------------- */

/* Hashes all inputs of the driver's compiler, and name and version of the driver. */
static uint64_t key_of(const struct shader *shader)
{
    const struct gpu_capabilities *capabilities = &shader->device->support.capabilities;
    const VkShaderCreateInfoEXT *info = &shader->info;
    const VkSpecializationInfo *constants = info->pSpecializationInfo;
    const uint64_t inputs[] = {
        gpu_hash(info->pCode, info->codeSize),
        /* Includes the sizes of subgroup and workgroup. */
        gpu_hash(constants->pData, constants->dataSize),
        info->flags,
        info->pNext != NULL,
        GPU_SETS,
        GPU_SET_BINDINGS,
        GPU_PUSH_BYTES,
        gpu_hash(capabilities->name, strlen(capabilities->name)),
        gpu_hash(capabilities->driver, strlen(capabilities->driver)),
    };
    return gpu_hash(inputs, sizeof inputs);
}

static char *path_of(const struct shader *shader)
{
    char *folder = gpu_cache_path(shader->device, "shaders", "d");
    char *path =
        folder ? base_format("%s/%03x.bin", folder, (unsigned)(shader->key % FILES)) : NULL;
    free(folder);
    return path;
}

/* Creates the shader from its file. Returns false if the file is absent, damaged or of another
 * shader, or the driver rejects it. */
static bool read_binary(const struct shader *shader, VkShaderEXT *created)
{
    BASE_KEEP_ERROR;
    char *file = NULL;
    size_t size = 0;
    if (!shader->path || !base_file_exists(shader->path) ||
        base_file_read(shader->path, FILE_LIMIT, &file, &size) != VKN_OK)
        return false;
    bool done = gpu_cache_valid(file, size, magic, shader->key);
    if (done) {
        VkShaderCreateInfoEXT info = shader->info;
        info.codeType = VK_SHADER_CODE_TYPE_BINARY_EXT;
        info.codeSize = size - sizeof(struct gpu_cache_header);
        info.pCode = file + sizeof(struct gpu_cache_header);
        done = shader->device->vk.vkCreateShadersEXT(shader->device->handle, 1, &info, NULL,
                                                     created) == VK_SUCCESS;
    }
    free(file);
    return done;
}

/* Replaces the file without fsync: after a crash, the hash reveals an incomplete file. */
static bool replace(const char *path, const void *data, size_t size)
{
    struct base_file_writer writer;
    if (!gpu_cache_may_replace(path) || base_file_begin(&writer, path) != VKN_OK)
        return false;
    bool done = writer.temporary && fwrite(data, size, 1, writer.stream) == 1 &&
                fflush(writer.stream) == 0 && rename(writer.temporary, path) == 0;
    base_file_abort(&writer); /* removes the temporary file if it was not renamed */
    return done;
}

/* If saving fails, the next start only takes longer. */
static void write_binary(const struct shader *shader, VkShaderEXT created)
{
    BASE_KEEP_ERROR;
    const struct VolkDeviceTable *vk = &shader->device->vk;
    VkDevice handle = shader->device->handle;
    struct gpu_cache_header *file = NULL;
    size_t size = 0;
    if (!shader->path || vk->vkGetShaderBinaryDataEXT(handle, created, &size, NULL) < 0 || !size ||
        size > FILE_LIMIT - sizeof *file)
        return;
    file = base_alloc(1, sizeof *file + size);
    char *folder = base_path_folder(shader->path);
    if (file && folder &&
        vk->vkGetShaderBinaryDataEXT(handle, created, &size, file + 1) == VK_SUCCESS) {
        gpu_cache_fill_header(file, sizeof *file + size, magic, shader->key);
        if (base_make_folder(folder) != VKN_OK || !replace(shader->path, file, sizeof *file + size))
            base_log(BASE_LOG_DEBUG, "%s: shader not saved", shader->path);
    }
    free(file);
    free(folder);
}

/* ---- creation -------------------------------------------------------------------------------- */

vkn_status gpu_shader_create(struct gpu_device *device, const char *name,
                             const VkPipelineShaderStageCreateInfo *stage, const uint32_t *words,
                             size_t word_count, VkShaderEXT *created)
{
    const VkDescriptorSetLayout sets[GPU_SETS] = {device->set_layout, device->set_layout};
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, GPU_PUSH_BYTES};
    const bool full = stage->flags & VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
    struct shader shader = {
        .device = device,
        .info =
            {
                .sType = VK_STRUCTURE_TYPE_SHADER_CREATE_INFO_EXT,
                .pNext = stage->pNext,
                .flags = full ? VK_SHADER_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT : 0u,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .codeType = VK_SHADER_CODE_TYPE_SPIRV_EXT,
                .codeSize = word_count * sizeof *words,
                .pCode = words,
                .pName = stage->pName,
                .setLayoutCount = GPU_SETS,
                .pSetLayouts = sets,
                .pushConstantRangeCount = 1,
                .pPushConstantRanges = &push,
                .pSpecializationInfo = stage->pSpecializationInfo,
            },
    };
    shader.key = key_of(&shader);
    shader.path = path_of(&shader);
    VkResult result = VK_SUCCESS;
    if (!read_binary(&shader, created)) {
        result = device->vk.vkCreateShadersEXT(device->handle, 1, &shader.info, NULL, created);
        if (result == VK_SUCCESS)
            write_binary(&shader, *created);
    }
    free(shader.path);
    if (result != VK_SUCCESS)
        return gpu_vulkan_fail(result, "vkCreateShadersEXT", name);
    gpu_name(device, VK_OBJECT_TYPE_SHADER_EXT, (uint64_t)*created, name);
    return VKN_OK;
}
