/* The device as the public API sees it. */
#include <vknerf/context.h>

#include <cjson/cJSON.h>
#include <stdlib.h>

#include "train/internal.h"

vkn_status vkn_context_create(const struct vkn_context_params *params, vkn_context **context)
{
    *context = NULL;
    struct vkn_context *c = base_alloc(1, sizeof *c);
    if (!c)
        return VKN_ERROR;
    struct gpu_options options = {.device = params->device, .shader_dir = params->shader_dir};
    vkn_status status = gpu_open(&options, &c->device);
    if (status != VKN_OK) {
        free(c);
        return status;
    }
    *context = c;
    return VKN_OK;
}

void vkn_context_destroy(vkn_context **context)
{
    if (!*context)
        return;
    gpu_close(&(*context)->device);
    free(*context);
    *context = NULL;
}

const char *vkn_context_device_name(const vkn_context *context)
{
    return gpu_device_capabilities(context->device)->name;
}

const char *vkn_context_driver(const vkn_context *context)
{
    return gpu_device_capabilities(context->device)->driver;
}

void vkn_log_quiet(bool quiet)
{
    base_log_threshold(quiet ? BASE_LOG_WARNING : BASE_LOG_INFO);
}

vkn_status vkn_scene_open(const char *path, const struct vkn_config *config, vkn_scene **scene)
{
    struct scene_options options = {
        .path = path,
        .downscale = config->scene.downscale,
        .scale = config->scene.scale,
        .aabb_scale = config->scene.aabb_scale,
    };
    return scene_open(&options, scene);
}

void vkn_scene_close(vkn_scene **scene)
{
    scene_close(scene);
}

/* ---- vknerf info --------------------------------------------------------------------------------
 */

static cJSON *shapes_json(const struct gpu_capabilities *device)
{
    cJSON *shapes = cJSON_CreateArray();
    for (uint32_t i = 0; i < device->shape_count; i++) {
        const struct gpu_matrix_shape *shape = &device->shapes[i];
        char text[96];
        snprintf(text, sizeof text, "%ux%ux%u %s -> %s", shape->m, shape->n, shape->k,
                 shape->a_type, shape->c_type);
        cJSON_AddItemToArray(shapes, cJSON_CreateString(text));
    }
    return shapes;
}

static void add_capabilities(cJSON *json, const struct gpu_capabilities *device)
{
    cJSON_AddStringToObject(json, "name", device->name);
    cJSON_AddStringToObject(json, "type", gpu_device_type_names[device->type]);
    cJSON_AddStringToObject(json, "driver", device->driver);
    char version[32];
    snprintf(version, sizeof version, "%u.%u.%u", device->api_version >> 22,
             device->api_version >> 12 & 0x3ff, device->api_version & 0xfff);
    cJSON_AddStringToObject(json, "vulkan", version);
    cJSON_AddNumberToObject(json, "subgroup_size", device->subgroup_size);
    cJSON_AddNumberToObject(json, "subgroup_min", device->subgroup_min);
    cJSON_AddNumberToObject(json, "subgroup_max", device->subgroup_max);
    cJSON_AddBoolToObject(json, "subgroup_pinnable", device->subgroup_pinnable);
    cJSON_AddBoolToObject(json, "float_atomic_add", device->float_atomic_add);
    cJSON_AddBoolToObject(json, "float16", device->float16);
    cJSON_AddBoolToObject(json, "storage16", device->storage16);
    cJSON_AddBoolToObject(json, "cooperative_matrix", device->cooperative_matrix);
    cJSON_AddBoolToObject(json, "cooperative_matrix2", device->cooperative_matrix2);
    cJSON_AddItemToObject(json, "matrix_shapes", shapes_json(device));
    cJSON_AddNumberToObject(json, "max_shared_memory", device->max_shared_memory);
    cJSON_AddNumberToObject(json, "max_buffer_range", (double)device->max_buffer_range);
    cJSON_AddNumberToObject(json, "device_memory", (double)device->device_memory);
}

/* The chosen device is opened, so that its self-test has run and its capabilities are what is left.
 */
static void add_chosen(cJSON *json, struct gpu_device *device)
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    const struct gpu_self_test *test = gpu_self_test_result(device);
    cJSON *self_test = cJSON_AddObjectToObject(json, "self_test");
    cJSON_AddBoolToObject(self_test, "subgroups", test->subgroups);
    cJSON_AddBoolToObject(self_test, "integer_atomics", test->integer_atomics);
    cJSON_AddBoolToObject(self_test, "float_atomics", test->float_atomics);
    cJSON *paths = cJSON_AddObjectToObject(json, "paths");
    cJSON_AddStringToObject(paths, "precision", "fp32: every operation and every store");
    cJSON_AddStringToObject(
        paths, "gradient_sums",
        capabilities->float_atomic_add
            ? "f32 atomic add; 64-bit fixed point with --deterministic"
            : "64-bit fixed point in two words: the device has no f32 atomic add");
    cJSON_AddNumberToObject(json, "memory_available", (double)gpu_memory_available(device));
}

#define MAX_DEVICES 16

vkn_status vkn_info_json(const struct vkn_context_params *params, char **json)
{
    *json = NULL;
    static struct gpu_capabilities devices[MAX_DEVICES];
    size_t count = 0;
    BASE_TRY(gpu_list(devices, MAX_DEVICES, &count));
    struct gpu_options options = {.device = params->device, .shader_dir = params->shader_dir};
    struct gpu_device *chosen = NULL;
    if (count > 0)
        BASE_TRY(gpu_open(&options, &chosen));

    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", VKNERF_VERSION);
    cJSON *list = cJSON_AddArrayToObject(root, "devices");
    bool found = false;
    for (size_t i = 0; i < count && i < MAX_DEVICES; i++) {
        const struct gpu_capabilities *opened = gpu_device_capabilities(chosen);
        bool is_chosen = !found && devices[i].vendor_id == opened->vendor_id &&
                         devices[i].device_id == opened->device_id &&
                         devices[i].driver_version == opened->driver_version;
        found = found || is_chosen;
        cJSON *device = cJSON_CreateObject();
        cJSON_AddNumberToObject(device, "index", (double)i);
        cJSON_AddBoolToObject(device, "chosen", is_chosen);
        add_capabilities(device, is_chosen ? opened : &devices[i]);
        if (is_chosen)
            add_chosen(device, chosen);
        cJSON_AddItemToArray(list, device);
    }
    *json = cJSON_Print(root);
    cJSON_Delete(root);
    gpu_close(&chosen);
    return *json ? VKN_OK : base_fail(VKN_ERROR, "out of memory");
}
