/* Parses, writes and evaluates settings of steps: an interval "500", a list "100,500,2000", a
 * geometric series "100x2". */
#include "config/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

/* Indices of members of struct vkn_steps, counted in 32-bit elements, for config_store_number. */
#define EVERY    (offsetof(struct vkn_steps, every) / sizeof(uint32_t))
#define FIRST_AT (offsetof(struct vkn_steps, at) / sizeof(uint32_t))

#define LEAST_FACTOR 1.01
#define MOST_FACTOR  1024.0

static struct vkn_steps *steps_of(const struct config_setting *setting, struct vkn_config *config)
{
    return (struct vkn_steps *)(void *)((char *)config + setting->offset);
}

vkn_status config_store_every(const struct config_setting *setting, const char *source,
                              const struct config_number *number, struct vkn_config *config)
{
    struct vkn_steps *steps = steps_of(setting, config);
    *steps = (struct vkn_steps){0};
    BASE_TRY(config_store_number(setting, source, EVERY, number, config));
    if (steps->every == 0)
        steps->every = VKN_NO_STEPS;
    return VKN_OK;
}

vkn_status config_store_step(const struct config_setting *setting, const char *source, size_t index,
                             const struct config_number *number, struct vkn_config *config)
{
    struct vkn_steps *steps = steps_of(setting, config);
    if (index == 0)
        *steps = (struct vkn_steps){0};
    if (index == VKN_STEPS)
        return base_json_fail(source, setting->key, "more than %d steps", VKN_STEPS);
    BASE_TRY(config_store_number(setting, source, FIRST_AT + index, number, config));
    uint32_t previous = index > 0 ? steps->at[index - 1] : 0;
    if (steps->at[index] <= previous)
        return base_json_fail(source, setting->key, "step %u does not come after step %u",
                              steps->at[index], previous);
    return VKN_OK;
}

/* ---- text ----------------------------------------------------------------------------------- */

static vkn_status refuse(const struct config_setting *setting, const char *source, const char *text)
{
    return base_json_fail(source, setting->key,
                          "%s is not a number of steps, a list (100,500,2000) or a series (100x2)",
                          text);
}

/* Stores a series such as "100x2"; `cross` points at its x. */
static vkn_status store_series(const struct config_setting *setting, const char *source,
                               const char *text, const char *cross, struct vkn_config *config)
{
    struct config_number first, factor;
    if (!config_parse_count(text, (size_t)(cross - text), &first) ||
        !config_parse_number(cross + 1, strlen(cross + 1), &factor) || first.whole == 0)
        return refuse(setting, source, text);
    if (!(factor.value >= LEAST_FACTOR && factor.value <= MOST_FACTOR))
        return base_json_fail(source, setting->key, "factor %.10g is out of range (%g to %g)",
                              factor.value, LEAST_FACTOR, MOST_FACTOR);
    BASE_TRY(config_store_every(setting, source, &first, config));
    steps_of(setting, config)->factor = (float)factor.value;
    return VKN_OK;
}

vkn_status config_store_steps(const struct config_setting *setting, const char *source,
                              const char *text, struct vkn_config *config)
{
    const char *cross = strchr(text, 'x'), *item = text;
    if (cross)
        return store_series(setting, source, text, cross, config);
    bool is_list = strchr(text, ',') != NULL;
    for (size_t i = 0;; i++) {
        struct config_number number;
        size_t size = strcspn(item, ",");
        if (!config_parse_count(item, size, &number))
            return refuse(setting, source, text);
        BASE_TRY(is_list ? config_store_step(setting, source, i, &number, config)
                         : config_store_every(setting, source, &number, config));
        if (item[size] == 0)
            return VKN_OK;
        item += size + 1;
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static cJSON *series_json(const struct vkn_steps *steps)
{
    char factor[40], text[64];
    config_print_number(factor, (double)steps->factor, true);
    snprintf(text, sizeof(text), "%ux%s", steps->every, factor);
    return cJSON_CreateString(text);
}

cJSON *config_steps_json(const struct config_setting *setting, const struct vkn_config *config)
{
    const struct vkn_steps *steps =
        (const struct vkn_steps *)(const void *)((const char *)config + setting->offset);
    if (steps->factor > 0.0f)
        return series_json(steps);
    if (!config_has_steps(steps))
        return cJSON_CreateNull();
    if (steps->every > 0)
        return cJSON_CreateNumber(steps->every == VKN_NO_STEPS ? 0 : steps->every);
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < VKN_STEPS && steps->at[i] > 0; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(steps->at[i]));
    return list;
}

/* ---- use ------------------------------------------------------------------------------------ */

static uint64_t next_of_series(const struct vkn_steps *steps, uint64_t after)
{
    double step = steps->every;
    while (floor(step + 0.5) <= (double)after)
        step *= (double)steps->factor;
    return step < (double)UINT32_MAX ? (uint64_t)floor(step + 0.5) : UINT32_MAX;
}

bool config_has_steps(const struct vkn_steps *steps)
{
    return steps->every > 0 || steps->at[0] > 0;
}

uint64_t config_next_step(const struct vkn_steps *steps, uint64_t after)
{
    if (steps->every > 0 && steps->every < VKN_NO_STEPS)
        return steps->factor > 0.0f ? next_of_series(steps, after)
                                    : (after / steps->every + 1) * steps->every;
    for (size_t i = 0; i < VKN_STEPS && steps->at[i] > 0; i++)
        if (steps->at[i] > after)
            return steps->at[i];
    return UINT32_MAX;
}
