/* Reads the certificate of a device (vknerf certify), and switches off the features whose tests
 * have failed. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "gpu/internal.h"

#define CERTIFICATE_LIMIT ((size_t)1 << 20)

cJSON *gpu_certificate(const struct gpu_device *device)
{
    BASE_KEEP_ERROR;
    cJSON *json = NULL;
    if (gpu_disabled("certificate"))
        return NULL;
    char *path = gpu_cache_path(device, GPU_CERTIFICATE, "json");
    if (path && base_file_exists(path) && base_json_read(path, CERTIFICATE_LIMIT, &json) != VKN_OK)
        base_log(BASE_LOG_DEBUG, "%s", vkn_last_error());
    free(path);
    return json;
}

/* Removes the matrix shapes that a feature "matrix_MxNxK" stands for. Returns whether there were
 * any. */
static bool remove_shapes(struct gpu_device *device, const char *feature)
{
    struct gpu_capabilities *capabilities = &device->support.capabilities;
    uint32_t before = capabilities->shape_count;
    for (uint32_t i = before; i-- > 0;) {
        const struct gpu_matrix_shape *shape = &capabilities->shapes[i];
        char name[64];
        snprintf(name, sizeof name, "matrix_%ux%ux%u", shape->m, shape->n, shape->k);
        if (strcmp(name, feature) == 0)
            gpu_remove_matrix_shape(device, i);
    }
    return capabilities->shape_count < before;
}

static bool switch_off(bool *capability)
{
    bool before = *capability;
    *capability = false;
    return before;
}

/* Returns whether the feature was on. */
static bool switch_off_feature(struct gpu_device *device, const char *feature)
{
    struct gpu_capabilities *capabilities = &device->support.capabilities;
    if (strcmp(feature, "float16") == 0)
        return switch_off(&capabilities->float16);
    if (strcmp(feature, "float_atomics") == 0)
        return switch_off(&capabilities->float_atomic_add);
    if (strcmp(feature, "cas_sums") == 0)
        return switch_off(&capabilities->cas_sums);
    if (strcmp(feature, "packed_f16_atomics") == 0)
        return switch_off(&capabilities->packed_f16_atomics);
    return remove_shapes(device, feature);
}

void gpu_apply_certificate(struct gpu_device *device)
{
    cJSON *json = gpu_certificate(device);
    const cJSON *entry;
    cJSON_ArrayForEach (entry, cJSON_GetObjectItemCaseSensitive(json, "switched_off")) {
        const char *feature = base_json_text(entry, "feature");
        if (switch_off_feature(device, feature))
            base_log(BASE_LOG_WARNING,
                     "\"%s\": %s is switched off: in the certificate of %.10s %s has failed in %s; "
                     "vknerf certify tests again",
                     device->support.capabilities.name, feature, base_json_text(json, "date"),
                     base_json_text(entry, "test"), base_json_text(entry, "pass"));
    }
    cJSON_Delete(json);
}
