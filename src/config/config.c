/* Stores settings in struct vkn_config: numbers, names and text, checked against the table. */
#include "config/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- storing -------------------------------------------------------------------------------- */

_Static_assert(sizeof(enum vkn_model) == sizeof(uint32_t), "enums are stored as 32 bits");

static size_t element_size(const struct config_setting *setting)
{
    switch (setting->type) {
    case CONFIG_U64:
    case CONFIG_BYTES:
    case CONFIG_DOUBLE:
    case CONFIG_SECONDS:
        return 8;
    case CONFIG_BOOL:
        return sizeof(bool);
    case CONFIG_POINTS:
        return sizeof(struct vkn_schedule_point);
    default:
        return 4;
    }
}

size_t config_setting_size(const struct config_setting *setting)
{
    return setting->count * element_size(setting);
}

bool config_is_unset(const struct vkn_config *config, const char *key)
{
    const struct config_setting *setting = config_find(key);
    const char *bytes = (const char *)config + setting->offset;
    for (size_t i = 0; i < config_setting_size(setting); i++)
        if (bytes[i])
            return false;
    return true;
}

void config_inherit(struct vkn_config *config, const struct vkn_config *from, const char *key)
{
    const struct config_setting *setting = config_find(key);
    if (config_is_unset(config, key))
        memcpy((char *)config + setting->offset, (const char *)from + setting->offset,
               config_setting_size(setting));
}

static const void *address_of(const struct config_setting *setting, size_t index,
                              const struct vkn_config *config)
{
    return (const char *)config + setting->offset + index * element_size(setting);
}

static void *element(const struct config_setting *setting, size_t index, struct vkn_config *config)
{
    return (char *)config + setting->offset + index * element_size(setting);
}

double config_get(const struct config_setting *setting, size_t index,
                  const struct vkn_config *config)
{
    const void *stored = address_of(setting, index, config);
    switch (setting->type) {
    case CONFIG_U64:
    case CONFIG_BYTES:
        return (double)*(const uint64_t *)stored;
    case CONFIG_FLOAT:
        return (double)*(const float *)stored;
    case CONFIG_DOUBLE:
    case CONFIG_SECONDS:
        return *(const double *)stored;
    case CONFIG_BOOL:
        return *(const bool *)stored;
    default:
        return *(const uint32_t *)stored;
    }
}

void config_put(const struct config_setting *setting, size_t index, double value,
                struct vkn_config *config)
{
    void *stored = element(setting, index, config);
    switch (setting->type) {
    case CONFIG_U64:
    case CONFIG_BYTES:
        *(uint64_t *)stored = (uint64_t)value;
        break;
    case CONFIG_FLOAT:
        *(float *)stored = (float)value;
        break;
    case CONFIG_DOUBLE:
    case CONFIG_SECONDS:
        *(double *)stored = value;
        break;
    case CONFIG_BOOL:
        *(bool *)stored = value != 0.0;
        break;
    default:
        *(uint32_t *)stored = (uint32_t)value;
    }
}

const char *config_print_range(char text[96], const struct config_setting *setting,
                               const char *between)
{
    char low[40], high[40] = "18446744073709551615"; /* the table's double is 2^64 */
    config_print_number(low, setting->minimum, false);
    if (setting->type != CONFIG_U64)
        config_print_number(high, setting->maximum, false);
    snprintf(text, 96, "%s%s%s", low, between, high);
    return text;
}

static vkn_status check_whole(const struct config_setting *setting, const char *source,
                              const struct config_number *number)
{
    char value[40], range[96];
    config_print_number(value, number->value, false);
    if (!number->is_whole)
        return base_json_fail(source, setting->key, "%s is not a whole number", value);
    if (setting->multiple > 0 && number->whole % setting->multiple != 0)
        return base_json_fail(source, setting->key, "%s is not a multiple of %u (%s)", value,
                              setting->multiple, config_print_range(range, setting, " to "));
    return VKN_OK;
}

static bool is_fractional(const struct config_setting *setting)
{
    return setting->type == CONFIG_FLOAT || setting->type == CONFIG_DOUBLE ||
           setting->type == CONFIG_SECONDS;
}

bool config_takes_zero(const struct config_setting *setting)
{
    return setting->zero_is_off || (setting->minimum <= 0.0 && setting->maximum >= 0.0);
}

bool config_negative_is_off(const struct config_setting *setting)
{
    return setting->zero_is_off && setting->minimum < 0.0;
}

/* Returns whether the value is zero once it is rounded to the setting's type. */
static bool is_zero(const struct config_setting *setting, double value)
{
    return setting->type == CONFIG_FLOAT ? (float)value == 0.0f : value == 0.0;
}

static vkn_status out_of_range(const struct config_setting *setting, const char *source,
                               double number, const char *more)
{
    char value[40], range[96];
    config_print_number(value, number, false);
    return base_json_fail(source, setting->key, "%s is out of range (%s%s)", value,
                          config_print_range(range, setting, " to "), more);
}

static vkn_status check_number(const struct config_setting *setting, const char *source,
                               const struct config_number *number)
{
    if (!isfinite(number->value))
        return base_json_fail(source, setting->key, "not a finite number");
    bool zero = is_zero(setting, number->value);
    if (zero ? !config_takes_zero(setting)
             : number->value < setting->minimum || number->value > setting->maximum)
        return out_of_range(setting, source, number->value,
                            zero                   ? ", or default"
                            : setting->zero_is_off ? ", 0 for none"
                                                   : "");
    return is_fractional(setting) ? VKN_OK : check_whole(setting, source, number);
}

/* Returns the value for the struct, which holds -1 for 0 if the setting's negative numbers mean
 * "off". */
static double stored_value(const struct config_setting *setting, double value)
{
    if (config_negative_is_off(setting) && (value < 0.0 || is_zero(setting, value)))
        return -1.0;
    return is_zero(setting, value) ? 0.0 : value;
}

vkn_status config_store_number(const struct config_setting *setting, const char *source,
                               size_t index, const struct config_number *number,
                               struct vkn_config *config)
{
    BASE_TRY(check_number(setting, source, number));
    void *stored = element(setting, index, config);
    if (setting->type == CONFIG_U32 || setting->type == CONFIG_STEPS)
        *(uint32_t *)stored = (uint32_t)number->whole;
    else if (setting->type == CONFIG_U64 || setting->type == CONFIG_BYTES)
        *(uint64_t *)stored = number->whole;
    else if (setting->type == CONFIG_FLOAT)
        *(float *)stored = (float)stored_value(setting, number->value);
    else
        *(double *)stored = stored_value(setting, number->value);
    return VKN_OK;
}

void config_store_default(const struct config_setting *setting, size_t index, size_t count,
                          struct vkn_config *config)
{
    memset(element(setting, index, config), 0, count * element_size(setting));
}

void config_store_bool(const struct config_setting *setting, bool value, struct vkn_config *config)
{
    *(bool *)((char *)config + setting->offset) = value;
}

/* ---- from text ------------------------------------------------------------------------------ */

bool config_parse_number(const char *text, size_t size, struct config_number *number)
{
    char copy[64], *end = NULL;
    if (size == 0 || size >= sizeof(copy) || strspn(text, "+-.0123456789eE") < size)
        return false;
    memcpy(copy, text, size);
    copy[size] = 0;
    number->value = strtod(copy, &end);
    if (end == copy || *end != 0)
        return false;
    errno = 0;
    number->whole = strtoull(copy, &end, 10);
    number->is_whole = *end == 0 && errno == 0 && copy[0] != '-';
    if (!number->is_whole && number->value >= 0.0 && number->value < 9007199254740992.0) {
        number->whole = (uint64_t)number->value;
        number->is_whole = (double)number->whole == number->value;
    }
    return true;
}

/* ---- units ---------------------------------------------------------------------------------- */

struct unit {
    char letter;
    double factor;
};
static const struct unit counts[] = {{'k', 1e3}, {'K', 1e3}, {'m', 1e6}, {'M', 1e6},
                                     {'g', 1e9}, {'G', 1e9}, {0, 0}};
static const struct unit bytes[] = {{'k', 0x1p10}, {'K', 0x1p10}, {'m', 0x1p20}, {'M', 0x1p20},
                                    {'g', 0x1p30}, {'G', 0x1p30}, {0, 0}};
static const struct unit times[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {0, 0}};
static const struct unit none[] = {{0, 0}};

static const struct unit *units_of(const struct config_setting *setting)
{
    return setting->type == CONFIG_BYTES     ? bytes
           : setting->type == CONFIG_SECONDS ? times
           : is_fractional(setting)          ? none
                                             : counts;
}

/* Multiplies a number by a unit's factor. Rounding makes 2.3M, whose product is not exact, a whole
 * number. */
static void scale_number(struct config_number *number, double factor)
{
    double value = number->value * factor, nearest = round(value);
    number->value = fabs(value - nearest) <= 1e-12 * nearest ? nearest : value;
    number->is_whole = number->value >= 0.0 && number->value < 9007199254740992.0;
    number->whole = number->is_whole ? (uint64_t)number->value : 0;
    number->is_whole = (double)number->whole == number->value;
}

/* Parses a number that may end with a unit's letter. */
static bool parse_quantity(const char *text, size_t size, const struct unit *unit,
                           struct config_number *number)
{
    while (size > 0 && unit->letter && unit->letter != text[size - 1])
        unit++;
    if (size == 0 || !unit->letter)
        return config_parse_number(text, size, number);
    if (!config_parse_number(text, size - 1, number))
        return false;
    scale_number(number, unit->factor);
    return true;
}

bool config_parse_count(const char *text, size_t size, struct config_number *number)
{
    return parse_quantity(text, size, counts, number);
}

bool vkn_parse_count(const char *text, uint64_t *count)
{
    struct config_number number;
    if (!text || !count || !config_parse_count(text, strlen(text), &number) || !number.is_whole)
        return false;
    *count = number.whole;
    return true;
}

/* ---- storing text --------------------------------------------------------------------------- */

static vkn_status store_name(const struct config_setting *setting, const char *source,
                             const char *text, struct vkn_config *config)
{
    struct base_text list = {0};
    const char *name = config_value_name(setting, text);
    for (uint32_t i = 0; setting->names[i]; i++) {
        if (strcmp(setting->names[i], name) == 0) {
            free(list.data);
            *(uint32_t *)element(setting, 0, config) = i;
            return VKN_OK;
        }
        base_text_add(&list, "%s%s", i ? ", " : "", setting->names[i]);
    }
    vkn_status status = base_json_fail(source, setting->key, "%s is none of %s", text,
                                       list.failed ? "its names" : list.data);
    free(list.data);
    return status;
}

static vkn_status store_bool(const struct config_setting *setting, const char *source,
                             const char *text, struct vkn_config *config)
{
    bool value = strcmp(text, "true") == 0;
    if (!value && strcmp(text, "false") != 0)
        return base_json_fail(source, setting->key, "%s is neither true nor false", text);
    config_store_bool(setting, value, config);
    return VKN_OK;
}

static vkn_status not_a_number(const struct config_setting *setting, const char *source,
                               const char *text)
{
    if (setting->count > 1)
        return base_json_fail(source, setting->key, "%s is not a list of %zu numbers", text,
                              setting->count);
    return base_json_fail(source, setting->key, "%s is not a number%s", text,
                          setting->type == CONFIG_BYTES     ? " of bytes, such as 512M"
                          : setting->type == CONFIG_SECONDS ? " of seconds, such as 90, 5m or 2h"
                          : is_fractional(setting)          ? ""
                                                            : ", such as 20000 or 20k");
}

/* Stores a list "0.5,0.75,0.9" of exactly `count` elements. */
static vkn_status store_list(const struct config_setting *setting, const char *source,
                             const char *text, struct vkn_config *config)
{
    const char *item = text;
    for (size_t i = 0; i < setting->count; i++) {
        struct config_number number;
        size_t size = strcspn(item, ",");
        if (!parse_quantity(item, size, units_of(setting), &number))
            return not_a_number(setting, source, text);
        BASE_TRY(config_store_number(setting, source, i, &number, config));
        item += size;
        bool has_next = i + 1 < setting->count;
        if (has_next && *item == ',')
            item++;
    }
    return *item == 0 ? VKN_OK
                      : base_json_fail(source, setting->key, "%s: more than %zu number%s", text,
                                       setting->count, setting->count == 1 ? "" : "s");
}

vkn_status config_store_text(const struct config_setting *setting, const char *source,
                             const char *text, struct vkn_config *config)
{
    if (!text[0])
        return base_json_fail(source, setting->key, "its value is missing");
    if (strcmp(text, "default") == 0) {
        config_store_default(setting, 0, setting->count, config);
        return VKN_OK;
    }
    if (setting->type == CONFIG_ENUM)
        return store_name(setting, source, text, config);
    if (setting->type == CONFIG_BOOL)
        return store_bool(setting, source, text, config);
    if (setting->type == CONFIG_POINTS)
        return config_read_points(setting, text, config);
    if (setting->type == CONFIG_STEPS)
        return config_store_steps(setting, source, text, config);
    return store_list(setting, source, text, config);
}

vkn_status vkn_config_set(struct vkn_config *config, const char *source, const char *key,
                          const char *value)
{
    BASE_C_LOCALE;
    BASE_NEED(config);
    BASE_NEED(key);
    BASE_NEED(value);
    if (!source)
        source = __func__;
    const struct config_setting *setting = config_find(key);
    if (!setting)
        return config_unknown(source, key);
    struct vkn_config changed = *config; /* a wrong element of a list must change nothing */
    BASE_TRY(config_store_text(setting, source, value, &changed));
    *config = changed;
    return VKN_OK;
}
