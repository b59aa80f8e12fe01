/* Implements the public functions that return the version, the nearest name and the settings. */
#include <vknerf/vknerf.h>

#include <stdlib.h>
#include <string.h>

#include "config/config.h"

const char *vkn_version(void)
{
    return VKNERF_VERSION;
}

const char *vkn_commit(void)
{
    return base_commit();
}

const char *vkn_nearest_name(const char *word, const char *const *names, size_t count)
{
    return word && names ? config_nearest(word, names, count) : NULL;
}

/* ---- settings ------------------------------------------------------------------------------ */

static void add_values(struct base_text *text, const struct config_setting *setting)
{
    char range[96];
    config_print_range(range, setting, "..");
    if (setting->type == CONFIG_BOOL)
        base_text_add(text, "true|false");
    else if (setting->type == CONFIG_BYTES)
        base_text_add(text, "bytes");
    else if (setting->type == CONFIG_POINTS)
        base_text_add(text, "FILE of lines \"step %s\", %s", setting->point_value, range);
    else if (setting->type == CONFIG_STEPS)
        base_text_add(text, "N, a list 100,500,2000 or a series 100x2");
    else if (setting->type != CONFIG_ENUM)
        base_text_add(text, "%s", range);
    /* The list's title explains "default". */
    size_t first = setting->type == CONFIG_ENUM && strcmp(setting->names[0], "default") == 0;
    for (size_t i = first; setting->type == CONFIG_ENUM && setting->names[i]; i++)
        base_text_add(text, "%s%s", i > first ? "|" : "", setting->names[i]);
    if (setting->count > 1 && setting->type != CONFIG_STEPS)
        base_text_add(text, setting->type == CONFIG_POINTS ? ", up to %zu" : ", %zu of them",
                      setting->count);
    if (setting->multiple > 1)
        base_text_add(text, ", multiples of %u", setting->multiple);
}

size_t vkn_config_setting_count(void)
{
    return config_setting_count;
}

vkn_status vkn_config_setting(size_t index, vkn_setting *given)
{
    static const char *const truths[] = {"true", "false", NULL};
    BASE_NEED(given);
    if (index >= config_setting_count)
        return base_fail(VKN_BAD_INPUT, "%s: there are %zu settings, 0 to %zu, none with index %zu",
                         __func__, config_setting_count, config_setting_count - 1, index);
    const struct config_setting *setting = &config_settings[index];
    const vkn_setting made = {
        .key = setting->key,
        .help = setting->help,
        .choices = setting->type == CONFIG_BOOL ? truths : setting->names,
        .default_text = config_default_text(setting),
    };
    return BASE_FILL(vkn_setting, &made, given, default_text);
}

static void add_setting(struct base_text *text, const struct config_setting *setting)
{
    base_text_add(text, "  %-28s %s\n  %-28s   ", setting->key, setting->help, "");
    add_values(text, setting);
    base_text_add(text, "; default %s\n", config_default_text(setting));
}

char *vkn_config_help(void)
{
    BASE_C_LOCALE;
    struct base_text text = {0};
    for (size_t i = 0; i < config_heading_count; i++) {
        base_text_add(&text, "%s%s:\n", i ? "\n" : "", config_headings[i].title);
        for (size_t k = 0; k < config_setting_count; k++)
            if (config_is_under(&config_settings[k], &config_headings[i]))
                add_setting(&text, &config_settings[k]);
    }
    if (!text.failed)
        return text.data;
    free(text.data);
    return NULL;
}
