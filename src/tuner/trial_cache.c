/* Caches the results of trials in a JSON file of the user's cache folder. */
#include "tuner/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

/* Content of the file: {"device": NAME, "driver": TEXT, "paths": {KEY: {"milliseconds": N, "fault":
 * TEXT?, "given_up": true?}}} */
struct field_trial_cache {
    const struct gpu_device *device;
    char *file;
    cJSON *root, *backends; /* backends: the "paths" of root */
    bool changed;
};

#define FILE_LIMIT ((size_t)4 << 20) /* bytes */
#define KEY_SIZE   384u

/* Hashes the constants of the model and the specialisation constants of the shaders: tuning changes
 * the specialisation constants, and so the code. */
static uint32_t hash_constants(const struct vkn_config *config, const struct field_model *model,
                               const struct field_backend *backend)
{
    struct Config values = {0};
    struct gpu_constants constants = {.count = SPEC_COUNT};
    field_configure(config, model, &values, &constants);
    field_backend_configure(backend, &constants);
    uint32_t hash = base_crc32c(0, &values, sizeof values);
    for (int variant = FIELD_VALUES; variant <= FIELD_BACKWARD; variant++) {
        field_backend_specialize(backend, (enum field_variant)variant, &constants);
        hash = base_crc32c(hash, constants.values, sizeof constants.values);
    }
    struct field_tuning tuning = field_backend_tuning(backend);
    return base_crc32c(hash, tuning.values, sizeof tuning.values);
}

/* Returns false if the trial cannot be cached, because a shader is compiled at run time. */
static bool write_key(const struct field_trial_cache *cache, const struct vkn_config *config,
                      const struct field_backend *backend, char key[KEY_SIZE])
{
    char forward[FIELD_SHADER_NAME], backward[FIELD_SHADER_NAME];
    struct field_model model;
    if (field_model_create_canonical(config, &model) != VKN_OK)
        return false;
    uint64_t hashes[2] = {
        workload_hash(cache->device, &model, backend, FIELD_PASS_FORWARD, forward),
        workload_hash(cache->device, &model, backend, FIELD_PASS_BACKWARD, backward)};
    snprintf(key, KEY_SIZE, "%s %016" PRIx64 ", %s %016" PRIx64 ", constants %08x, subgroup %u%s",
             forward, hashes[0], backward, hashes[1], hash_constants(config, &model, backend),
             gpu_device_capabilities(cache->device)->subgroup_size,
             config->deterministic ? ", deterministic" : "");
    return hashes[0] != 0 && hashes[1] != 0;
}

static bool same_text(const cJSON *object, const char *name, const char *text)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

/* Leaves root and backends NULL if the file is absent, damaged or of another device or driver. */
static void read_file(struct field_trial_cache *cache)
{
    const struct gpu_capabilities *device = gpu_device_capabilities(cache->device);
    const char *measure = getenv("VKNERF_MEASURE");
    if ((measure && strcmp(measure, "1") == 0) || !base_file_exists(cache->file))
        return;
    cJSON *root = NULL;
    if (base_json_read(cache->file, FILE_LIMIT, &root) != VKN_OK)
        base_log(BASE_LOG_DEBUG, "%s; measured again", vkn_last_error());
    cJSON *backends = cJSON_GetObjectItemCaseSensitive(root, "paths");
    if (cJSON_IsObject(backends) && same_text(root, "device", device->name) &&
        same_text(root, "driver", device->driver)) {
        cache->root = root;
        cache->backends = backends;
    } else {
        cJSON_Delete(root);
    }
}

struct field_trial_cache *field_trial_cache_open(const struct gpu_device *device)
{
    if (gpu_fault_injected(NULL) || gpu_disabled("self_test"))
        return NULL;
    char *file = gpu_cache_path(device, "paths", "json");
    struct field_trial_cache *cache = file ? base_alloc(1, sizeof *cache) : NULL;
    if (!cache) {
        free(file);
        return NULL;
    }
    *cache = (struct field_trial_cache){.device = device, .file = file};
    read_file(cache);
    if (!cache->backends) {
        const struct gpu_capabilities *capabilities = gpu_device_capabilities(device);
        cache->root = cJSON_CreateObject();
        cJSON_AddStringToObject(cache->root, "device", capabilities->name);
        cJSON_AddStringToObject(cache->root, "driver", capabilities->driver);
        cache->backends = cJSON_AddObjectToObject(cache->root, "paths");
    }
    return cache;
}

bool field_trial_cache_find(const struct field_trial_cache *cache, const struct vkn_config *config,
                            const struct field_backend *backend, struct field_trial *trial)
{
    char key[KEY_SIZE];
    if (!cache || !write_key(cache, config, backend, key))
        return false;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(cache->backends, key);
    const cJSON *fault = cJSON_GetObjectItemCaseSensitive(item, "fault");
    bool given_up = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "given_up"));
    double milliseconds = 0;
    if (!item || (fault && !cJSON_IsString(fault)) ||
        base_json_number(item, "milliseconds", cache->file, !fault && !given_up, 0, 1e9,
                         &milliseconds) != VKN_OK)
        return false;
    *trial = (struct field_trial){.milliseconds = milliseconds, .given_up = given_up};
    if (fault)
        snprintf(trial->fault, sizeof trial->fault, "%s", fault->valuestring);
    return true;
}

void field_trial_cache_add(struct field_trial_cache *cache, const struct vkn_config *config,
                           const struct field_backend *backend, const struct field_trial *trial)
{
    char key[KEY_SIZE];
    if (!cache || !write_key(cache, config, backend, key))
        return;
    cJSON_DeleteItemFromObjectCaseSensitive(cache->backends, key);
    cJSON *item = cJSON_AddObjectToObject(cache->backends, key);
    if (trial->given_up)
        cJSON_AddBoolToObject(item, "given_up", true);
    else if (trial->fault[0])
        cJSON_AddStringToObject(item, "fault", trial->fault);
    else
        cJSON_AddNumberToObject(item, "milliseconds", trial->milliseconds);
    cache->changed = true;
}

static void save(const struct field_trial_cache *cache)
{
    char *text = base_json_print(cache->root), *folder = base_path_folder(cache->file);
    if (!text || !folder || base_make_folder(folder) != VKN_OK ||
        base_file_replace(cache->file, text, strlen(text)) != VKN_OK)
        base_log(BASE_LOG_DEBUG, "measurements are not saved: %s", vkn_last_error());
    free(text);
    free(folder);
}

void field_trial_cache_close(struct field_trial_cache **closed)
{
    BASE_KEEP_ERROR;
    struct field_trial_cache *cache = *closed;
    if (!cache)
        return;
    *closed = NULL;
    if (cache->changed)
        save(cache);
    cJSON_Delete(cache->root);
    free(cache->file);
    free(cache);
}
