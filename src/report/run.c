/* Reads a run directory: config.json and metrics.jsonl; summary.c reads summary.json. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/report.h"
#include "report/run.h"

#define METRICS_LIMIT ((size_t)1 << 28)
#define JSON_LIMIT    ((size_t)16 << 20)

/* ---- metrics.jsonl -------------------------------------------------------------------------- */

/* Drops earlier lines whose step is that of line `at` or later: these steps were trained again,
 * after a resume from an earlier step or by a second run in the folder. */
static void replace_later_lines(struct run_metrics *metrics, size_t at)
{
    size_t to = at;
    while (to > 0 && metrics->values[RUN_STEP][to - 1] >= metrics->values[RUN_STEP][at])
        to--;
    for (size_t column = 0; column < RUN_COLUMNS; column++)
        metrics->values[column][to] = metrics->values[column][at];
    metrics->count = to + 1;
}

static vkn_status read_line(const char *name, const cJSON *line, struct run_metrics *metrics)
{
    size_t at = metrics->count;
    if (!cJSON_IsObject(line))
        return base_fail(VKN_BAD_INPUT, "%s: not a JSON object", name);
    for (size_t column = 0; column < RUN_COLUMNS; column++) {
        double *value = &metrics->values[column][at];
        *value = (double)NAN;
        double least = column == RUN_STEP ? 0.0 : -HUGE_VAL;
        const char *key = columns[column].name, *old_name = columns[column].old_name;
        if (old_name && !cJSON_HasObjectItem(line, key))
            key = old_name;
        BASE_TRY(base_json_number(line, key, name, column == RUN_STEP, least, HUGE_VAL, value));
    }
    replace_later_lines(metrics, at);
    return VKN_OK;
}

/* Parses a line. `is_last`: the file ends with this line, without a line break, as after a crash;
 * the line is then ignored if it is not valid JSON. */
static vkn_status parse_line(const char *path, size_t number, const char *text, size_t size,
                             bool is_last, struct run_metrics *metrics)
{
    char *name = base_format("%s: line %zu", path, number);
    if (name == NULL)
        return VKN_ERROR;
    cJSON *line = NULL;
    vkn_status status = base_json_parse(name, text, size, &line);
    if (status == VKN_OK)
        status = read_line(name, line, metrics);
    else if (is_last && status == VKN_BAD_INPUT)
        status = VKN_OK;
    cJSON_Delete(line);
    free(name);
    return status;
}

static vkn_status parse_lines(const char *path, const char *text, size_t size,
                              struct run_metrics *metrics)
{
    const char *end = text + size;
    size_t number = 1;
    for (const char *line = text; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline ? newline : end;
        if (line_end > line)
            BASE_TRY(parse_line(path, number, line, (size_t)(line_end - line), !newline, metrics));
        line = newline ? newline + 1 : end;
    }
    return VKN_OK;
}

static vkn_status allocate_columns(const char *text, size_t size, struct run_metrics *metrics)
{
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n' ? 1 : 0;
    double *values = base_alloc(lines, RUN_COLUMNS * sizeof(*values));
    if (values == NULL)
        return VKN_ERROR;
    for (size_t column = 0; column < RUN_COLUMNS; column++)
        metrics->values[column] = values + column * lines;
    return VKN_OK;
}

static void free_metrics(struct run_metrics *metrics)
{
    free(metrics->values[0]); /* one allocation for all columns */
    *metrics = (struct run_metrics){0};
}

vkn_status run_read_metrics(const char *path, struct run_metrics *metrics)
{
    *metrics = (struct run_metrics){0};
    char *text = NULL;
    size_t size = 0;
    BASE_TRY(base_text_read(path, METRICS_LIMIT, &text, &size));
    vkn_status status = allocate_columns(text, size, metrics);
    if (status == VKN_OK)
        status = parse_lines(path, text, size, metrics);
    free(text);
    if (status != VKN_OK)
        free_metrics(metrics);
    return status;
}

double run_last(const struct run_metrics *metrics, enum run_column column)
{
    for (size_t i = metrics->count; i > 0; i--) {
        if (isfinite(metrics->values[column][i - 1]))
            return metrics->values[column][i - 1];
    }
    return (double)NAN;
}

/* ---- JSON of a page ------------------------------------------------------------------------- */

enum statistic { VALUE, LOW, HIGH, STATISTICS };

/* Lines [begin, end) of group `index` of `count` groups; the last group is the last line. */
static void find_group(const struct run_metrics *metrics, size_t count, size_t index, size_t *begin,
                       size_t *end)
{
    size_t lines = metrics->count - 1;
    *begin = index + 1 < count ? index * lines / (count - 1) : lines;
    *end = index + 1 < count ? (index + 1) * lines / (count - 1) : lines + 1;
}

/* Computes the statistics of lines of a column; NaN when no line has a value. */
static void summarize(const struct run_metrics *metrics, size_t column, size_t begin, size_t end,
                      double statistics[STATISTICS])
{
    double sum = 0.0, last = (double)NAN, low = (double)NAN, high = (double)NAN;
    size_t used = 0;
    for (size_t i = begin; i < end; i++) {
        double value = metrics->values[column][i];
        if (!isfinite(value))
            continue;
        last = value;
        low = fmin(low, value);
        high = fmax(high, value);
        sum += value;
        used++;
    }
    bool counts = columns[column].is_integer || column == RUN_SECONDS || column == RUN_LOSS_SCALE;
    statistics[VALUE] = counts || used < 2 ? last : sum / (double)used;
    statistics[LOW] = low;
    statistics[HIGH] = high;
}

static void add_column(const struct run_metrics *metrics, size_t column, enum statistic which,
                       struct base_text *json)
{
    size_t count = metrics->count < RUN_JSON_LINES ? metrics->count : RUN_JSON_LINES;
    bool grouped = metrics->count > RUN_JSON_LINES;
    base_text_add(json, "\"%s\":[", columns[column].name);
    for (size_t i = 0; i < count; i++) {
        size_t begin = i, end = i + 1;
        double statistics[STATISTICS];
        if (grouped)
            find_group(metrics, count, i, &begin, &end);
        summarize(metrics, column, begin, end, statistics);
        base_text_add(json, isfinite(statistics[which]) ? "%s%.9g" : "%snull", i > 0 ? "," : "",
                      statistics[which]);
    }
    base_text_add(json, "]");
}

static void add_columns(const struct run_metrics *metrics, enum statistic which,
                        struct base_text *json)
{
    const char *separator = "";
    for (size_t column = 0; column < RUN_COLUMNS; column++) {
        if (!isfinite(run_last(metrics, column)))
            continue;
        base_text_add(json, "%s", separator);
        add_column(metrics, column, which, json);
        separator = ",";
    }
}

void run_metrics_json(const struct run_metrics *metrics, struct base_text *json)
{
    base_text_add(json, "{");
    add_columns(metrics, VALUE, json);
    if (metrics->count > RUN_JSON_LINES) {
        base_text_add(json, ",\"low\":{");
        add_columns(metrics, LOW, json);
        base_text_add(json, "},\"high\":{");
        add_columns(metrics, HIGH, json);
        base_text_add(json, "}");
    }
    base_text_add(json, "}");
}

/* ---- the directory -------------------------------------------------------------------------- */

static vkn_status read_config(const char *path, struct run *run)
{
    BASE_TRY(base_json_read(path, JSON_LIMIT, &run->config));
    if (!cJSON_IsObject(run->config))
        return base_fail(VKN_BAD_INPUT, "%s: not a JSON object", path);
    return VKN_OK;
}

static vkn_status read_metrics(const char *path, struct run *run)
{
    return run_read_metrics(path, &run->metrics);
}

static vkn_status read_summary(const char *path, struct run *run)
{
    if (base_file_exists(path))
        BASE_TRY(base_json_read(path, JSON_LIMIT, &run->summary_json));
    return run_read_summary(path, run->summary_json, &run->summary);
}

static vkn_status read_appearance(const char *path, struct run *run)
{
    return base_file_exists(path) ? base_json_read(path, JSON_LIMIT, &run->appearance) : VKN_OK;
}

static vkn_status read_file(struct run *run, const char *name,
                            vkn_status (*read)(const char *path, struct run *run))
{
    char *path = base_path_join(run->folder, name);
    if (path == NULL)
        return VKN_ERROR;
    vkn_status status = read(path, run);
    free(path);
    return status;
}

vkn_status run_read(const char *folder, struct run *run)
{
    *run = (struct run){.folder = folder};
    vkn_status status = VKN_OK;
    if (!base_is_folder(folder))
        status = base_fail(VKN_BAD_INPUT, "%s: not a run directory", folder);
    if (status == VKN_OK)
        status = read_file(run, "config.json", read_config);
    if (status == VKN_OK)
        status = read_file(run, "metrics.jsonl", read_metrics);
    if (status == VKN_OK)
        status = read_file(run, "summary.json", read_summary);
    if (status == VKN_OK)
        status = read_file(run, REPORT_APPEARANCE, read_appearance);
    if (status != VKN_OK)
        run_free(run);
    return status;
}

void run_free(struct run *run)
{
    cJSON_Delete(run->config);
    cJSON_Delete(run->summary_json);
    cJSON_Delete(run->appearance);
    free_metrics(&run->metrics);
    run_free_summary(&run->summary);
    *run = (struct run){0};
}
