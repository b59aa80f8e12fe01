/* Lists values to try for a backend's tunables, and caches the chosen values in a JSON file. */
#include "tuner/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

/* Content of the file: {"tunings": {KEY: {"rounds": N, ..., "forward_speedup": X,
 * "backward_speedup": X}}} */

#define FILE_LIMIT ((size_t)4 << 20) /* bytes */
#define KEY_SIZE   1280u

static const char *const names[FIELD_TUNABLES] = {
    [FIELD_TILES_AT_ONCE] = "rounds",          [FIELD_HOLD_SUMS] = "hold_sums",
    [FIELD_OWNED_ROWS] = "owned_rows",         [FIELD_BACKWARD_ROWS] = "backward_rows",
    [FIELD_BACKWARD_SIZE] = "backward_size",   [FIELD_BACKWARD_GROUPS] = "backward_groups",
    [FIELD_FORWARD_ROWS] = "forward_rows",     [FIELD_FORWARD_SIZE] = "forward_size",
    [FIELD_FORWARD_GROUPS] = "forward_groups", [FIELD_SAMPLE_LANES] = "sample_lanes",
};

const char *field_tunable_name(enum field_tunable tunable)
{
    return names[tunable];
}

/* ---- values to try ----------------------------------------------------------------------- */

static bool has_tunable(const struct field_backend *backend, enum field_tunable tunable)
{
    bool is_coopmat = backend->precision == VKN_PRECISION_COOPMAT, cpu = backend->cpu_kernels;
    switch (tunable) {
    case FIELD_TILES_AT_ONCE:
        return cpu && !is_coopmat;
    case FIELD_OWNED_ROWS:
        return cpu && is_coopmat;
    case FIELD_HOLD_SUMS:
        return !cpu || is_coopmat;
    case FIELD_SAMPLE_LANES:
        return !backend->sums_size && backend->sums != VKN_SUMS_F16;
    case FIELD_BACKWARD_SIZE:
    case FIELD_FORWARD_SIZE:
        return !cpu;
    default:
        return true;
    }
}

uint32_t field_tuning_options(enum field_tunable tunable, const struct field_model *model,
                              const struct gpu_capabilities *device,
                              const struct field_backend *backend,
                              uint32_t values[FIELD_MAX_OPTIONS])
{
    uint32_t count = 0, first = tunable == FIELD_HOLD_SUMS ? 0 : 1;
    bool is_group_count = tunable == FIELD_BACKWARD_GROUPS || tunable == FIELD_FORWARD_GROUPS;
    struct field_tuning tuning = field_backend_tuning(backend);
    uint32_t current = tuning.values[tunable];
    if (model->fused == 0 || !has_tunable(backend, tunable))
        return 0;
    /* Numbers of workgroups range from a quarter to four times the current one; values of other
     * tunables are powers of two. */
    uint32_t least = is_group_count ? (current + 3) / 4 : first,
             most = is_group_count ? 4 * current : 1024;
    for (uint32_t value = least; value <= most && count < FIELD_MAX_OPTIONS;
         value = value ? 2 * value : 1) {
        struct field_backend tuned = *backend;
        tuning.values[tunable] = value;
        if (field_backend_tune(&tuning, model, device, &tuned))
            values[count++] = value;
    }
    return count;
}

/* ---- file -------------------------------------------------------------------------------- */

/* Returns false if the tuning cannot be cached, because a shader is compiled at run time. */
static bool write_key(const struct gpu_device *device, const struct field_model *model,
                      const struct field_backend *backend, char key[KEY_SIZE])
{
    const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
    char forward[FIELD_SHADER_NAME], backward[FIELD_SHADER_NAME], processors[32] = "";
    uint64_t hashes[2] = {workload_hash(device, model, backend, FIELD_PASS_FORWARD, forward),
                          workload_hash(device, model, backend, FIELD_PASS_BACKWARD, backward)};
    char layers[FIELD_MAX_LAYERS * 16];
    uint32_t count = model->fused > 0 ? model->fused : model->layer_count;
    for (uint32_t i = 0, length = 0; i < count; i++)
        length += (uint32_t)snprintf(layers + length, sizeof layers - length, " %ux%u",
                                     model->layers[i].inputs, model->layers[i].outputs);
    if (capabilities->type == GPU_CPU)
        snprintf(processors, sizeof processors, ", %u processors", base_processors());
    snprintf(key, KEY_SIZE, "%s, %s%s, subgroup %u, %s %016" PRIx64 ", %s %016" PRIx64 ", mlp%s",
             capabilities->name, capabilities->driver, processors, capabilities->subgroup_size,
             forward, hashes[0], backward, hashes[1], layers);
    return hashes[0] != 0 && hashes[1] != 0;
}

static cJSON *read_file(const char *file)
{
    cJSON *root = NULL;
    if (!file || !base_file_exists(file))
        return NULL;
    if (base_json_read(file, FILE_LIMIT, &root) != VKN_OK)
        base_log(BASE_LOG_DEBUG, "%s; not used", vkn_last_error());
    if (cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(root, "tunings")))
        return root;
    cJSON_Delete(root);
    return NULL;
}

static bool read_tuning(const cJSON *entry, const char *file, struct field_tuning *tuning)
{
    for (int i = 0; i < FIELD_TUNABLES; i++) {
        double value = 0;
        if (base_json_number(entry, names[i], file, true, 0, UINT16_MAX, &value) != VKN_OK ||
            value != (uint32_t)value)
            return false;
        tuning->values[i] = (uint32_t)value;
    }
    return true;
}

static bool switched_off(const struct vkn_config *config)
{
    const char *measure = getenv("VKNERF_MEASURE");
    return config->deterministic || gpu_disabled("tuning") ||
           (measure && strcmp(measure, "1") == 0) ||
           (gpu_fault_injected(NULL) && !gpu_fault_injected("tuning"));
}

bool field_apply_tuning(const struct gpu_device *device, const struct vkn_config *config,
                        const struct field_model *model, struct field_backend *backend)
{
    char key[KEY_SIZE];
    struct field_tuning tuning;
    if (!model->kind->precisions || switched_off(config) || !write_key(device, model, backend, key))
        return false;
    char *file = gpu_cache_path(device, "tuning", "json");
    cJSON *root = read_file(file);
    const cJSON *entry =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, "tunings"), key);
    bool tuned = cJSON_IsObject(entry) && read_tuning(entry, file, &tuning) &&
                 field_backend_tune(&tuning, model, gpu_device_capabilities(device), backend);
    if (entry && !tuned)
        base_log(BASE_LOG_DEBUG, "%s: not values for this device; not used", file);
    cJSON_Delete(root);
    free(file);
    return tuned;
}

/* ---- saving ------------------------------------------------------------------------------ */

static void add_entry(cJSON *tunings, const char *key, const struct field_backend *backend,
                      const struct field_speedups *speedups)
{
    struct field_tuning tuning = field_backend_tuning(backend);
    cJSON_DeleteItemFromObjectCaseSensitive(tunings, key);
    if (!backend->tuned)
        return;
    cJSON *entry = cJSON_AddObjectToObject(tunings, key);
    for (int i = 0; i < FIELD_TUNABLES; i++)
        cJSON_AddNumberToObject(entry, names[i], tuning.values[i]);
    cJSON_AddNumberToObject(entry, "forward_speedup", speedups->forward);
    cJSON_AddNumberToObject(entry, "backward_speedup", speedups->backward);
}

static vkn_status save(const char *file, const cJSON *root)
{
    char *text = base_json_print(root), *folder = base_path_folder(file);
    vkn_status status = VKN_ERROR;
    if (!text || !folder)
        base_fail(VKN_ERROR, "out of memory");
    else if ((status = base_make_folder(folder)) == VKN_OK)
        status = base_file_replace(file, text, strlen(text));
    free(text);
    free(folder);
    return status;
}

vkn_status field_tuning_save(const struct gpu_device *device, const struct field_model *model,
                             const struct field_backend *backend,
                             const struct field_speedups *speedups)
{
    char key[KEY_SIZE];
    if (!write_key(device, model, backend, key))
        return base_fail(VKN_ERROR, "tuning is not saved for shaders compiled at run time");
    char *file = gpu_cache_path(device, "tuning", "json");
    if (!file)
        return base_fail(VKN_ERROR, "there is no cache folder");
    cJSON *root = read_file(file);
    if (!root) {
        root = cJSON_CreateObject();
        cJSON_AddObjectToObject(root, "tunings");
    }
    add_entry(cJSON_GetObjectItemCaseSensitive(root, "tunings"), key, backend, speedups);
    vkn_status status = save(file, root);
    cJSON_Delete(root);
    free(file);
    return status;
}

/* ---- description ------------------------------------------------------------------------- */

const char *field_tuning_describe(const struct field_backend *backend, char text[FIELD_TUNING_TEXT])
{
    struct field_tuning tuning = field_backend_tuning(backend);
    const char *separator = ": ";
    size_t used =
        (size_t)snprintf(text, FIELD_TUNING_TEXT, "%s", backend->tuned ? "tuned" : "defaults");
    for (int i = 0; i < FIELD_TUNABLES && used < FIELD_TUNING_TEXT; i++) {
        if (!has_tunable(backend, (enum field_tunable)i))
            continue;
        used += (size_t)snprintf(text + used, FIELD_TUNING_TEXT - used, "%s%s %u", separator,
                                 names[i], tuning.values[i]);
        separator = ", ";
    }
    return text;
}
