/* Implements vkn_config: creates, copies and destroys configurations, and gets settings by key. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "config/internal.h"

static const struct vkn_config all_unset;

const struct vkn_config *config_or_default(const vkn_config *config)
{
    return config ? config : &all_unset;
}

vkn_status vkn_config_create(vkn_config **config)
{
    BASE_NEED(config);
    return vkn_config_copy(NULL, config);
}

vkn_status vkn_config_copy(const vkn_config *from, vkn_config **config)
{
    BASE_NEED(config);
    *config = base_alloc(1, sizeof **config);
    if (!*config)
        return VKN_ERROR;
    **config = *config_or_default(from);
    return VKN_OK;
}

void vkn_config_destroy(vkn_config **config)
{
    if (!config)
        return;
    free(*config);
    *config = NULL;
}

vkn_status vkn_config_set_number(vkn_config *config, const char *key, double value)
{
    BASE_C_LOCALE;
    BASE_NEED(config);
    BASE_NEED(key);
    char text[40];
    config_print_number(text, value, false);
    return vkn_config_set(config, __func__, key, text);
}

/* Removes brackets, quotes and blanks from JSON: vkn_config_set accepts lists as 1,2,3. */
static void strip(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (!strchr("[]\" \n\t", *from))
            *to++ = *from;
    *to = 0;
}

vkn_status vkn_config_get(const vkn_config *config, const char *key, char **value)
{
    BASE_C_LOCALE;
    BASE_NEED(key);
    BASE_NEED(value);
    *value = NULL;
    const struct config_setting *setting = config_find(key);
    if (!setting)
        return config_unknown(__func__, key);
    if (setting->type == CONFIG_POINTS)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %s: the points of a schedule cannot be returned as text", __func__,
                         key);
    const struct vkn_config *from = config_or_default(config);
    cJSON *item = config_setting_json(setting, from);
    char *text = base_json_print(item);
    cJSON_Delete(item);
    if (!text)
        return VKN_ERROR;
    strip(text);
    bool is_unset = strcmp(text, "null") == 0 || (setting->count > 1 && config_is_unset(from, key));
    if (is_unset) {
        free(text);
        text = base_format("default");
    }
    *value = text;
    return text ? VKN_OK : VKN_ERROR;
}
