/* Implements vkn_info_json: lists devices, and what a run would use on the chosen one and why. */
#include <vknerf/context.h>

#include <stdlib.h>

#include <cjson/cJSON.h>

#include "tuner/tuner.h"
#include "config/config.h"
#include "step/step.h"

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

static void add_capabilities(cJSON *json, const struct gpu_capabilities *device, const char *error)
{
    cJSON_AddStringToObject(json, "name", device->name);
    cJSON_AddStringToObject(json, "type", gpu_device_type_names[device->type]);
    cJSON_AddStringToObject(json, "driver", device->driver);
    if (error[0])
        cJSON_AddStringToObject(json, "error", error);
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

/* Returns the precision policy, which is the same on all devices. */
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
        if (field_operation_key(operation))
            cJSON_AddStringToObject(row, "setting", field_operation_key(operation));
        cJSON_AddItemToArray(policy, row);
    }
    return policy;
}

static cJSON *candidates_json(const struct field_choice *choice)
{
    static const char *const verdicts[] = {
        [FIELD_NOT_TRIED] = "not measured",
        [FIELD_UNSUPPORTED] = "not offered",
        [FIELD_WRONG] = "switched off",
        [FIELD_CORRECT] = "right",
    };
    cJSON *candidates = cJSON_CreateArray();
    for (uint32_t i = 0; i < choice->count; i++) {
        const struct field_candidate *candidate = &choice->candidates[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "path", candidate->name);
        cJSON_AddStringToObject(row, "verdict",
                                i == choice->chosen ? "chosen" : verdicts[candidate->verdict]);
        if (candidate->verdict == FIELD_CORRECT && candidate->milliseconds > 0)
            cJSON_AddNumberToObject(row, "milliseconds", candidate->milliseconds);
        cJSON_AddStringToObject(row, "why", i == choice->chosen ? choice->why : candidate->why);
        cJSON_AddItemToArray(candidates, row);
    }
    return candidates;
}

static cJSON *operations_json(const struct field_choice *choice)
{
    const struct field_backend *backend = &choice->candidates[choice->chosen].backend;
    cJSON *operations = cJSON_CreateArray();
    for (int i = 0; i < FIELD_OPERATIONS; i++) {
        enum field_operation operation = (enum field_operation)i;
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "operation", field_operation_name(operation));
        cJSON_AddStringToObject(row, "uses", field_policy_of(operation, backend));
        cJSON_AddStringToObject(row, "why", field_choice_why(choice, operation));
        cJSON_AddItemToArray(operations, row);
    }
    return operations;
}

static void add_backend(cJSON *json, const struct field_choice *choice)
{
    const struct field_candidate *chosen = &choice->candidates[choice->chosen];
    cJSON *backend = cJSON_AddObjectToObject(json, "paths");
    cJSON_AddStringToObject(backend, "precision", config_precision_names[chosen->precision]);
    cJSON_AddStringToObject(backend, "path", chosen->name);
    cJSON_AddStringToObject(backend, "why", choice->why);
    char tuning[FIELD_TUNING_TEXT];
    cJSON_AddStringToObject(backend, "tuning", field_tuning_describe(&chosen->backend, tuning));
    cJSON_AddItemToObject(backend, "candidates", candidates_json(choice));
    cJSON_AddItemToObject(backend, "operations", operations_json(choice));
    cJSON_AddItemToObject(json, "policy", policy_json());
}

/* ---- devices ------------------------------------------------------------------------------- */

#define MAX_DEVICES 16
#define ERROR_SIZE  512

/* A device and the result of its self-test. */
struct tested {
    struct gpu_capabilities capabilities; /* without capabilities that failed the self-test */
    struct gpu_self_test self_test;
    cJSON *certificate;     /* owned; NULL: none */
    char error[ERROR_SIZE]; /* why the device cannot be used; empty: it can */
};

struct survey {
    struct tested devices[MAX_DEVICES];
    size_t count;
    struct gpu_device *chosen; /* NULL: no device can be used */
    struct field_choice choice;
};

static void keep_error(struct tested *tested)
{
    snprintf(tested->error, sizeof tested->error, "%s", vkn_last_error());
}

static void keep_tested(struct tested *tested, const struct gpu_device *device)
{
    tested->capabilities = *gpu_device_capabilities(device);
    tested->self_test = *gpu_self_test_result(device);
    cJSON_Delete(tested->certificate);
    tested->certificate = gpu_certificate(device);
}

/* Opens a device to run its self-test, keeps the result, and closes the device. */
static void test_device(struct survey *survey, size_t index, const struct gpu_options *options)
{
    struct tested *tested = &survey->devices[index];
    struct gpu_device *device = NULL;
    char number[24];
    struct gpu_options of_index = *options;
    snprintf(number, sizeof number, "%zu", index);
    of_index.device = number;
    if (tested->capabilities.unusable)
        snprintf(tested->error, sizeof tested->error, "%s", tested->capabilities.unusable);
    else if (gpu_open(&of_index, &device) == VKN_OK)
        keep_tested(tested, device);
    else
        keep_error(tested);
    gpu_close(&device);
}

/* Chooses the backend of a run with default options, which may have to measure. */
static vkn_status choose_backend(struct gpu_device *device, struct field_choice *choice)
{
    const struct vkn_scene scene = {.downscale = 1, .scale = 1, .aabb_scale = 1};
    struct vkn_config config = {0};
    return setup_choose_precision(device, &scene, &config, choice);
}

/* Opens the device that a run would use and keeps it open. */
static vkn_status choose_device(struct survey *survey, const struct gpu_options *options)
{
    vkn_status status = gpu_open(options, &survey->chosen);
    if (status != VKN_OK)
        return status;
    status = choose_backend(survey->chosen, &survey->choice);
    struct tested *tested = &survey->devices[gpu_device_index(survey->chosen)];
    if (gpu_device_index(survey->chosen) >= survey->count)
        status = base_fail(VKN_ERROR, "more than %d devices", MAX_DEVICES);
    else if (status == VKN_OK)
        keep_tested(tested, survey->chosen);
    else
        keep_error(tested);
    if (status != VKN_OK)
        gpu_close(&survey->chosen);
    return status;
}

static void add_issues(cJSON *json, const struct gpu_capabilities *device)
{
    struct gpu_driver_issue issues[GPU_MAX_DRIVER_ISSUES];
    size_t count = gpu_driver_issues(device, issues);
    cJSON *list = count > 0 ? cJSON_AddArrayToObject(json, "known_problems") : NULL;
    for (size_t i = 0; i < count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "problem", issues[i].problem);
        cJSON_AddStringToObject(row, "advice", issues[i].advice);
        cJSON_AddItemToArray(list, row);
    }
}

static void add_self_test(cJSON *json, const struct gpu_self_test *test)
{
    cJSON *self_test = cJSON_AddObjectToObject(json, "self_test");
    cJSON_AddBoolToObject(self_test, "subgroups", test->subgroups);
    cJSON_AddBoolToObject(self_test, "integer_atomics", test->integer_atomics);
    cJSON_AddBoolToObject(self_test, "float_atomics", test->float_atomics);
    cJSON_AddBoolToObject(self_test, "cas_sums", test->cas_sums);
    cJSON_AddBoolToObject(self_test, "f16_subnormals", test->f16_subnormals);
    cJSON_AddBoolToObject(self_test, "f16_rounds_to_even", test->f16_rounding);
}

/* Returns the parts of a certificate that the description of a device has. */
static cJSON *certificate_json(const cJSON *certificate)
{
    static const char *const members[] = {"date",  "vknerf", "commit",      "full",
                                          "tests", "failed", "switched_off"};
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < BASE_COUNT(members); i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(certificate, members[i]);
        if (item)
            cJSON_AddItemToObject(json, members[i], cJSON_Duplicate(item, true));
    }
    return json;
}

static cJSON *device_json(const struct survey *survey, size_t index)
{
    const struct tested *tested = &survey->devices[index];
    bool chosen = survey->chosen && gpu_device_index(survey->chosen) == index;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "index", (double)index);
    cJSON_AddBoolToObject(json, "chosen", chosen);
    add_capabilities(json, &tested->capabilities, tested->error);
    add_issues(json, &tested->capabilities);
    if (!tested->error[0])
        add_self_test(json, &tested->self_test);
    if (tested->certificate)
        cJSON_AddItemToObject(json, "certificate", certificate_json(tested->certificate));
    if (chosen) {
        add_backend(json, &survey->choice);
        cJSON_AddNumberToObject(json, "memory_available",
                                (double)gpu_memory_available(survey->chosen));
    }
    return json;
}

static char *survey_json(const struct survey *survey)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "version", VKNERF_VERSION);
    cJSON_AddStringToObject(root, "commit", base_commit());
    cJSON *devices = cJSON_AddArrayToObject(root, "devices");
    for (size_t i = 0; i < survey->count; i++)
        cJSON_AddItemToArray(devices, device_json(survey, i));
    char *json = base_json_print(root);
    cJSON_Delete(root);
    return json;
}

static vkn_status list_devices(struct survey *survey)
{
    struct gpu_capabilities *devices = base_alloc(MAX_DEVICES, sizeof *devices);
    if (!devices)
        return VKN_ERROR;
    vkn_status status = gpu_list(devices, MAX_DEVICES, &survey->count);
    survey->count = survey->count < MAX_DEVICES ? survey->count : MAX_DEVICES;
    for (size_t i = 0; i < survey->count; i++)
        survey->devices[i].capabilities = devices[i];
    free(devices);
    return status;
}

/* Tests all devices, the chosen one first. Returns the status and message of the choice. */
static vkn_status survey_devices(struct survey *survey, const struct gpu_options *options)
{
    char message[ERROR_SIZE];
    BASE_TRY(list_devices(survey));
    vkn_status status = choose_device(survey, options);
    snprintf(message, sizeof message, "%s", vkn_last_error());
    for (size_t i = 0; i < survey->count; i++)
        if (!survey->devices[i].error[0] &&
            !(survey->chosen && gpu_device_index(survey->chosen) == i))
            test_device(survey, i, options);
    return status == VKN_OK ? VKN_OK : base_fail(status, "%s", message);
}

vkn_status vkn_info_json(const struct vkn_context_params *params, char **json)
{
    BASE_C_LOCALE;
    BASE_NEED(json);
    *json = NULL;
    struct gpu_options options;
    BASE_TRY(context_options(params, &options));
    struct survey *survey = base_alloc(1, sizeof *survey);
    if (!survey)
        return VKN_ERROR;
    vkn_status status = survey_devices(survey, &options);
    if (survey->count > 0) {
        *json = survey_json(survey);
        if (!*json && status == VKN_OK)
            status = VKN_ERROR;
    }
    gpu_close(&survey->chosen);
    for (size_t i = 0; i < survey->count; i++)
        cJSON_Delete(survey->devices[i].certificate);
    free(survey);
    return status;
}
