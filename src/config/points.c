/* Reads schedules, lists of points (step, value), from text files and JSON, and writes them as
 * JSON. */
#include "config/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#define FILE_LIMIT ((size_t)1 << 20) /* bytes */

/* ---- points --------------------------------------------------------------------------------- */

/* The list of a setting while points are added. */
struct points {
    const struct config_setting *setting;
    const char *source; /* file or function, begins messages */
    struct vkn_schedule_point *items;
    size_t count;
};

static struct points points_of(const struct config_setting *setting, const char *source,
                               struct vkn_config *config)
{
    struct points points = {.setting = setting, .source = source};
    points.items = (struct vkn_schedule_point *)(void *)((char *)config + setting->offset);
    memset(points.items, 0, setting->count * sizeof(*points.items));
    return points;
}

/* Checks and adds a point; `where` names its line or element in messages. */
static vkn_status add_point(struct points *points, const char *where, double step, double value)
{
    const struct config_setting *setting = points->setting;
    if (points->count == setting->count)
        return base_json_fail(points->source, where, "more than %zu points", setting->count);
    if (!(step >= 0.0 && step <= (double)UINT32_MAX && floor(step) == step))
        return base_json_fail(points->source, where,
                              "step %.10g is not a whole number from 0 to %u", step, UINT32_MAX);
    if (!(value >= setting->minimum && value <= setting->maximum))
        return base_json_fail(points->source, where, "%s %.10g is out of range (%.10g to %.10g)",
                              setting->point_value, value, setting->minimum, setting->maximum);
    if (points->count > 0 && step <= points->items[points->count - 1].step)
        return base_json_fail(points->source, where, "step %.10g does not come after step %u", step,
                              points->items[points->count - 1].step);
    points->items[points->count++] = (struct vkn_schedule_point){(uint32_t)step, (float)value};
    return VKN_OK;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* Adds the elements of a JSON list; `list` names it in messages: "loss_scale.schedule[2]: ...". */
static vkn_status parse_elements(struct points *points, const char *list, const cJSON *json)
{
    if (!cJSON_IsArray(json))
        return base_json_fail(points->source, list, "not a list of [step, %s]",
                              points->setting->point_value);
    const cJSON *item;
    size_t index = 0;
    cJSON_ArrayForEach (item, json) {
        char where[64];
        snprintf(where, sizeof(where), "%s[%zu]", list, index++);
        const cJSON *step = cJSON_GetArrayItem(item, 0), *value = cJSON_GetArrayItem(item, 1);
        if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 || !cJSON_IsNumber(step) ||
            !cJSON_IsNumber(value))
            return base_json_fail(points->source, where, "not [step, %s]",
                                  points->setting->point_value);
        BASE_TRY(add_point(points, where, step->valuedouble, value->valuedouble));
    }
    return VKN_OK;
}

vkn_status config_parse_points(const struct config_setting *setting, const char *source,
                               const cJSON *list, struct vkn_config *config)
{
    struct points points = points_of(setting, source, config);
    return parse_elements(&points, setting->key, list);
}

cJSON *config_points_json(const struct config_setting *setting, const struct vkn_config *config)
{
    const struct vkn_schedule_point *items =
        (const struct vkn_schedule_point *)(const void *)((const char *)config + setting->offset);
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < setting->count && items[i].value > 0.0f; i++) {
        char value[40];
        config_print_number(value, (double)items[i].value, true);
        cJSON *point = cJSON_CreateArray();
        cJSON_AddItemToArray(point, cJSON_CreateNumber(items[i].step));
        cJSON_AddItemToArray(point, cJSON_CreateRaw(value));
        cJSON_AddItemToArray(list, point);
    }
    return list;
}

/* ---- files ---------------------------------------------------------------------------------- */

#define BLANKS " \t\r\v\f"

/* Adds the point of a line "500 1024" or "500, 1024", if any; a # begins a comment. */
static vkn_status parse_line(struct points *points, size_t number, char *line)
{
    char where[32], *end;
    snprintf(where, sizeof(where), "line %zu", number);
    line[strcspn(line, "#")] = 0;
    line += strspn(line, BLANKS);
    if (*line == 0)
        return VKN_OK;
    double step = strtod(line, &end);
    char *second = end + strspn(end, BLANKS ",");
    bool separated = end > line && second > end;
    double value = strtod(second, &end);
    if (!separated || end == second || end[strspn(end, BLANKS)] != 0)
        return base_json_fail(points->source, where, "not a step and a %s",
                              points->setting->point_value);
    return add_point(points, where, step, value);
}

static vkn_status parse_lines(struct points *points, char *text)
{
    size_t number = 1;
    for (char *line = text; line; number++) {
        char *newline = strchr(line, '\n');
        if (newline)
            *newline = 0;
        BASE_TRY(parse_line(points, number, line));
        line = newline ? newline + 1 : NULL;
    }
    return VKN_OK;
}

static vkn_status parse_json(struct points *points, const char *text, size_t size)
{
    cJSON *json = NULL;
    BASE_TRY(base_json_parse(points->source, text, size, &json));
    vkn_status status = parse_elements(points, "", json);
    cJSON_Delete(json);
    return status;
}

vkn_status config_read_points(const struct config_setting *setting, const char *file,
                              struct vkn_config *config)
{
    struct points points = points_of(setting, file, config);
    char *text = NULL;
    size_t size = 0;
    BASE_TRY(base_text_read_any(file, FILE_LIMIT, &text, &size));
    vkn_status status = VKN_OK;
    if (strlen(text) != size)
        status = base_fail(VKN_BAD_INPUT, "%s: not a text file", file);
    else if (text[strspn(text, BLANKS "\n")] == '[')
        status = parse_json(&points, text, size);
    else
        status = parse_lines(&points, text);
    free(text);
    if (status == VKN_OK && points.count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: no line with a step and a %s", file,
                         setting->point_value);
    return status;
}
