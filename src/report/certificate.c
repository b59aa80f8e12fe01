/* Writes certificate.html, the page of a device's certificate (vknerf certify), which
 * page/certificate.js completes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/chart.h"
#include "report/page.h"
#include "report/progress_text.h"

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool has_passed(const cJSON *test)
{
    return strcmp(base_json_text(test, "result"), "passed") == 0;
}

static void add_text_cell(struct base_text *page, const char *text)
{
    base_text_add(page, "<td>");
    page_text(page, text);
    base_text_add(page, "</td>");
}

static void begin_row(struct base_text *page, const char *name)
{
    base_text_add(page, "<tr><th scope=\"row\">");
    page_text(page, name);
    base_text_add(page, "</th>");
}

/* Begins a table; titles that begin with "#" belong to columns of numbers. */
static void begin_table(struct base_text *page, const char *label, const char *const *titles,
                        size_t count)
{
    base_text_add(page,
                  "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n"
                  "<table class=\"results\">\n<thead><tr>",
                  label);
    for (size_t i = 0; i < count; i++) {
        bool is_number = titles[i][0] == '#';
        base_text_add(page, "<th scope=\"col\"%s>%s</th>", is_number ? " class=\"number\"" : "",
                      titles[i] + is_number);
    }
    base_text_add(page, "</tr></thead>\n<tbody>\n");
}

static void end_table(struct base_text *page)
{
    base_text_add(page, "</tbody>\n</table>\n</div>\n");
}

/* ---- head ------------------------------------------------------------------------------------ */

static void add_verdict(struct base_text *page, const cJSON *json)
{
    double failed = chart_number_of(json, "failed");
    const cJSON *entry;
    base_text_add(page, "<p class=\"verdict\">");
    if (failed == 0)
        base_text_add(page, "All tests that ran have passed.");
    else
        base_text_add(page, "%.0f test%s failed.", failed, failed == 1 ? " has" : "s have");
    if (!cJSON_IsTrue(member(json, "complete")))
        base_text_add(page, " The certificate is incomplete: some parts did not run.");
    cJSON_ArrayForEach (entry, member(json, "switched_off")) {
        base_text_add(page, " Switched off: ");
        page_text(page, base_json_text(entry, "feature"));
        base_text_add(page, ".");
    }
    base_text_add(page, "</p>\n");
}

static void add_head(struct base_text *page, const void *context)
{
    const cJSON *json = context, *device = member(json, "device");
    char duration[32], commit[96];
    report_duration(duration, chart_number_of(json, "seconds"));
    snprintf(commit, sizeof commit, "%s, commit %s", base_json_text(json, "vknerf"),
             base_json_text(json, "commit"));
    base_text_add(page, "<header>\n<p class=\"kind\">vknerf certificate of a device</p>\n<h1>");
    page_text(page, base_json_text(device, "name"));
    base_text_add(page, "</h1>\n");
    add_verdict(page, json);
    base_text_add(page, "<dl class=\"tiles\">\n");
    page_tile_begin(page, "Tests passed");
    page_count(page, chart_number_of(json, "tests") - chart_number_of(json, "failed"));
    page_tile_end(page, "compared with double precision on the host");
    page_tile_begin(page, "Tests failed");
    page_count(page, chart_number_of(json, "failed"));
    page_tile_end(page, "hangs and crashes included");
    base_text_add(page, "</dl>\n<dl class=\"facts\">\n");
    page_fact(page, "Driver", base_json_text(device, "driver"));
    page_fact(page, "Vulkan", base_json_text(device, "vulkan"));
    page_fact(page, "vknerf", commit);
    page_fact(page, "Date", base_json_text(json, "date"));
    page_fact(page, "Duration", duration);
    base_text_add(page, "</dl>\n</header>\n");
}

/* ---- failures -------------------------------------------------------------------------------- */

static void add_failure(struct base_text *page, const char *part, const cJSON *test)
{
    begin_row(page, part);
    add_text_cell(page, base_json_text(test, "test"));
    add_text_cell(page, base_json_text(test, "pass"));
    add_text_cell(page, base_json_text(test, "backend"));
    add_text_cell(page, base_json_text(test, "message"));
    add_text_cell(page, base_json_text(test, "feature"));
    base_text_add(page, "</tr>\n");
}

static void add_failures(struct base_text *page, const cJSON *json)
{
    static const char *const titles[] = {"Part",    "Test",    "Last pass",
                                         "Backend", "Message", "Switched off"};
    const cJSON *part, *test;
    if (chart_number_of(json, "failed") == 0)
        return;
    page_section(page, "failures", "Failed tests");
    begin_table(page, "Failed tests", titles, BASE_COUNT(titles));
    cJSON_ArrayForEach (part, member(json, "parts")) {
        if (member(part, "error")) {
            begin_row(page, base_json_text(part, "part"));
            base_text_add(page, "<td></td><td></td><td></td>");
            add_text_cell(page, base_json_text(part, "error"));
            base_text_add(page, "<td></td></tr>\n");
        }
        cJSON_ArrayForEach (test, member(part, "tests"))
            if (!has_passed(test))
                add_failure(page, base_json_text(part, "part"), test);
    }
    end_table(page);
    base_text_add(page, "</section>\n");
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Returns the largest share of a tolerance that an error of the test uses up; negative: none. */
static double worst_share(const cJSON *test)
{
    double worst = -1;
    const cJSON *figure;
    cJSON_ArrayForEach (figure, member(test, "figures")) {
        double tolerance = chart_number_of(figure, "tolerance");
        if (tolerance > 0)
            worst = fmax(worst, chart_number_of(figure, "error") / tolerance);
    }
    return worst;
}

static void add_part(struct base_text *page, const cJSON *part)
{
    double passed = 0, count = 0, worst = -1, seconds = 0;
    const cJSON *test;
    cJSON_ArrayForEach (test, member(part, "tests")) {
        double taken = chart_number_of(test, "seconds");
        passed += has_passed(test);
        count++;
        worst = fmax(worst, worst_share(test));
        seconds += isfinite(taken) ? taken : 0;
    }
    begin_row(page, base_json_text(part, "part"));
    base_text_add(page, "<td class=\"number\">%.0f of %.0f</td>", passed, count);
    page_number_cell(page, worst >= 0 ? 100 * worst : (double)NAN, 1, " %");
    page_number_cell(page, seconds, 1, " s");
    base_text_add(page, "</tr>\n");
}

static void add_parts(struct base_text *page, const cJSON *json)
{
    static const char *const titles[] = {"Part", "#Passed", "#Largest error", "#Time"};
    const cJSON *part;
    page_section(page, "parts", "Tests by part");
    base_text_add(page, "<p>Each part tests passes of training or rendering against the same "
                        "computation in double precision. The largest error is a share of its "
                        "tolerance.</p>\n");
    begin_table(page, "Tests by part", titles, BASE_COUNT(titles));
    cJSON_ArrayForEach (part, member(json, "parts"))
        add_part(page, part);
    end_table(page);
    base_text_add(page, "</section>\n");
}

static void add_sections(struct base_text *page, const void *context)
{
    add_failures(page, context);
    add_parts(page, context);
}

vkn_status report_write_certificate(const cJSON *json, const char *path)
{
    const struct page_document document = {
        .file = &page_certificate_file,
        .title = "vknerf certificate",
        .sources = "certificate.json, which has everything on this page, with a SHA-256",
        .head = add_head,
        .sections = add_sections,
        .data = json,
    };
    return page_write(path, &document, json);
}
