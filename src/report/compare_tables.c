/* Adds the tables of several runs: their results, and the settings in which they differ. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/compare.h"
#include "report/progress_text.h"

/* ---- measures -------------------------------------------------------------------------------- */

/* The log of an unfinished run is ahead of its summary. */
static double steps_of(const struct run *run, double seconds)
{
    (void)seconds;
    return fmax(run->summary.step, run_last(&run->metrics, RUN_STEP));
}

static double seconds_of(const struct run *run, double seconds)
{
    (void)seconds;
    return fmax(run->summary.seconds, run_last(&run->metrics, RUN_SECONDS));
}

static double psnr_of(const struct run *run, double seconds)
{
    (void)seconds;
    return run->summary.psnr;
}

static double ssim_of(const struct run *run, double seconds)
{
    (void)seconds;
    return run->summary.ssim;
}

static double step_rate_of(const struct run *run, double seconds)
{
    return steps_of(run, seconds) / seconds_of(run, seconds);
}

static double step_time_of(const struct run *run, double seconds)
{
    return 1e3 / step_rate_of(run, seconds);
}

double compare_mean(const struct run *run, enum run_column column)
{
    double sum = 0.0;
    size_t count = 0;
    for (size_t i = 0; i < run->metrics.count; i++) {
        double value = run->metrics.values[column][i];
        sum += isfinite(value) ? value : 0.0;
        count += isfinite(value) ? 1 : 0;
    }
    return count > 0 ? sum / (double)count : (double)NAN;
}

static double sample_rate_of(const struct run *run, double seconds)
{
    (void)seconds;
    return compare_mean(run, RUN_SAMPLES);
}

static double memory_of(const struct run *run, double seconds)
{
    (void)seconds;
    double most = (double)NAN;
    for (size_t i = 0; i < run->metrics.count; i++)
        most = fmax(most, run->metrics.values[RUN_MEMORY][i]);
    return most / (1 << 20);
}

static const struct measure results[] = {
    {"PSNR, dB", psnr_of, BETTER_HIGH, FORMAT_NUMBER, 2},
    {"SSIM", ssim_of, BETTER_HIGH, FORMAT_NUMBER, 4},
    {"Steps", steps_of, BETTER_NONE, FORMAT_COUNT, 0},
    {"Time", seconds_of, BETTER_NONE, FORMAT_DURATION, 0},
    {"Steps/s", step_rate_of, BETTER_HIGH, FORMAT_QUANTITY, 0},
    {"Step, ms", step_time_of, BETTER_LOW, FORMAT_QUANTITY, 0},
    {"Samples/s", sample_rate_of, BETTER_HIGH, FORMAT_QUANTITY, 0},
    {"Memory, MiB", memory_of, BETTER_LOW, FORMAT_NUMBER, 0},
};

/* ---- tables of measures ---------------------------------------------------------------------- */

double compare_seconds(const struct comparison *comparison)
{
    double least = HUGE_VAL;
    for (size_t i = 0; i < comparison->count; i++) {
        double seconds = seconds_of(&comparison->runs[i].run, 0.0);
        least = isfinite(seconds) ? fmin(least, seconds) : (double)NAN;
        if (isnan(least))
            break;
    }
    return least;
}

static void add_measure(struct base_text *page, const struct measure *measure, double value,
                        bool is_best)
{
    char text[32] = "–";
    base_text_add(page, "<td class=\"number\">%s", is_best ? "<b>" : "");
    if (measure->format == FORMAT_NUMBER)
        page_number(page, value, measure->digits);
    else if (measure->format == FORMAT_COUNT)
        page_count(page, value);
    else if (measure->format == FORMAT_DURATION && isfinite(value))
        report_duration(text, value);
    else if (isfinite(value))
        report_quantity(text, value);
    if (measure->format == FORMAT_DURATION || measure->format == FORMAT_QUANTITY)
        page_text(page, text);
    base_text_add(page, "%s</td>", is_best ? "</b>" : "");
}

/* Returns the column's best value among the runs of one scene, since runs of different scenes
 * cannot be compared. NaN when all values are equal or the measure has no best. */
static double best_of(const struct comparison *comparison, const struct measure *measure,
                      const char *scene, double seconds)
{
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t i = 0; i < comparison->count; i++) {
        if (strcmp(comparison->runs[i].scene, scene) != 0)
            continue;
        double value = measure->value(&comparison->runs[i].run, seconds);
        low = isfinite(value) ? fmin(low, value) : low;
        high = isfinite(value) ? fmax(high, value) : high;
    }
    if (measure->better == BETTER_NONE || !(low < high))
        return (double)NAN;
    return measure->better == BETTER_HIGH ? high : low;
}

static void add_text(struct base_text *page, const char *text)
{
    base_text_add(page, "<td class=\"text\">");
    page_text(page, text ? text : "–");
    base_text_add(page, "</td>");
}

static void add_run_name(struct base_text *page, const struct compared *compared, const char *scope)
{
    base_text_add(page, "<th scope=\"%s\">", scope);
    page_swatch(page, compared->css_class);
    page_text(page, compared->name);
    base_text_add(page, "</th>");
}

/* Begins a table and its head with the columns of measures; the caller may add columns. */
static void open_table(struct base_text *page, const char *name, const char *second,
                       const struct measure *measures, size_t count)
{
    base_text_add(page,
                  "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n"
                  "<table class=\"results\">\n<thead><tr><th scope=\"col\">Run</th>"
                  "<th scope=\"col\">%s</th>",
                  name, second);
    for (size_t i = 0; i < count; i++)
        base_text_add(page, "<th scope=\"col\" class=\"number\">%s</th>", measures[i].title);
}

/* Begins a row with its measures; the caller may add cells. */
static void open_row(struct base_text *page, const struct comparison *comparison, size_t index,
                     const char *second, const struct measure *measures, size_t count)
{
    const struct compared *compared = &comparison->runs[index];
    double seconds = compare_seconds(comparison);
    base_text_add(page, "<tr>");
    add_run_name(page, compared, "row");
    base_text_add(page, "<td>");
    page_text(page, second ? second : "–");
    base_text_add(page, "</td>");
    for (size_t i = 0; i < count; i++) {
        double value = measures[i].value(&compared->run, seconds);
        add_measure(page, &measures[i], value,
                    value == best_of(comparison, &measures[i], compared->scene, seconds));
    }
}

static void close_table(struct base_text *page)
{
    base_text_add(page, "</tbody>\n</table>\n</div>\n");
}

void compare_table(struct base_text *page, const struct comparison *comparison, const char *name,
                   const char *second, const char *(*text_of)(const struct run *run),
                   const struct measure *measures, size_t count)
{
    open_table(page, name, second, measures, count);
    base_text_add(page, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < comparison->count; i++) {
        open_row(page, comparison, i, text_of(&comparison->runs[i].run), measures, count);
        base_text_add(page, "</tr>\n");
    }
    close_table(page);
}

/* ---- results -------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* Returns whether all runs used one device and driver, which are then shown below the table. */
static bool one_machine(const struct comparison *comparison)
{
    const struct run *first = &comparison->runs[0].run;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct run *run = &comparison->runs[i].run;
        if (!same_text(page_device(run), page_device(first)) ||
            !same_text(page_driver(run), page_driver(first)))
            return false;
    }
    return true;
}

static void add_machine(struct base_text *page, const struct run *run)
{
    base_text_add(page, "<dl class=\"facts\"><div><dt>Device</dt><dd>");
    page_text(page, page_device(run));
    base_text_add(page, "</dd></div><div><dt>Driver</dt><dd>");
    page_text(page, page_driver(run));
    base_text_add(page, "</dd></div></dl>\n");
}

static void add_result(struct base_text *page, const struct comparison *comparison, size_t index)
{
    const struct run *run = &comparison->runs[index].run;
    const struct run_summary *summary = &run->summary;
    open_row(page, comparison, index, page_backend(run), results, BASE_COUNT(results));
    if (!one_machine(comparison)) {
        add_text(page, page_device(run));
        add_text(page, page_driver(run));
    }
    add_text(page, summary->status ? summary->status : summary->is_read ? NULL : "unfinished");
    base_text_add(page, "</tr>\n");
}

void compare_results(struct base_text *page, const struct comparison *comparison)
{
    bool one_device = one_machine(comparison);
    page_section(page, "results", "Results");
    open_table(page, "Results", "Precision", results, BASE_COUNT(results));
    base_text_add(page, "%s<th scope=\"col\">Status</th></tr></thead>\n<tbody>\n",
                  one_device ? "" : "<th scope=\"col\">Device</th><th scope=\"col\">Driver</th>");
    for (size_t i = 0; i < comparison->count; i++)
        add_result(page, comparison, i);
    close_table(page);
    if (one_device)
        add_machine(page, &comparison->runs[0].run);
    base_text_add(page, "</section>\n");
}

/* ---- settings ------------------------------------------------------------------------------- */

/* A setting and its value in each run; NULL where a run does not have it. */
struct setting {
    char *key;
    char *values[COMPARE_MOST];
};

struct settings {
    struct setting *items;
    size_t *slots;               /* hash table of 2 * capacity: 1 + index of an item, 0: empty */
    size_t count, capacity, run; /* run: index of the run that is read */
    bool failed;
};

/* Returns whether the table leaves a key out: the results show it, or it differs in every run. */
static bool is_left_out(const char *key)
{
    static const char *const left_out[] = {"device", "driver", "path", "command", "resumed_with"};
    for (size_t i = 0; i < BASE_COUNT(left_out); i++)
        if (strcmp(left_out[i], key) == 0)
            return true;
    return false;
}

/* Returns the hash table's slot of the key, empty if it is new (FNV-1a, linear probing). */
static size_t *find_slot(const struct settings *settings, const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = key; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    size_t slots = 2 * settings->capacity, at = (size_t)(hash % slots);
    while (settings->slots[at] > 0 &&
           strcmp(settings->items[settings->slots[at] - 1].key, key) != 0)
        at = (at + 1) % slots;
    return &settings->slots[at];
}

static bool grow(struct settings *settings)
{
    size_t capacity = 2 * settings->capacity + 64;
    struct setting *items = realloc(settings->items, capacity * sizeof(*items));
    if (items == NULL)
        return false;
    settings->items = items;
    size_t *slots = base_alloc(2 * capacity, sizeof(*slots));
    if (slots == NULL)
        return false;
    free(settings->slots);
    settings->slots = slots;
    settings->capacity = capacity;
    for (size_t i = 0; i < settings->count; i++)
        *find_slot(settings, items[i].key) = i + 1;
    return true;
}

static struct setting *find_setting(struct settings *settings, const char *key)
{
    if (settings->count == settings->capacity && !grow(settings))
        return NULL;
    size_t *slot = find_slot(settings, key);
    if (*slot > 0)
        return &settings->items[*slot - 1];
    char *copy = base_format("%s", key);
    if (copy == NULL)
        return NULL;
    settings->items[settings->count] = (struct setting){.key = copy};
    *slot = ++settings->count;
    return &settings->items[*slot - 1];
}

/* Stores a leaf of one run's configuration; called by page_config_walk. */
static void store_setting(void *context, const char *key, const struct cJSON *value)
{
    struct settings *settings = context;
    if (is_left_out(key))
        return;
    struct setting *setting = find_setting(settings, key);
    char *text = page_config_value(value);
    if (setting == NULL || text == NULL) {
        settings->failed = true;
        free(text);
        return;
    }
    free(setting->values[settings->run]); /* a file may have a key twice */
    setting->values[settings->run] = text;
}

static bool differs(const struct setting *setting, size_t runs)
{
    for (size_t i = 1; i < runs; i++) {
        const char *a = setting->values[0], *b = setting->values[i];
        if ((a == NULL) != (b == NULL) || (a && strcmp(a, b) != 0))
            return true;
    }
    return false;
}

static void add_setting(struct base_text *page, const struct setting *setting, size_t runs)
{
    base_text_add(page, "<tr><th scope=\"row\">");
    page_text(page, setting->key);
    base_text_add(page, "</th>");
    for (size_t i = 0; i < runs; i++)
        add_text(page, setting->values[i]);
    base_text_add(page, "</tr>\n");
}

static void add_settings(struct base_text *page, const struct comparison *comparison,
                         const struct settings *settings)
{
    size_t different = 0;
    struct base_text rows = {0};
    for (size_t i = 0; i < settings->count; i++) {
        if (!differs(&settings->items[i], comparison->count))
            continue;
        add_setting(&rows, &settings->items[i], comparison->count);
        different++;
    }
    if (different == 0) {
        base_text_add(page, "<p>The runs have the same settings.</p>\n");
    } else {
        base_text_add(page, "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
                            "aria-label=\"Settings\">\n<table class=\"settings\">\n"
                            "<thead><tr><th scope=\"col\">Setting</th>");
        for (size_t i = 0; i < comparison->count; i++)
            add_run_name(page, &comparison->runs[i], "col");
        base_text_add(page, "</tr></thead>\n<tbody>\n");
        base_text_add_bytes(page, rows.data, rows.size);
        base_text_add(page, "</tbody>\n</table>\n</div>\n");
    }
    page->failed |= rows.failed;
    free(rows.data);
}

void compare_settings(struct base_text *page, const struct comparison *comparison)
{
    struct settings settings = {0};
    for (size_t i = 0; i < comparison->count; i++) {
        settings.run = i;
        page_config_walk(comparison->runs[i].run.config, store_setting, &settings);
    }
    page_section(page, "settings", "Settings that differ");
    add_settings(page, comparison, &settings);
    base_text_add(page, "</section>\n");
    page->failed |= settings.failed;
    for (size_t i = 0; i < settings.count; i++) {
        free(settings.items[i].key);
        for (size_t run = 0; run < COMPARE_MOST; run++)
            free(settings.items[i].values[run]);
    }
    free(settings.items);
    free(settings.slots);
}
