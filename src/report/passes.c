/* Adds the tables of passes (with rates, floors and idle time if profiled) and of device memory. */
#include <math.h>

#include "report/page.h"

/* Returns whether the passes have work (operations, bytes, atomics): the run was profiled. */
static bool has_work(const struct run_summary *summary)
{
    for (size_t i = 0; i < summary->pass_count; i++)
        if (isfinite(summary->passes[i].flops))
            return true;
    return false;
}

/* Adds a bar with a dark part for the floor. Both lengths are shares of the longest bar. */
static void add_bar(struct base_text *page, double share, double floor_share)
{
    base_text_add(page,
                  "<td class=\"bar\"><svg viewBox=\"0 0 100 12\" preserveAspectRatio=\"none\" "
                  "aria-hidden=\"true\"><rect width=\"%.2f\" height=\"12\"/>",
                  100.0 * share);
    if (floor_share > 0.0)
        base_text_add(page, "<rect class=\"floor\" width=\"%.2f\" height=\"12\"/>",
                      100.0 * fmin(floor_share, share));
    base_text_add(page, "</svg></td>");
}

/* Adds the rate of a pass's work per step, in 1e9 per second. */
static void add_rate(struct base_text *page, double amount, double milliseconds, int digits)
{
    bool none = !(amount > 0.0 && milliseconds > 0.0);
    page_number_cell(page, none ? (double)NAN : amount / (1e6 * milliseconds), digits, "");
}

static void add_work(struct base_text *page, const struct run_pass *pass)
{
    add_rate(page, pass->flops, pass->milliseconds, 1);
    add_rate(page, pass->bytes, pass->milliseconds, 1);
    add_rate(page, pass->atomics, pass->milliseconds, 2);
    page_number_cell(page, pass->floor_milliseconds, 3, " ms");
    page_number_cell(page, pass->milliseconds / pass->floor_milliseconds, 1, "");
    base_text_add(page, "<td>");
    page_text(page, pass->bound ? pass->bound : "");
    base_text_add(page, "</td>");
}

static void add_pass(struct base_text *page, const struct run_pass *pass, double largest, bool work)
{
    double share = isfinite(pass->share) ? pass->share : 0.0;
    double floor = pass->share * pass->floor_milliseconds / pass->milliseconds;
    base_text_add(page, "<tr><th scope=\"row\">");
    page_text(page, pass->name ? pass->name : "unnamed");
    base_text_add(page, "</th>");
    add_bar(page, largest > 0.0 ? share / largest : 0.0, largest > 0.0 ? floor / largest : 0.0);
    page_number_cell(page, 100.0 * pass->share, 1, " %");
    page_number_cell(page, pass->milliseconds, 3, " ms");
    if (work)
        add_work(page, pass);
    base_text_add(page, "</tr>\n");
}

static void add_head(struct base_text *page, bool work)
{
    static const char *const more[] = {"GFLOP/s", "GB/s", "Gatomic/s", "Floor", "× floor"};
    base_text_add(page,
                  "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Passes\">\n"
                  "<table class=\"passes%s\">\n<thead><tr><th scope=\"col\">Pass</th>"
                  "<th scope=\"col\"></th><th scope=\"col\" class=\"number\">Share</th>"
                  "<th scope=\"col\" class=\"number\">Per step</th>",
                  work ? " work" : "");
    for (size_t i = 0; work && i < BASE_COUNT(more); i++)
        base_text_add(page, "<th scope=\"col\" class=\"number\">%s</th>", more[i]);
    base_text_add(page, "%s</tr></thead>\n<tbody>\n",
                  work ? "<th scope=\"col\">Bound by</th>" : "");
}

/* ---- facts of the whole step ---------------------------------------------------------------- */

static void add_fact(struct base_text *page, const char *name, double value, int digits,
                     const char *unit)
{
    if (!isfinite(value))
        return;
    base_text_add(page, "<div><dt>%s</dt><dd>", name);
    if (digits == 0)
        page_count(page, value);
    else
        page_number(page, value, digits);
    base_text_add(page, "%s</dd></div>\n", unit);
}

static void add_idle(struct base_text *page, const struct run_summary *summary)
{
    const struct run_profile *profile = &summary->profile;
    double busy = 0.0;
    for (size_t i = 0; i < summary->pass_count; i++)
        busy += summary->passes[i].milliseconds;
    double step = busy + profile->idle_milliseconds + profile->interval_idle_milliseconds;
    add_fact(page, "device idle between passes", 100.0 * profile->idle_milliseconds / step, 2,
             " %");
    add_fact(page, "between update intervals of 16 steps",
             100.0 * profile->interval_idle_milliseconds / step, 2, " %");
}

static void add_facts(struct base_text *page, const struct run_summary *summary)
{
    const struct run_profile *profile = &summary->profile;
    base_text_add(page, "<dl class=\"facts\">\n");
    add_idle(page, summary);
    add_fact(page, "steps timed", profile->steps, 0, "");
    add_fact(page, "rays per step", profile->rays, 0, "");
    add_fact(page, "marched samples", profile->marched_samples, 0, "");
    add_fact(page, "live samples", profile->live_samples, 0, "");
    add_fact(page, "peaks measured in this run", 1e-9 * profile->peak_flops, 1, " GFLOP/s");
    add_fact(page, "memory copy", 1e-9 * profile->peak_bytes, 1, " GB/s");
    add_fact(page, "atomics", 1e-9 * profile->peak_atomics, 2, " G/s");
    base_text_add(page,
                  "</dl>\n<p class=\"kind\">The dark part of a bar is the floor: the time "
                  "that the pass's arithmetic, memory traffic or atomics would take at the "
                  "device's peak. GB/s counts all loads and stores, whether caches serve them "
                  "or not. trace.json opens in ui.perfetto.dev.</p>\n");
}

void page_passes(struct base_text *page, const struct run *run)
{
    const struct run_summary *summary = &run->summary;
    if (summary->pass_count == 0)
        return;
    bool work = has_work(summary);
    double largest = 0.0;
    for (size_t i = 0; i < summary->pass_count; i++)
        largest = fmax(largest, summary->passes[i].share);
    page_section(page, "passes", "Time of a step by pass");
    add_head(page, work);
    for (size_t i = 0; i < summary->pass_count; i++)
        add_pass(page, &summary->passes[i], largest, work);
    base_text_add(page, "</tbody>\n</table>\n</div>\n");
    if (work)
        add_facts(page, summary);
    base_text_add(page, "</section>\n");
}

/* ---- device memory -------------------------------------------------------------------------- */

static void add_buffer(struct base_text *page, const struct run_buffer *buffer, double total,
                       double largest)
{
    base_text_add(page, "<tr><th scope=\"row\">");
    page_text(page, buffer->name ? buffer->name : "unnamed");
    base_text_add(page, "</th>");
    add_bar(page, largest > 0.0 ? buffer->bytes / largest : 0.0, 0.0);
    page_number_cell(page, 100.0 * buffer->bytes / total, 1, " %");
    page_number_cell(page, buffer->bytes / (1024.0 * 1024.0), 3, " MiB");
    base_text_add(page, "</tr>\n");
}

void page_buffers(struct base_text *page, const struct run *run)
{
    const struct run_summary *summary = &run->summary;
    double total = 0.0, largest = 0.0;
    for (size_t i = 0; i < summary->buffer_count; i++) {
        total += summary->buffers[i].bytes;
        largest = fmax(largest, summary->buffers[i].bytes);
    }
    if (!(total > 0.0))
        return;
    page_section(page, "memory", "Device memory by buffer");
    base_text_add(page,
                  "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Memory\">\n"
                  "<table class=\"passes\">\n"
                  "<thead><tr><th scope=\"col\">Buffer</th><th scope=\"col\"></th>"
                  "<th scope=\"col\" class=\"number\">Share</th>"
                  "<th scope=\"col\" class=\"number\">Size</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < summary->buffer_count; i++)
        add_buffer(page, &summary->buffers[i], total, largest);
    base_text_add(page, "</tbody>\n</table>\n</div>\n</section>\n");
}
