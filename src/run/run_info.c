/* Implements vkn_run_field and vkn_run_info_json, without compiling a run's field in GLSL. */
#include <vknerf/field.h>

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "checkpoint/checkpoint.h"
#include "run/internal.h"

/* Opens a run's checkpoint. The caller frees *path. */
static vkn_status open_checkpoint(const char *run, char **path, struct safetensors_file **file)
{
    *file = NULL;
    BASE_TRY(run_find_checkpoint(run, path));
    vkn_status status = safetensors_open(*path, file);
    if (status == VKN_OK)
        return VKN_OK;
    free(*path);
    *path = NULL;
    return status;
}

vkn_status vkn_run_field(const char *run, char **glsl, char sha256[65])
{
    BASE_C_LOCALE;
    BASE_NEED(glsl);
    *glsl = NULL;
    BASE_NEED(run);
    char *path = NULL;
    struct safetensors_file *file = NULL;
    BASE_TRY(open_checkpoint(run, &path, &file));
    const char *text = safetensors_metadata_value(file, CHECKPOINT_FIELD);
    if (sha256)
        sha256[0] = 0;
    if (text && sha256)
        base_sha256(text, strlen(text), sha256);
    *glsl = text ? base_format("%s", text) : NULL;
    vkn_status status = text && !*glsl ? VKN_ERROR : VKN_OK;
    safetensors_close(&file);
    free(path);
    return status;
}

/* ---- vknerf info RUN ------------------------------------------------------------------------- */

static void add_field(cJSON *json, const struct safetensors_file *file)
{
    const char *text = safetensors_metadata_value(file, CHECKPOINT_FIELD);
    char sha256[BASE_SHA256_TEXT];
    if (!text)
        return;
    base_sha256(text, strlen(text), sha256);
    cJSON *field = cJSON_AddObjectToObject(json, "field");
    cJSON_AddNumberToObject(field, "bytes", (double)strlen(text));
    cJSON_AddStringToObject(field, "sha256", sha256);
    cJSON_AddBoolToObject(field, "trusted", vkn_field_is_trusted(sha256));
}

static vkn_status add_setting(cJSON *json, const struct vkn_config *config, const char *key)
{
    char *value = NULL;
    BASE_TRY(vkn_config_get(config, key, &value));
    cJSON_AddStringToObject(json, key, value);
    vkn_free(value);
    return VKN_OK;
}

/* Adds status and failure of the run from its summary. */
static void add_end(cJSON *json, const char *folder)
{
    BASE_KEEP_ERROR;
    cJSON *summary = NULL;
    char *path = base_path_join(folder, RUN_SUMMARY);
    if (path && base_file_exists(path) && base_json_read(path, RUN_JSON_LIMIT, &summary) == VKN_OK)
        for (size_t i = 0; i < 2; i++) {
            const char *name = i == 0 ? "status" : "failure";
            const char *text =
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(summary, name));
            if (text)
                cJSON_AddStringToObject(json, name, text);
        }
    cJSON_Delete(summary);
    free(path);
}

static vkn_status add_run(cJSON *json, const char *path, const struct safetensors_file *file)
{
    const char *text = safetensors_metadata_value(file, CHECKPOINT_CONFIG);
    const char *step = safetensors_metadata_value(file, CHECKPOINT_STEP);
    const char *scene = safetensors_metadata_value(file, CHECKPOINT_SCENE);
    struct vkn_config config = {0};
    if (!text || !step || !scene)
        return base_fail(VKN_BAD_INPUT, "%s: not a checkpoint of vknerf", path);
    BASE_TRY(vkn_config_parse_json(&config, path, text, true));
    cJSON_AddStringToObject(json, "checkpoint", path);
    cJSON_AddStringToObject(json, "scene", scene);
    cJSON_AddNumberToObject(json, "step", strtod(step, NULL));
    uint32_t skipped = 0;
    if (checkpoint_skipped(file, &skipped))
        cJSON_AddNumberToObject(json, "skipped_steps", skipped);
    BASE_TRY(add_setting(json, &config, "model"));
    BASE_TRY(add_setting(json, &config, "precision"));
    add_field(json, file);
    return VKN_OK;
}

/* Adds the members from config.json and summary.json, for a run without a checkpoint. */
static vkn_status add_records(cJSON *json, const char *folder)
{
    static const char *const names[] = {"step", "skipped_steps", "model", "precision"};
    cJSON *config = NULL, *summary = NULL;
    char *config_path = base_path_join(folder, RUN_CONFIG),
         *summary_path = base_path_join(folder, RUN_SUMMARY);
    vkn_status status = config_path && summary_path ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        status = base_json_read(config_path, RUN_JSON_LIMIT, &config);
    if (status == VKN_OK)
        status = base_json_read(summary_path, RUN_JSON_LIMIT, &summary);
    const cJSON *scene = cJSON_GetObjectItemCaseSensitive(config, "scene");
    const char *path = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(scene, "path"));
    if (path)
        cJSON_AddStringToObject(json, "scene", path);
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(summary, names[i]);
        item = item ? item : cJSON_GetObjectItemCaseSensitive(config, names[i]);
        if (cJSON_IsNumber(item) || cJSON_IsString(item))
            cJSON_AddItemToObject(json, names[i], cJSON_Duplicate(item, false));
    }
    cJSON_Delete(config);
    cJSON_Delete(summary);
    free(config_path);
    free(summary_path);
    return status;
}

/* Returns whether the run directory has records but no checkpoint yet. */
static bool has_only_records(const char *run)
{
    static const char *const names[] = {RUN_CHECKPOINT, RUN_CONFIG, RUN_SUMMARY};
    bool exists[BASE_COUNT(names)] = {false};
    for (size_t i = 0; i < BASE_COUNT(names) && base_is_folder(run); i++) {
        char *path = base_path_join(run, names[i]);
        exists[i] = path && base_file_exists(path);
        free(path);
    }
    return !exists[0] && exists[1] && exists[2];
}

vkn_status vkn_run_info_json(const char *run, char **json)
{
    BASE_C_LOCALE;
    BASE_NEED(json);
    *json = NULL;
    BASE_NEED(run);
    char *path = NULL;
    struct safetensors_file *file = NULL;
    bool only_records = has_only_records(run);
    if (!only_records)
        BASE_TRY(open_checkpoint(run, &path, &file));
    cJSON *object = cJSON_CreateObject();
    vkn_status status = only_records ? add_records(object, run) : add_run(object, path, file);
    if (status == VKN_OK && base_is_folder(run))
        add_end(object, run);
    *json = status == VKN_OK ? base_json_print(object) : NULL;
    if (status == VKN_OK && !*json)
        status = VKN_ERROR;
    cJSON_Delete(object);
    safetensors_close(&file);
    free(path);
    return status;
}
