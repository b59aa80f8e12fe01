/* Curves and pictures of report.html. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"
#include "report/plot.h"

/* Bytes of pictures in one page; beyond, views are listed with their numbers only. */
#define PICTURE_BUDGET ((size_t)64 << 20)

/* ---- curves --------------------------------------------------------------------------------- */

static struct plot make_plot(const struct run *run, const char *id, const char *title,
                             const char *unit)
{
    const struct run_metrics *metrics = &run->metrics;
    return (struct plot){.id = id,
                         .title = title,
                         .unit = unit,
                         .count = metrics->count,
                         .steps = metrics->values[RUN_STEP],
                         .seconds = metrics->values[RUN_SECONDS]};
}

static void add_curve(struct plot *plot, const struct run *run, const char *name,
                      enum run_column column)
{
    plot->curves[plot->curve_count++] = (struct plot_curve){name, run->metrics.values[column]};
}

static void add_loss(struct base_text *page, const struct run *run)
{
    struct plot plot = make_plot(run, "loss", "Loss", "");
    plot.logarithmic = plot.smooth = true;
    add_curve(&plot, run, "training rays", RUN_LOSS);
    plot_figure(page, &plot);
}

static void add_psnr(struct base_text *page, const struct run *run)
{
    const struct run_summary *summary = &run->summary;
    struct plot plot = make_plot(run, "psnr", "PSNR", "dB");
    plot.smooth = true;
    plot.decimals = 2;
    add_curve(&plot, run, "training rays", RUN_PSNR);
    double *marks = base_alloc(2 * summary->evaluation_count, sizeof(*marks));
    if (marks == NULL) {
        page->failed = true;
        return;
    }
    plot.mark_name = "test views";
    plot.mark_steps = marks;
    plot.mark_values = marks + summary->evaluation_count;
    for (size_t i = 0; i < summary->evaluation_count; i++) {
        if (!isfinite(summary->evaluations[i].step) || !isfinite(summary->evaluations[i].psnr))
            continue;
        marks[plot.mark_count] = summary->evaluations[i].step;
        marks[summary->evaluation_count + plot.mark_count++] = summary->evaluations[i].psnr;
    }
    plot_figure(page, &plot);
    free(marks);
}

static void add_optimizer_curves(struct base_text *page, const struct run *run)
{
    struct plot rate = make_plot(run, "learning-rate", "Learning rate", "");
    rate.logarithmic = true;
    add_curve(&rate, run, "learning rate", RUN_LEARNING_RATE);
    plot_figure(page, &rate);
    if (!isfinite(run_last(&run->metrics, RUN_GRAD_NORM)))
        return;
    struct plot norm = make_plot(run, "grad-norm", "Gradient norm", "");
    norm.logarithmic = norm.smooth = true;
    add_curve(&norm, run, "unscaled gradient", RUN_GRAD_NORM);
    plot_figure(page, &norm);
}

/* Whether any line has another value than the one that means nothing happened. */
static bool differs(const struct run *run, enum run_column column, double usual)
{
    const struct run_metrics *metrics = &run->metrics;
    for (size_t i = 0; i < metrics->count; i++)
        if (isfinite(metrics->values[column][i]) && metrics->values[column][i] != usual)
            return true;
    return false;
}

/* Nothing when losses were not scaled, no step was skipped and no gradient flushed to zero. */
static void add_loss_scaling(struct base_text *page, const struct run *run)
{
    if (differs(run, RUN_LOSS_SCALE, 1.0)) {
        struct plot scale = make_plot(run, "loss-scale", "Loss scale", "");
        scale.logarithmic = scale.stairs = true;
        scale.decimals = -1;
        add_curve(&scale, run, "loss scale", RUN_LOSS_SCALE);
        plot_figure(page, &scale);
    }
    if (differs(run, RUN_SKIPPED, 0.0)) {
        struct plot skipped = make_plot(run, "skipped-steps", "Skipped steps", "");
        skipped.from_zero = skipped.stairs = true;
        skipped.decimals = -1;
        add_curve(&skipped, run, "since the start", RUN_SKIPPED);
        plot_figure(page, &skipped);
    }
    if (differs(run, RUN_FLUSHED, 0.0)) {
        struct plot flushed = make_plot(run, "flushed", "Gradients flushed to zero by 16 bits", "");
        flushed.from_zero = flushed.smooth = true;
        add_curve(&flushed, run, "share", RUN_FLUSHED);
        plot_figure(page, &flushed);
    }
}

static void add_throughput(struct base_text *page, const struct run *run)
{
    struct plot plot = make_plot(run, "throughput", "Throughput", "/s");
    plot.from_zero = plot.smooth = true;
    add_curve(&plot, run, "live samples", RUN_SAMPLES);
    add_curve(&plot, run, "rays", RUN_RAYS);
    if (isfinite(run_last(&run->metrics, RUN_MARCHED)))
        add_curve(&plot, run, "marched samples", RUN_MARCHED);
    plot_figure(page, &plot);
}

void page_curves(struct base_text *page, const struct run *run)
{
    base_text_add(page, "<section>\n<h2>Training</h2>\n");
    if (run->metrics.count == 0 && run->summary.evaluation_count == 0) {
        base_text_add(page,
                      "<p class=\"absent\">metrics.jsonl holds no line yet.</p>\n</section>\n");
        return;
    }
    base_text_add(page, "<div class=\"charts\">\n");
    add_loss(page, run);
    add_psnr(page, run);
    add_optimizer_curves(page, run);
    add_loss_scaling(page, run);
    add_throughput(page, run);
    base_text_add(page, "</div>\n</section>\n");
}

/* ---- pictures ------------------------------------------------------------------------------- */

static void add_cell(struct base_text *page, const struct run *run, const char *name,
                     const char *kind, const char *path, size_t *budget)
{
    char alt[256];
    snprintf(alt, sizeof(alt), "%.200s: %s", name, kind);
    base_text_add(page, "<div class=\"%s\">", kind);
    page_picture(page, run->folder, path, alt, budget);
    base_text_add(page, "%s</div>\n", kind);
}

static void add_view(struct base_text *page, const struct run *run, size_t index, size_t *budget)
{
    const struct run_picture *picture = &run->summary.pictures[index];
    char name[160];
    if (picture->name)
        snprintf(name, sizeof(name), "%.150s", picture->name);
    else
        snprintf(name, sizeof(name), "view %zu", index);
    base_text_add(page, "<figure class=\"view\">\n<figcaption><h3>");
    page_text(page, name);
    base_text_add(page, "</h3><span>PSNR ");
    page_number(page, picture->psnr, 2);
    base_text_add(page, " dB</span><span>SSIM ");
    page_number(page, picture->ssim, 4);
    base_text_add(page, "</span></figcaption>\n<div class=\"triple\">\n");
    add_cell(page, run, name, "target", picture->target, budget);
    add_cell(page, run, name, "render", picture->render, budget);
    add_cell(page, run, name, "error", picture->error, budget);
    base_text_add(page, "</div>\n</figure>\n");
}

void page_pictures(struct base_text *page, const struct run *run)
{
    base_text_add(page, "<section>\n<h2>Test views</h2>\n");
    if (run->summary.picture_count == 0) {
        base_text_add(
            page,
            "<p class=\"absent\">No view has been rendered for this report.</p>\n</section>\n");
        return;
    }
    size_t budget = PICTURE_BUDGET;
    base_text_add(page, "<div class=\"views\">\n");
    for (size_t i = 0; i < run->summary.picture_count; i++)
        add_view(page, run, i, &budget);
    base_text_add(page, "</div>\n</section>\n");
}
