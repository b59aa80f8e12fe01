/* Draws the results of `vknerf bench`: rooflines and bars. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/chart.h"
#include "report/page.h"

/* User units. */
#define LEFT          CHART_LEFT
#define ROOF_RIGHT    640.0
#define ROOF_TOP      70.0
#define ROOF_BOTTOM   400.0
#define BAR_LEFT      300.0
#define BAR_WIDTH     280.0
#define BAR_STEP      20.0
#define MOST_BACKENDS 32

const char *const chart_colors[CHART_COLORS] = {"#4269d0", "#efb118", "#ff725c", "#3ca951",
                                                "#a463f2", "#97bbf5", "#9c6b4e", "#6cc5b0",
                                                "#ff8ab7", "#9498a0"};

struct chart {
    const cJSON *results;
    const char *backends[MOST_BACKENDS]; /* backends that have results, in the results' order */
    size_t backend_count;
    double x_low, x_high, y_low, y_high; /* log10 of FLOP/B and FLOP/s */
    struct base_text svg;
};

/* ---- reading --------------------------------------------------------------------------------- */

double chart_number_of(const cJSON *object, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static bool is_suite(const cJSON *result, const char *suite)
{
    return strcmp(base_json_text(result, "suite"), suite) == 0;
}

static bool is_timed(const cJSON *result)
{
    return chart_number_of(result, "rate") > 0;
}

/* Returns whether a result is a point below the rooflines: it has operations and memory traffic. */
static bool is_point(const cJSON *result)
{
    return is_timed(result) && strcmp(base_json_text(result, "unit"), "FLOP/s") == 0 &&
           chart_number_of(result, "flops") > 0 && chart_number_of(result, "bytes") > 0;
}

static void list_backends(struct chart *chart)
{
    const cJSON *result;
    cJSON_ArrayForEach (result, chart->results) {
        const char *backend = base_json_text(result, "path");
        size_t i = 0;
        while (i < chart->backend_count && strcmp(chart->backends[i], backend) != 0)
            i++;
        if (i == chart->backend_count && i < MOST_BACKENDS)
            chart->backends[chart->backend_count++] = backend;
    }
}

static const char *color_of(const struct chart *chart, const char *backend)
{
    for (size_t i = 0; i < chart->backend_count; i++)
        if (strcmp(chart->backends[i], backend) == 0)
            return chart_colors[i % CHART_COLORS];
    return chart_colors[0];
}

/* ---- writing --------------------------------------------------------------------------------- */

void chart_text(struct base_text *svg, double x, double y, const char *kind, const char *text)
{
    base_text_add(svg, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, kind);
    page_text(svg, text);
    base_text_add(svg, "</text>\n");
}

static void add_text(struct chart *chart, double x, double y, const char *kind, const char *text)
{
    chart_text(&chart->svg, x, y, kind, text);
}

void chart_rate(double rate, const char *unit, char *text, size_t size)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t prefix = 0;
    for (; rate >= 999.5 && prefix + 1 < BASE_COUNT(prefixes); prefix++)
        rate /= 1000;
    snprintf(text, size, "%.3g %s%s", rate, prefixes[prefix], unit);
}

/* ---- rooflines ------------------------------------------------------------------------------- */

static double to_x(const struct chart *chart, double intensity)
{
    return LEFT +
           (ROOF_RIGHT - LEFT) * (log10(intensity) - chart->x_low) / (chart->x_high - chart->x_low);
}

static double to_y(const struct chart *chart, double rate)
{
    return ROOF_BOTTOM -
           (ROOF_BOTTOM - ROOF_TOP) * (log10(rate) - chart->y_low) / (chart->y_high - chart->y_low);
}

/* Computes the axes' ranges. False when there is no point to show. */
static bool fit_axes(struct chart *chart)
{
    double x_low = HUGE_VAL, x_high = -HUGE_VAL, y_low = HUGE_VAL, y_high = -HUGE_VAL;
    const cJSON *result;
    cJSON_ArrayForEach (result, chart->results) {
        if (!is_timed(result) || strcmp(base_json_text(result, "unit"), "FLOP/s") != 0)
            continue;
        double rate = chart_number_of(result, "rate");
        y_low = fmin(y_low, rate);
        y_high = fmax(y_high, rate);
        if (!is_point(result))
            continue;
        double intensity = chart_number_of(result, "flops") / chart_number_of(result, "bytes");
        x_low = fmin(x_low, intensity);
        x_high = fmax(x_high, intensity);
    }
    if (!(x_low <= x_high))
        return false;
    chart->x_low = floor(log10(x_low) - 0.2);
    chart->x_high = ceil(log10(x_high) + 0.2);
    chart->y_low = floor(log10(y_low) - 0.1);
    chart->y_high = ceil(log10(y_high) + 0.1);
    return true;
}

static void add_axes(struct chart *chart)
{
    char text[32];
    for (int decade = (int)chart->x_low; decade <= (int)chart->x_high; decade++) {
        double x = to_x(chart, pow(10, decade));
        base_text_add(&chart->svg, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", x, ROOF_TOP,
                      ROOF_BOTTOM);
        snprintf(text, sizeof text, "%g", pow(10, decade));
        add_text(chart, x, ROOF_BOTTOM + 16, "middle", text);
    }
    for (int decade = (int)chart->y_low; decade <= (int)chart->y_high; decade++) {
        double y = to_y(chart, pow(10, decade));
        base_text_add(&chart->svg, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", LEFT, y,
                      ROOF_RIGHT);
        chart_rate(pow(10, decade), "", text, sizeof text);
        add_text(chart, LEFT - 6, y + 4, "end", text);
    }
    add_text(chart, (LEFT + ROOF_RIGHT) / 2, ROOF_BOTTOM + 34, "middle",
             "arithmetic intensity, FLOP per byte of memory");
    add_text(chart, LEFT - 6, ROOF_TOP - 10, "start", "FLOP/s");
}

/* Adds each backend's roofline: min(peak, bandwidth * intensity). */
static void add_roofs(struct chart *chart)
{
    double bandwidth = 0, from = pow(10, chart->x_low), to = pow(10, chart->x_high);
    const cJSON *result;
    cJSON_ArrayForEach (result, chart->results) {
        if (!is_suite(result, "peak") || !is_timed(result))
            continue;
        double rate = chart_number_of(result, "rate");
        if (strcmp(base_json_text(result, "path"), "copy") == 0) {
            bandwidth = rate;
            continue;
        }
        double bend = bandwidth > 0 ? fmin(fmax(rate / bandwidth, from), to) : from;
        base_text_add(&chart->svg,
                      "<path class=\"roof\" stroke=\"%s\" clip-path=\"url(#roof)\" d=\"",
                      color_of(chart, base_json_text(result, "path")));
        if (bandwidth > 0)
            base_text_add(&chart->svg, "M%.1f %.1fL%.1f %.1f", to_x(chart, from),
                          to_y(chart, bandwidth * from), to_x(chart, bend),
                          to_y(chart, bandwidth * bend));
        if (bend < to)
            base_text_add(&chart->svg, "M%.1f %.1fH%.1f", to_x(chart, bend), to_y(chart, rate),
                          ROOF_RIGHT);
        base_text_add(&chart->svg, "\"/>\n");
    }
}

static void add_points(struct chart *chart)
{
    const cJSON *result;
    cJSON_ArrayForEach (result, chart->results) {
        if (!is_point(result))
            continue;
        double x = to_x(chart, chart_number_of(result, "flops") / chart_number_of(result, "bytes"));
        double y = to_y(chart, chart_number_of(result, "rate"));
        const char *color = color_of(chart, base_json_text(result, "path"));
        char rate[32];
        if (is_suite(result, "mlp"))
            base_text_add(&chart->svg,
                          "<path fill=\"%s\" d=\"M%.1f %.1fl5 8.5h-10z\" class=\"point\"><title>",
                          color, x, y - 5.5);
        else
            base_text_add(
                &chart->svg,
                "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"point\"><title>",
                color, x, y);
        chart_rate(chart_number_of(result, "rate"), "FLOP/s", rate, sizeof rate);
        page_text(&chart->svg, base_json_text(result, "suite"));
        base_text_add(&chart->svg, " ");
        page_text(&chart->svg, base_json_text(result, "case"));
        base_text_add(&chart->svg, ", ");
        page_text(&chart->svg, base_json_text(result, "path"));
        base_text_add(&chart->svg, ": %s</title></%s>\n", rate,
                      is_suite(result, "mlp") ? "path" : "circle");
    }
}

static void add_legend(struct chart *chart)
{
    double x = ROOF_RIGHT + 16, y = ROOF_TOP + 8;
    for (size_t i = 0; i < chart->backend_count; i++) {
        bool shown = false;
        const cJSON *result;
        cJSON_ArrayForEach (result, chart->results)
            shown = shown ||
                    (strcmp(base_json_text(result, "path"), chart->backends[i]) == 0 &&
                     is_timed(result) && strcmp(base_json_text(result, "unit"), "FLOP/s") == 0);
        if (!shown)
            continue;
        base_text_add(&chart->svg,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", x,
                      y - 9, color_of(chart, chart->backends[i]));
        add_text(chart, x + 16, y, "start", chart->backends[i]);
        y += 18;
    }
    add_text(chart, x, y + 8, "faint", "lines: measured peaks");
    add_text(chart, x, y + 24, "faint", "\xe2\x97\x8f products   \xe2\x96\xb2 MLPs");
}

static void add_rooflines(struct chart *chart)
{
    base_text_add(
        &chart->svg,
        "<clipPath id=\"roof\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
        "</clipPath>\n",
        LEFT, ROOF_TOP, ROOF_RIGHT - LEFT, ROOF_BOTTOM - ROOF_TOP);
    add_axes(chart);
    add_roofs(chart);
    add_points(chart);
    add_legend(chart);
}

/* ---- bars ------------------------------------------------------------------------------------ */

/* A section of bars: one operation on one case, so that all bars are of the same work. */
struct section {
    const char *suite, *unit, *title;
    bool (*selects)(const cJSON *result); /* selects the operation; NULL: the suite has only one */
};

static bool is_forward(const cJSON *result)
{
    return !(chart_number_of(cJSON_GetObjectItemCaseSensitive(result, "sizes"), "training") > 0);
}

static bool is_training(const cJSON *result)
{
    return !is_forward(result);
}

static bool is_gather(const cJSON *result)
{
    return strstr(base_json_text(result, "path"), "gather") != NULL;
}

static bool is_scatter(const cJSON *result)
{
    return strstr(base_json_text(result, "path"), "scatter") != NULL;
}

static bool is_in(const struct section *section, const cJSON *result)
{
    return is_suite(result, section->suite) && is_timed(result) &&
           strcmp(base_json_text(result, "unit"), section->unit) == 0 &&
           (!section->selects || section->selects(result));
}

static bool is_case(const struct section *section, const cJSON *result, const char *name)
{
    return is_in(section, result) && strcmp(base_json_text(result, "case"), name) == 0;
}

static int count_case(const struct chart *chart, const struct section *section, const char *name)
{
    int count = 0;
    const cJSON *result;
    cJSON_ArrayForEach (result, chart->results)
        count += is_case(section, result, name);
    return count;
}

/* Returns the case that most backends have, the fastest of such cases; NULL when none was timed. */
static const char *choose_case(const struct chart *chart, const struct section *section)
{
    const cJSON *best = NULL, *result;
    int most = 0;
    cJSON_ArrayForEach (result, chart->results) {
        if (!is_in(section, result))
            continue;
        int count = count_case(chart, section, base_json_text(result, "case"));
        if (count < most ||
            (count == most && chart_number_of(result, "rate") <= chart_number_of(best, "rate")))
            continue;
        most = count;
        best = result;
    }
    return best ? base_json_text(best, "case") : NULL;
}

static void add_bar(struct chart *chart, const cJSON *result, double most, double y)
{
    char label[96], rate[32];
    double width = BAR_WIDTH * chart_number_of(result, "rate") / most;
    chart_rate(chart_number_of(result, "rate"), base_json_text(result, "unit"), rate, sizeof rate);
    if (chart_number_of(result, "share") > 0)
        snprintf(label, sizeof label, "%s, %.0f%% of peak", rate,
                 100 * chart_number_of(result, "share"));
    else
        snprintf(label, sizeof label, "%s", rate);
    base_text_add(
        &chart->svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
        BAR_LEFT, y, width, BAR_STEP - 5, color_of(chart, base_json_text(result, "path")));
    add_text(chart, BAR_LEFT - 8, y + 12, "end", base_json_text(result, "path"));
    add_text(chart, BAR_LEFT + width + 6, y + 12, "start", label);
}

static void add_title(struct chart *chart, const struct section *section, const char *name,
                      double y)
{
    char title[192];
    snprintf(title, sizeof title, "%s: %.96s", section->title, name);
    add_text(chart, LEFT - 50, y + 12, "title", title);
}

/* Adds a section and returns the y where the next one starts. */
static double add_bars(struct chart *chart, const struct section *section, double y)
{
    double most = 0;
    const char *name = choose_case(chart, section);
    if (!name)
        return y;
    const cJSON *result;
    cJSON_ArrayForEach (result, chart->results)
        most = fmax(most, is_case(section, result, name) ? chart_number_of(result, "rate") : 0);
    add_title(chart, section, name, y);
    y += 24;
    cJSON_ArrayForEach (result, chart->results) {
        if (!is_case(section, result, name))
            continue;
        add_bar(chart, result, most, y);
        y += BAR_STEP;
    }
    return y + 20;
}

static double add_all_bars(struct chart *chart, double y)
{
    static const struct section sections[] = {
        {"peak", "FLOP/s", "Arithmetic", NULL},
        {"gemm", "FLOP/s", "Matrix products", NULL},
        {"mlp", "FLOP/s", "Fused MLPs forward", is_forward},
        {"mlp", "FLOP/s", "Fused MLPs forward and backward", is_training},
        {"grid", "B/s", "Hash grid, gather", is_gather},
        {"grid", "B/s", "Hash grid, scatter", is_scatter},
        {"step", "samples/s", "Training step, live samples", NULL},
    };
    for (size_t i = 0; i < BASE_COUNT(sections); i++)
        y = add_bars(chart, &sections[i], y);
    return y;
}

/* ---- the chart ------------------------------------------------------------------------------- */

static void add_header(struct chart *chart, const cJSON *device)
{
    static const char style[] =
        "<style>text{font:12px "
        "sans-serif;fill:#222}.middle{text-anchor:middle}.end{text-anchor:end}"
        ".title{font-weight:bold;font-size:14px}.faint{fill:#777}"
        ".grid{stroke:#ddd;fill:none}.roof{fill:none;stroke-width:1.5}"
        ".point{stroke:#fff;stroke-width:.7}</style>\n";
    base_text_add(&chart->svg, "%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", style);
    add_text(chart, LEFT - 50, 24, "title", base_json_text(device, "name"));
    add_text(chart, LEFT - 50, 42, "faint", base_json_text(device, "driver"));
}

char *report_bench_chart(const char *json)
{
    cJSON *bench = cJSON_Parse(json);
    struct chart chart = {.results = cJSON_GetObjectItemCaseSensitive(bench, "results")};
    list_backends(&chart);
    add_header(&chart, cJSON_GetObjectItemCaseSensitive(bench, "device"));
    double y = 60;
    if (fit_axes(&chart)) {
        add_rooflines(&chart);
        y = fmax(ROOF_BOTTOM + 60, ROOF_TOP + 18.0 * (double)chart.backend_count + 50);
    }
    y = add_all_bars(&chart, y);
    y = chart_sampling(&chart.svg, cJSON_GetObjectItemCaseSensitive(bench, "sampling"), y);
    char *svg = NULL;
    if (!chart.svg.failed && bench)
        svg = base_format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                          "width=\"%.0f\" height=\"%.0f\">\n%s</svg>\n",
                          CHART_WIDTH, y, CHART_WIDTH, y, chart.svg.data);
    else
        base_fail(VKN_ERROR, "the chart: out of memory");
    free(chart.svg.data);
    cJSON_Delete(bench);
    return svg;
}
