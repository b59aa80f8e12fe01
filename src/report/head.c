/* Adds the header of report.html: scene, quality, training time, device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/page.h"
#include "report/progress_text.h"

/* Returns a text of summary.json, else of config.json (a run that has just started), else NULL. */
static const char *lookup(const struct run *run, const char *in_summary, const char *key)
{
    const cJSON *in_config = cJSON_GetObjectItemCaseSensitive(run->config, key);
    return in_summary ? in_summary : cJSON_IsString(in_config) ? in_config->valuestring : NULL;
}

const char *page_device(const struct run *run)
{
    return lookup(run, run->summary.device, "device");
}

const char *page_driver(const struct run *run)
{
    return lookup(run, run->summary.driver, "driver");
}

const char *page_backend(const struct run *run)
{
    return lookup(run, run->summary.path ? run->summary.path : run->summary.precision, "path");
}

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

char *page_run_name(const char *folder)
{
    char *absolute = realpath(folder, NULL), *name = page_last_part(absolute ? absolute : folder);
    free(absolute);
    return name;
}

bool page_names(const struct run *run, char **name, char **scene)
{
    const char *path = page_scene(run);
    *name = page_run_name(run->folder);
    *scene = page_last_part(path ? path : "");
    if (*name && *scene && (!(*scene)[0] || strcmp(*name, *scene) == 0)) {
        free(*scene);
        *scene = NULL;
        return true;
    }
    return *name && *scene;
}

static void add_names(struct base_text *page, const struct run *run)
{
    char *name = NULL, *scene = NULL;
    if (!page_names(run, &name, &scene)) {
        page->failed = true;
    } else if (scene) {
        page_text(page, scene);
        base_text_add(page, " <small>");
        page_text(page, name);
        base_text_add(page, "</small>");
    } else {
        page_text(page, name);
    }
    free(name);
    free(scene);
}

/* ---- tiles ---------------------------------------------------------------------------------- */

void page_tile_begin(struct base_text *page, const char *label)
{
    base_text_add(page, "<div class=\"tile\"><dt>%s</dt><dd class=\"value\">", label);
}

void page_tile_end(struct base_text *page, const char *more)
{
    base_text_add(page, "</dd><dd class=\"more\">");
    page_text(page, more);
    base_text_add(page, "</dd></div>\n");
}

/* Returns the latest evaluation with a PSNR; NULL when there is none. */
static const struct run_evaluation *last_evaluation(const struct run_summary *summary)
{
    for (size_t i = summary->evaluation_count; i > 0; i--)
        if (isfinite(summary->evaluations[i - 1].psnr))
            return &summary->evaluations[i - 1];
    return NULL;
}

/* Quality at the end of the run, else at its last evaluation, with the captions of their tiles. */
struct quality {
    double psnr, ssim;
    char psnr_caption[160], ssim_caption[192];
};

static struct quality find_quality(const struct run_summary *summary)
{
    struct quality quality = {summary->psnr, summary->ssim, "not measured", "not measured"};
    const struct run_evaluation *last = last_evaluation(summary);
    if (isfinite(quality.psnr) && isfinite(summary->psnr_aligned)) {
        snprintf(quality.psnr_caption, sizeof(quality.psnr_caption),
                 "mean of the test views; at aligned poses: %.2f dB", summary->psnr_aligned);
    } else if (isfinite(quality.psnr) && isfinite(summary->psnr_quadratic)) {
        snprintf(quality.psnr_caption, sizeof(quality.psnr_caption),
                 "mean of the test views; colours corrected: %.2f dB", summary->psnr_quadratic);
    } else if (isfinite(quality.psnr) && isfinite(summary->background_psnr)) {
        snprintf(quality.psnr_caption, sizeof(quality.psnr_caption),
                 "mean of the test views; background alone: %.2f dB", summary->background_psnr);
    } else if (isfinite(quality.psnr) && isfinite(summary->views) && isfinite(summary->floaters)) {
        snprintf(quality.psnr_caption, sizeof(quality.psnr_caption),
                 "mean of %.0f test views; opacity of floaters: %.3f %%", summary->views,
                 100.0 * summary->floaters);
    } else if (isfinite(quality.psnr) && isfinite(summary->views)) {
        snprintf(quality.psnr_caption, sizeof(quality.psnr_caption), "mean of %.0f test views",
                 summary->views);
    } else if (isfinite(quality.psnr)) {
        snprintf(quality.psnr_caption, sizeof(quality.psnr_caption), "mean of the test views");
    } else if (last) {
        quality.psnr = last->psnr;
        quality.ssim = last->ssim;
        char step[PAGE_STEP_NAME];
        page_step_name(step, last->step);
        snprintf(quality.psnr_caption, sizeof(quality.psnr_caption), "a few test views at %s",
                 step);
        snprintf(quality.ssim_caption, sizeof(quality.ssim_caption), "%s", quality.psnr_caption);
        return quality;
    }
    size_t length = strlen(quality.psnr_caption);
    if (isfinite(summary->depth_error))
        snprintf(quality.psnr_caption + length, sizeof(quality.psnr_caption) - length,
                 "; median error of depths: %.2f %%", 100.0 * summary->depth_error);
    if (isfinite(quality.ssim))
        snprintf(quality.ssim_caption, sizeof(quality.ssim_caption), "%.80s background, %.80s",
                 summary->background ? summary->background : "unknown",
                 summary->color_space ? summary->color_space : "unknown colour space");
    return quality;
}

static void add_quality_tiles(struct base_text *page, const struct run_summary *summary)
{
    struct quality quality = find_quality(summary);
    page_tile_begin(page, "Test PSNR");
    page_number(page, quality.psnr, 2);
    base_text_add(page, "%s", isfinite(quality.psnr) ? " <small>dB</small>" : "");
    page_tile_end(page, quality.psnr_caption);
    page_tile_begin(page, "Test SSIM");
    page_number(page, quality.ssim, 4);
    page_tile_end(page, quality.ssim_caption);
}

static void add_effort_tiles(struct base_text *page, const struct run *run)
{
    const struct run_metrics *metrics = &run->metrics;
    /* The log of an unfinished run is ahead of its summary. */
    double step = fmax(run->summary.step, run_last(metrics, RUN_STEP));
    double seconds = fmax(run->summary.seconds, run_last(metrics, RUN_SECONDS));
    char text[32], more[96] = "";
    page_tile_begin(page, "Steps");
    page_count(page, step);
    double skipped = fmax(run->summary.skipped_steps, run_last(metrics, RUN_SKIPPED));
    if (skipped > 0.0 && step > 0.0)
        snprintf(more, sizeof(more), "%.0f skipped (overflow), %.1f%%", skipped,
                 100.0 * skipped / step);
    else if (isfinite(skipped))
        snprintf(more, sizeof(more), "%.0f skipped (overflow)", skipped);
    page_tile_end(page, more);
    page_tile_begin(page, "Training time");
    report_duration(text, seconds);
    base_text_add(page, "%s", isfinite(seconds) ? text : "–");
    report_quantity(text, step / seconds);
    snprintf(more, sizeof(more), "%s steps/s", text);
    page_tile_end(page, isfinite(step / seconds) ? more : "not recorded");
}

/* Adds nothing for runs of versions that did not record the samples. */
static void add_sampling_tile(struct base_text *page, const struct run_sampling *sampling)
{
    char rays[32], more[160];
    int used = 0;
    if (!isfinite(sampling->evaluated_per_ray))
        return;
    page_tile_begin(page, "Samples per ray");
    page_number(page, sampling->evaluated_per_ray, 1);
    report_quantity(rays, sampling->rays_per_second);
    used = snprintf(more, sizeof(more), "%.24s: ", sampling->kind ? sampling->kind : "sampling");
    if (isfinite(sampling->empty_share))
        used += snprintf(more + used, sizeof(more) - (size_t)used, "%.1f%% of steps skipped, ",
                         100.0 * sampling->empty_share);
    snprintf(more + used, sizeof(more) - (size_t)used, "%.1f live, %s rays/s",
             sampling->live_per_ray, rays);
    page_tile_end(page, more);
}

static void add_parallel_tile(struct base_text *page, const struct run_parallel *parallel)
{
    char bytes[32], more[96] = "";
    if (!isfinite(parallel->ranks))
        return;
    page_tile_begin(page, "Ranks");
    page_count(page, parallel->ranks);
    report_quantity(bytes, parallel->exchange_bytes);
    if (isfinite(parallel->exchange_share))
        snprintf(more, sizeof(more), "%.1f%% of the time in all-reduces, %s%sB per step",
                 100.0 * parallel->exchange_share, bytes, strchr(bytes, ' ') ? "" : " ");
    page_tile_end(page, more);
}

static void add_machine_tiles(struct base_text *page, const struct run *run)
{
    page_tile_begin(page, "Precision");
    const char *precision = lookup(run, run->summary.precision, "path"), *device = page_device(run);
    page_text(page, precision ? precision : "–");
    page_tile_end(page, device ? device : "device not recorded");
    double bytes = run_last(&run->metrics, RUN_MEMORY);
    page_tile_begin(page, "Device memory");
    page_number(page, bytes / (1 << 20), 0);
    base_text_add(page, "%s", isfinite(bytes) ? " <small>MiB</small>" : "");
    page_tile_end(page, isfinite(bytes) ? "held at the last log line" : "not recorded");
}

/* ---- facts ---------------------------------------------------------------------------------- */

void page_fact(struct base_text *page, const char *name, const char *value)
{
    if (value == NULL)
        return;
    base_text_add(page, "<div><dt>%s</dt><dd>", name);
    page_text(page, value);
    base_text_add(page, "</dd></div>\n");
}

static void add_facts(struct base_text *page, const struct run *run)
{
    const struct run_summary *summary = &run->summary;
    base_text_add(page, "<dl class=\"facts\">\n");
    page_fact(page, "Scene", page_scene(run));
    page_fact(page, "Background", summary->background);
    page_fact(page, "Colour space", summary->color_space);
    page_fact(page, "Backend", page_backend(run));
    page_fact(page, "Gradient sums", summary->gradient_sums);
    page_fact(page, "Changed defaults", summary->policy);
    page_fact(page, "Device", page_device(run));
    page_fact(page, "Driver", page_driver(run));
    base_text_add(page, "</dl>\n");
}

/* ---- header --------------------------------------------------------------------------------- */

static void add_status(struct base_text *page, const struct run_summary *summary)
{
    const char *status = summary->status ? summary->status : summary->is_read ? NULL : "unfinished";
    if (status == NULL)
        return;
    bool finished = strcmp(status, "finished") == 0;
    base_text_add(page, " <span class=\"status%s\">", finished ? "" : " open");
    page_text(page, status);
    base_text_add(page, "</span>");
}

void page_head(struct base_text *page, const struct run *run)
{
    base_text_add(page, "<header>\n<p class=\"kind\">vknerf training report</p>\n<h1>");
    add_names(page, run);
    add_status(page, &run->summary);
    base_text_add(page, "</h1>\n");
    if (!run->summary.is_read)
        base_text_add(page,
                      "<p class=\"note\">There is no summary.json: the run has not ended or was "
                      "stopped before its evaluation. This report shows its log.</p>\n");
    if (run->summary.failure) {
        base_text_add(page, "<p class=\"note\">Failed: ");
        page_text(page, run->summary.failure);
        base_text_add(page, "</p>\n");
    }
    if (run->summary.gradient_warning) {
        base_text_add(page, "<p class=\"note\">Gradients: ");
        page_text(page, run->summary.gradient_warning);
        base_text_add(page, "</p>\n");
    }
    base_text_add(page, "<dl class=\"tiles\">\n");
    add_quality_tiles(page, &run->summary);
    add_effort_tiles(page, run);
    add_sampling_tile(page, &run->summary.sampling);
    add_parallel_tile(page, &run->summary.parallel);
    add_machine_tiles(page, run);
    base_text_add(page, "</dl>\n");
    add_facts(page, run);
    base_text_add(page, "</header>\n");
}
