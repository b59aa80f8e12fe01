/* Reading checkpoints: what all files of that format have. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/internal.h"

char *checkpoint_scene(const struct safetensors_file *file)
{
    const char *path = safetensors_metadata_value(file, CHECKPOINT_SCENE);
    const char *bytes = safetensors_metadata_value(file, CHECKPOINT_SCENE_BYTES);
    char *scene = base_format("%s", bytes ? bytes : path);
    if (!scene || !bytes)
        return scene;
    size_t size = strlen(bytes) / 2;
    for (size_t i = 0; i < size; i++) {
        const char digits[3] = {bytes[2 * i], bytes[2 * i + 1], 0};
        scene[i] = (char)strtoul(digits, NULL, 16);
    }
    scene[size] = 0;
    return scene;
}

static vkn_status check_format(const char *path, const struct safetensors_file *file)
{
    const char *format = safetensors_metadata_value(file, CHECKPOINT_FORMAT);
    if (!format)
        return base_fail(VKN_BAD_INPUT, "%s: not a checkpoint of vknerf (no %s)", path,
                         CHECKPOINT_FORMAT);
    if (strcmp(format, CHECKPOINT_FORMAT_VALUE) != 0)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %s: format %s is that of another version of vknerf; this one reads "
                         "format %s",
                         path, CHECKPOINT_FORMAT, format, CHECKPOINT_FORMAT_VALUE);
    return VKN_OK;
}

vkn_status checkpoint_open(const char *path, struct safetensors_file **file)
{
    BASE_TRY(safetensors_open(path, file));
    vkn_status status = check_format(path, *file);
    if (status == VKN_OK)
        status = checkpoint_check(path, *file);
    if (status != VKN_OK)
        safetensors_close(file);
    return status;
}
