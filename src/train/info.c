/* What vknerf info says: devices, what they offer, what a run would use and why. */
#include <vknerf/context.h>

#include <cjson/cJSON.h>

#include "field/tuning.h"
#include "train/precision.h"

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

/* The table, whatever the device. */
static cJSON *policy_json(void)
{
    cJSON *policy = cJSON_CreateArray();
    for (int i = 0; i < FIELD_OPERATIONS; i++) {
        enum field_operation operation = (enum field_operation)i;
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "operation", field_operation_name(operation));
        cJSON_AddStringToObject(row, "fp32", field_policy(operation, VKN_PRECISION_FP32));
        cJSON_AddStringToObject(row, "fp16", field_policy(operation, VKN_PRECISION_FP16));
        cJSON_AddStringToObject(row, "coopmat", field_policy(operation, VKN_PRECISION_COOPMAT));
        cJSON_AddItemToArray(policy, row);
    }
    return policy;
}

static cJSON *candidates_json(const struct field_choice *choice)
{
    static const char *const verdicts[] = {
        [FIELD_NOT_TRIED] = "not measured",
        [FIELD_NOT_OFFERED] = "not offered",
        [FIELD_WRONG] = "switched off",
        [FIELD_RIGHT] = "right",
    };
    cJSON *candidates = cJSON_CreateArray();
    for (uint32_t i = 0; i < choice->count; i++) {
        const struct field_candidate *candidate = &choice->candidates[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "path", candidate->name);
        cJSON_AddStringToObject(row, "verdict",
                                i == choice->chosen ? "chosen" : verdicts[candidate->verdict]);
        if (candidate->verdict == FIELD_RIGHT && candidate->milliseconds > 0)
            cJSON_AddNumberToObject(row, "milliseconds", candidate->milliseconds);
        cJSON_AddStringToObject(row, "why", i == choice->chosen ? choice->why : candidate->why);
        cJSON_AddItemToArray(candidates, row);
    }
    return candidates;
}

static cJSON *operations_json(const struct field_choice *choice)
{
    const struct field_path *path = &choice->candidates[choice->chosen].path;
    cJSON *operations = cJSON_CreateArray();
    for (int i = 0; i < FIELD_OPERATIONS; i++) {
        enum field_operation operation = (enum field_operation)i;
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "operation", field_operation_name(operation));
        cJSON_AddStringToObject(row, "uses", field_policy_of(operation, path));
        cJSON_AddStringToObject(row, "why", field_choice_why(choice, operation));
        cJSON_AddItemToArray(operations, row);
    }
    return operations;
}

/* What a run without any option would use: chosen as there, so measured if it has to be. */
static vkn_status choose_path(struct gpu_device *device, struct field_choice *choice)
{
    const struct scene scene = {.downscale = 1, .scale = 1, .aabb_scale = 1};
    struct vkn_config config = {0};
    return train_choose_precision(device, &scene, &config, choice);
}

static void add_paths(cJSON *json, const struct field_choice *choice)
{
    static const char *const names[] = {[VKN_PRECISION_FP32] = "fp32",
                                        [VKN_PRECISION_FP16] = "fp16",
                                        [VKN_PRECISION_COOPMAT] = "coopmat"};
    const struct field_candidate *chosen = &choice->candidates[choice->chosen];
    cJSON *paths = cJSON_AddObjectToObject(json, "paths");
    cJSON_AddStringToObject(paths, "precision", names[chosen->precision]);
    cJSON_AddStringToObject(paths, "path", chosen->name);
    cJSON_AddStringToObject(paths, "why", choice->why);
    char tuning[FIELD_TUNING_TEXT];
    cJSON_AddStringToObject(paths, "tuning", field_tuning_describe(&chosen->path, tuning));
    cJSON_AddItemToObject(paths, "candidates", candidates_json(choice));
    cJSON_AddItemToObject(paths, "operations", operations_json(choice));
    cJSON_AddItemToObject(json, "policy", policy_json());
}

/* The chosen device is opened, so that its self-tests have run and its capabilities are what is
 * left. */
static void add_chosen(cJSON *json, const struct gpu_device *device,
                       const struct field_choice *choice)
{
    const struct gpu_self_test *test = gpu_self_test_result(device);
    cJSON *self_test = cJSON_AddObjectToObject(json, "self_test");
    cJSON_AddBoolToObject(self_test, "subgroups", test->subgroups);
    cJSON_AddBoolToObject(self_test, "integer_atomics", test->integer_atomics);
    cJSON_AddBoolToObject(self_test, "float_atomics", test->float_atomics);
    add_paths(json, choice);
    cJSON_AddNumberToObject(json, "memory_available", (double)gpu_memory_available(device));
}

#define MAX_DEVICES 16

static cJSON *devices_json(const struct gpu_capabilities *devices, size_t count,
                           const struct gpu_device *chosen, const struct field_choice *choice)
{
    cJSON *list = cJSON_CreateArray();
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
            add_chosen(device, chosen, choice);
        cJSON_AddItemToArray(list, device);
    }
    return list;
}

vkn_status vkn_info_json(const struct vkn_context_params *params, char **json)
{
    *json = NULL;
    static struct gpu_capabilities devices[MAX_DEVICES];
    size_t count = 0;
    BASE_TRY(gpu_list(devices, MAX_DEVICES, &count));
    struct gpu_options options = {.device = params->device, .shader_dir = params->shader_dir};
    struct gpu_device *chosen = NULL;
    struct field_choice choice = {0};
    vkn_status status = VKN_OK;
    if (count > 0)
        status = gpu_open(&options, &chosen);
    if (chosen)
        status = choose_path(chosen, &choice);
    if (status == VKN_OK) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "version", VKNERF_VERSION);
        cJSON_AddItemToObject(root, "devices", devices_json(devices, count, chosen, &choice));
        *json = cJSON_Print(root);
        cJSON_Delete(root);
        status = *json ? VKN_OK : base_fail(VKN_ERROR, "out of memory");
    }
    gpu_close(&chosen);
    return status;
}
