/* Reads and writes settings as JSON: nested objects, or whole keys such as "grid.levels". */
#include "config/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#define PATH_SIZE 128

/* ---- reading -------------------------------------------------------------------------------- */

struct reading {
    struct vkn_config *config;
    const char *source;
    bool ignore_unknown;
};

static vkn_status parse_number(const struct reading *reading, const struct config_setting *setting,
                               const cJSON *item, struct config_number *number)
{
    if (!cJSON_IsNumber(item))
        return base_json_fail(reading->source, setting->key, "not a number");
    *number = (struct config_number){.value = item->valuedouble};
    /* Doubles are exact up to 2^53. */
    if (number->value >= 0.0 && number->value <= 9007199254740992.0) {
        number->whole = (uint64_t)number->value;
        number->is_whole = (double)number->whole == number->value;
    }
    return VKN_OK;
}

static vkn_status read_number(const struct reading *reading, const struct config_setting *setting,
                              size_t index, const cJSON *item)
{
    /* Runs of earlier versions recorded unset settings as 0. */
    bool old_default = reading->ignore_unknown && cJSON_IsNumber(item) &&
                       item->valuedouble == 0.0 && !config_takes_zero(setting);
    if (cJSON_IsNull(item) || old_default) {
        config_store_default(setting, index, 1, reading->config);
        return VKN_OK;
    }
    struct config_number number;
    BASE_TRY(parse_number(reading, setting, item, &number));
    return config_store_number(setting, reading->source, index, &number, reading->config);
}

/* Reads a number of steps, or a list of steps. */
static vkn_status read_steps(const struct reading *reading, const struct config_setting *setting,
                             const cJSON *item)
{
    struct config_number number = {.is_whole = true};
    bool is_list = cJSON_IsArray(item);
    if (!is_list || cJSON_GetArraySize(item) == 0) { /* an empty list means 0, only at the end */
        if (!is_list)
            BASE_TRY(parse_number(reading, setting, item, &number));
        return config_store_every(setting, reading->source, &number, reading->config);
    }
    size_t index = 0;
    const cJSON *step;
    cJSON_ArrayForEach (step, item) {
        BASE_TRY(parse_number(reading, setting, step, &number));
        BASE_TRY(config_store_step(setting, reading->source, index++, &number, reading->config));
    }
    return VKN_OK;
}

static vkn_status read_numbers(const struct reading *reading, const struct config_setting *setting,
                               const cJSON *item)
{
    if ((size_t)cJSON_GetArraySize(item) != setting->count)
        return base_json_fail(reading->source, setting->key, "not a list of %zu numbers",
                              setting->count);
    size_t index = 0;
    const cJSON *number;
    cJSON_ArrayForEach (number, item)
        BASE_TRY(read_number(reading, setting, index++, number));
    return VKN_OK;
}

static vkn_status read_setting(const struct reading *reading, const struct config_setting *setting,
                               const cJSON *item)
{
    if (cJSON_IsNull(item)) {
        config_store_default(setting, 0, setting->count, reading->config);
        return VKN_OK;
    }
    /* Strings are names, numbers that a double cannot hold (seeds), and files of points. */
    if (cJSON_IsString(item) && setting->type == CONFIG_POINTS && item->valuestring[0] &&
        strcmp(item->valuestring, "default") != 0)
        BASE_TRY(config_check_file(reading->source, setting->key, item->valuestring));
    if (cJSON_IsString(item))
        return config_store_text(setting, reading->source, item->valuestring, reading->config);
    if (setting->type == CONFIG_ENUM)
        return base_json_fail(reading->source, setting->key, "not a string");
    if (setting->type == CONFIG_BOOL) {
        if (!cJSON_IsBool(item))
            return base_json_fail(reading->source, setting->key, "not true or false");
        config_store_bool(setting, cJSON_IsTrue(item) != 0, reading->config);
        return VKN_OK;
    }
    if (setting->type == CONFIG_POINTS)
        return config_parse_points(setting, reading->source, item, reading->config);
    if (setting->type == CONFIG_STEPS)
        return read_steps(reading, setting, item);
    if (setting->count > 1 && cJSON_IsArray(item))
        return read_numbers(reading, setting, item);
    return setting->count > 1 ? base_json_fail(reading->source, setting->key,
                                               "not a list of %zu numbers", setting->count)
                              : read_number(reading, setting, 0, item);
}

/* Returns whether config.json of a run has this key besides settings. Such keys are ignored, so
 * that the file works with --config. */
static bool is_record(const char *path)
{
    static const char *const records[] = {"version", "commit",  "device",       "driver",
                                          "path",    "command", "resumed_with", "scene.path"};
    for (size_t i = 0; i < BASE_COUNT(records); i++)
        if (strcmp(records[i], path) == 0)
            return true;
    return false;
}

/* Reads an object; the recursion is as deep as the JSON, which the parser limits. */
static vkn_status read_object(const struct reading *reading, const char *group, const cJSON *object)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, object) {
        char path[PATH_SIZE];
        snprintf(path, sizeof(path), "%s%s%s", group, group[0] ? "." : "", item->string);
        const struct config_setting *setting = config_find(path);
        if (setting)
            BASE_TRY(read_setting(reading, setting, item));
        else if (cJSON_IsObject(item))
            BASE_TRY(read_object(reading, path, item));
        else if (!reading->ignore_unknown && !is_record(path))
            return config_unknown(reading->source, path);
    }
    return VKN_OK;
}

/* Applies a tree and deletes it. A tree with an error changes nothing. */
static vkn_status apply_tree(const char *source, cJSON *tree, bool ignore_unknown,
                             struct vkn_config *config)
{
    struct vkn_config changed = *config;
    const struct reading reading = {&changed, source, ignore_unknown};
    vkn_status status = cJSON_IsObject(tree)
                            ? config_import_tcnn(source, tree, &changed)
                            : base_fail(VKN_BAD_INPUT, "%s: not a JSON object", source);
    if (status == VKN_OK)
        status = read_object(&reading, "", tree);
    cJSON_Delete(tree);
    if (status == VKN_OK)
        *config = changed;
    return status;
}

vkn_status vkn_config_parse_json(struct vkn_config *config, const char *source, const char *json,
                                 bool ignore_unknown)
{
    BASE_C_LOCALE;
    BASE_NEED(config);
    BASE_NEED(json);
    if (!source)
        source = __func__;
    cJSON *tree = NULL;
    BASE_TRY(base_json_parse(source, json, strlen(json), &tree));
    return apply_tree(source, tree, ignore_unknown, config);
}

vkn_status vkn_config_read_json(struct vkn_config *config, const char *file)
{
    BASE_C_LOCALE;
    BASE_NEED(config);
    BASE_NEED(file);
    cJSON *tree = NULL;
    BASE_TRY(config_read_tree(file, &tree));
    return apply_tree(file, tree, false, config);
}

/* ---- writing -------------------------------------------------------------------------------- */

void config_print_number(char text[40], double value, bool single)
{
    for (int digits = single ? 6 : 15; digits <= 17; digits++) {
        snprintf(text, 40, "%.*g", digits, value);
        double read = strtod(text, NULL);
        if (single ? (float)read == (float)value : read == value)
            return;
    }
}

/* Writes an unset setting as null, and -1 as 0 if the setting's negative numbers mean "off". */
static void print_float(char text[40], const struct config_setting *setting, double value,
                        bool single)
{
    bool negative_is_off = config_negative_is_off(setting);
    if (value == 0.0 && (negative_is_off || !config_takes_zero(setting)))
        snprintf(text, 40, "null");
    else
        config_print_number(text, negative_is_off ? fmax(value, 0.0) : value, single);
}

static void print_whole(char text[40], const struct config_setting *setting, uint64_t value)
{
    if (value == 0 && !config_takes_zero(setting))
        snprintf(text, 40, "null");
    else if (value <= 9007199254740992u)
        snprintf(text, 40, "%" PRIu64, value);
    else /* as a string: most readers of JSON would round it */
        snprintf(text, 40, "\"%" PRIu64 "\"", value);
}

static void print_element(char text[40], const struct config_setting *setting, const char *stored)
{
    if (setting->type == CONFIG_FLOAT)
        print_float(text, setting, (double)*(const float *)stored, true);
    else if (setting->type == CONFIG_DOUBLE || setting->type == CONFIG_SECONDS)
        print_float(text, setting, *(const double *)stored, false);
    else if (setting->type == CONFIG_U32)
        print_whole(text, setting, *(const uint32_t *)stored);
    else
        print_whole(text, setting, *(const uint64_t *)stored);
}

cJSON *config_setting_json(const struct config_setting *setting, const struct vkn_config *config)
{
    const char *stored = (const char *)config + setting->offset;
    char text[40];
    if (setting->type == CONFIG_BOOL)
        return cJSON_CreateBool(*(const bool *)stored);
    if (setting->type == CONFIG_ENUM)
        return cJSON_CreateString(setting->names[*(const uint32_t *)stored]);
    if (setting->type == CONFIG_POINTS)
        return config_points_json(setting, config);
    if (setting->type == CONFIG_STEPS)
        return config_steps_json(setting, config);
    if (setting->count == 1) {
        print_element(text, setting, stored);
        return cJSON_CreateRaw(text);
    }
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < setting->count; i++) {
        print_element(text, setting, stored + i * (config_setting_size(setting) / setting->count));
        cJSON_AddItemToArray(list, cJSON_CreateRaw(text));
    }
    return list;
}

static void add_setting(cJSON *root, const struct config_setting *setting,
                        const struct vkn_config *config)
{
    const char *dot = strchr(setting->key, '.');
    cJSON *object = root, *item = config_setting_json(setting, config);
    if (dot) {
        char group[PATH_SIZE];
        snprintf(group, sizeof(group), "%.*s", (int)(dot - setting->key), setting->key);
        object = cJSON_GetObjectItemCaseSensitive(root, group);
        if (!object)
            object = cJSON_AddObjectToObject(root, group);
    }
    if (!cJSON_AddItemToObject(object, dot ? dot + 1 : setting->key, item))
        cJSON_Delete(item);
}

char *vkn_config_write_json(const struct vkn_config *config)
{
    BASE_C_LOCALE;
    cJSON *root = cJSON_CreateObject();
    for (size_t i = 0; i < config_setting_count; i++)
        add_setting(root, &config_settings[i], config_or_default(config));
    char *text = base_json_print(root);
    cJSON_Delete(root);
    return text;
}
