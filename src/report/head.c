/* Headline of report.html: what was trained, how good it is, how long it took, on what. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/page.h"
#include "report/progress_text.h"

const char *page_scene(const struct run *run)
{
    if (run->summary.scene)
        return run->summary.scene;
    const cJSON *scene = cJSON_GetObjectItemCaseSensitive(run->config, "scene");
    if (cJSON_IsObject(scene))
        scene = cJSON_GetObjectItemCaseSensitive(scene, "path");
    return cJSON_IsString(scene) ? scene->valuestring : NULL;
}

char *page_last_part(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return end > begin ? base_format("%.*s", (int)(end - begin), path + begin)
                       : base_format("%s", path);
}

static void add_last_part(struct base_text *page, const char *path)
{
    char *part = page_last_part(path);
    page_text(page, part ? part : path);
    free(part);
}

static double first_finite(double a, double b)
{
    return isfinite(a) ? a : b;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

static void open_tile(struct base_text *page, const char *label)
{
    base_text_add(page, "<div class=\"tile\"><dt>%s</dt><dd class=\"value\">", label);
}

static void close_tile(struct base_text *page, const char *more)
{
    base_text_add(page, "</dd><dd class=\"more\">");
    page_text(page, more);
    base_text_add(page, "</dd></div>\n");
}

static void add_quality_tiles(struct base_text *page, const struct run_summary *summary)
{
    char more[256] = "not measured";
    if (isfinite(summary->psnr))
        snprintf(more, sizeof(more), "mean of %.0f test views", summary->views);
    if (isfinite(summary->psnr) && !isfinite(summary->views))
        snprintf(more, sizeof(more), "mean of the test views");
    open_tile(page, "Test PSNR");
    page_number(page, summary->psnr, 2);
    base_text_add(page, "%s", isfinite(summary->psnr) ? " <small>dB</small>" : "");
    close_tile(page, more);
    snprintf(more, sizeof(more), "%.80s background, %.80s",
             summary->background ? summary->background : "unknown",
             summary->color_space ? summary->color_space : "unknown colour space");
    open_tile(page, "Test SSIM");
    page_number(page, summary->ssim, 4);
    close_tile(page, isfinite(summary->ssim) ? more : "not measured");
}

static void add_effort_tiles(struct base_text *page, const struct run *run)
{
    const struct run_metrics *metrics = &run->metrics;
    double step = first_finite(run->summary.step, run_last(metrics, RUN_STEP));
    double seconds = first_finite(run->summary.seconds, run_last(metrics, RUN_SECONDS));
    char text[32], more[96] = "";
    open_tile(page, "Steps");
    page_count(page, step);
    double skipped = run_last(metrics, RUN_SKIPPED);
    if (isfinite(skipped))
        snprintf(more, sizeof(more), "%.0f skipped (overflow)", skipped);
    close_tile(page, more);
    open_tile(page, "Training time");
    report_duration(text, seconds);
    base_text_add(page, "%s", isfinite(seconds) ? text : "–");
    report_quantity(text, step / seconds);
    snprintf(more, sizeof(more), "%s steps/s", text);
    close_tile(page, isfinite(step / seconds) ? more : "not recorded");
}

static void add_machine_tiles(struct base_text *page, const struct run *run)
{
    open_tile(page, "Precision");
    page_text(page, run->summary.precision ? run->summary.precision : "–");
    close_tile(page, run->summary.device ? run->summary.device : "device not recorded");
    double bytes = run_last(&run->metrics, RUN_MEMORY);
    open_tile(page, "Device memory");
    page_number(page, bytes / (1 << 20), 0);
    base_text_add(page, "%s", isfinite(bytes) ? " <small>MiB</small>" : "");
    close_tile(page, isfinite(bytes) ? "held at the last log line" : "not recorded");
}

/* ---- facts ---------------------------------------------------------------------------------- */

static void add_fact(struct base_text *page, const char *name, const char *value)
{
    base_text_add(page, "<div><dt>%s</dt><dd%s>", name, value ? "" : " class=\"absent\"");
    page_text(page, value ? value : "not recorded");
    base_text_add(page, "</dd></div>\n");
}

static void add_facts(struct base_text *page, const struct run *run)
{
    const struct run_summary *summary = &run->summary;
    base_text_add(page, "<dl class=\"facts\">\n");
    add_fact(page, "Scene", page_scene(run));
    add_fact(page, "Background", summary->background);
    add_fact(page, "Colour space", summary->color_space);
    add_fact(page, "Path", summary->path);
    add_fact(page, "Gradient sums", summary->gradient_sums);
    add_fact(page, "Device", summary->device);
    add_fact(page, "Driver", summary->driver);
    base_text_add(page, "</dl>\n");
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void add_status(struct base_text *page, const struct run_summary *summary)
{
    const char *status = summary->status ? summary->status : summary->present ? NULL : "unfinished";
    if (status == NULL)
        return;
    bool finished = strcmp(status, "finished") == 0;
    base_text_add(page, " <span class=\"status%s\">", finished ? "" : " open");
    page_text(page, status);
    base_text_add(page, "</span>");
}

void page_head(struct base_text *page, const struct run *run)
{
    const char *scene = page_scene(run);
    base_text_add(page, "<header>\n<p class=\"kind\">vknerf training report</p>\n<h1>");
    add_last_part(page, scene ? scene : run->folder);
    add_status(page, &run->summary);
    base_text_add(page, "</h1>\n");
    if (!run->summary.present)
        base_text_add(
            page, "<p class=\"note\">There is no summary.json: the run is still going on or was "
                  "stopped before its evaluation. What follows comes from its log.</p>\n");
    base_text_add(page, "<dl class=\"tiles\">\n");
    add_quality_tiles(page, &run->summary);
    add_effort_tiles(page, run);
    add_machine_tiles(page, run);
    base_text_add(page, "</dl>\n");
    add_facts(page, run);
    base_text_add(page, "</header>\n");
}
