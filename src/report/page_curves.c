/* Adds the curves of report.html. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/page.h"
#include "report/chart.h"

static struct plot make_plot(const struct run *run, const char *id, const char *title,
                             const char *unit)
{
    const struct run_metrics *metrics = &run->metrics;
    return (struct plot){
        .id = id,
        .title = title,
        .unit = unit,
        .x_name = "step",
        .seconds = isfinite(run_last(metrics, RUN_SECONDS)) ? metrics->values[RUN_SECONDS] : NULL};
}

static void add_curve(struct plot *plot, const struct run *run, const char *name,
                      enum run_column column)
{
    static const char *const css_classes[] = {"c1", "c2", "c3", "mark"};
    plot->curves[plot->curve_count] =
        (struct plot_curve){.name = name,
                            .css_class = css_classes[plot->curve_count],
                            .count = run->metrics.count,
                            .x = run->metrics.values[RUN_STEP],
                            .values = run->metrics.values[column]};
    plot->curve_count++;
}

/* Adds the curves of the loss: of the rays' colours and, each by itself, of its other parts. */
static void add_loss(struct base_text *page, const struct run *run)
{
    static const struct {
        const char *name;
        enum run_column column;
    } parts[] = {{"distortion", RUN_DISTORTION_LOSS},
                 {"interlevel", RUN_INTERLEVEL_LOSS},
                 {"coarse field", RUN_COARSE_LOSS}};
    struct plot plot = make_plot(run, "loss", "Loss", "");
    plot.logarithmic = plot.smooth = true;
    add_curve(&plot, run, "training rays", RUN_LOSS);
    for (size_t i = 0; i < BASE_COUNT(parts); i++)
        if (isfinite(run_last(&run->metrics, parts[i].column)))
            add_curve(&plot, run, parts[i].name, parts[i].column);
    plot_figure(page, &plot);
}

/* Reads *tests and adds its curve. The caller frees tests->steps, also after a failure. */
static vkn_status add_tests(struct plot *plot, const struct run *run, enum run_quality quality,
                            struct run_series *tests)
{
    BASE_TRY(run_test_quality(run, quality, tests));
    if (plot->curve_count == 0)
        plot->seconds = tests->seconds;
    plot->curves[plot->curve_count++] = (struct plot_curve){.name = "test views",
                                                            .css_class = "mark",
                                                            .count = tests->count,
                                                            .x = tests->steps,
                                                            .values = tests->values,
                                                            .dots = true};
    return VKN_OK;
}

static void add_psnr(struct base_text *page, const struct run *run)
{
    struct plot plot = make_plot(run, "psnr", "PSNR", "dB");
    plot.smooth = true;
    plot.decimals = 2;
    add_curve(&plot, run, "training rays", RUN_PSNR);
    struct run_series tests;
    if (add_tests(&plot, run, RUN_TEST_PSNR, &tests) == VKN_OK)
        plot_figure(page, &plot);
    else
        page->failed = true;
    free(tests.steps);
}

/* Adds the SSIM of the test views; nothing without evaluations. */
static void add_ssim(struct base_text *page, const struct run *run)
{
    struct plot plot = make_plot(run, "ssim", "SSIM", "");
    plot.decimals = 4;
    struct run_series tests;
    if (add_tests(&plot, run, RUN_TEST_SSIM, &tests) != VKN_OK)
        page->failed = true;
    else if (tests.count > 0)
        plot_figure(page, &plot);
    free(tests.steps);
}

/* Adds the PSNR of a dynamic scene's test views by time, and of the background alone. */
static void add_psnr_by_time(struct base_text *page, const struct run *run)
{
    const struct run_summary *summary = &run->summary;
    size_t count = 0;
    while (count < summary->by_time_count && isfinite(summary->by_time[count].time))
        count++;
    if (count == 0)
        return;
    double *times = base_alloc(3 * count, sizeof *times);
    if (times == NULL) {
        page->failed = true;
        return;
    }
    double *psnr = times + count, *blank = times + 2 * count;
    for (size_t i = 0; i < count; i++) {
        times[i] = summary->by_time[i].time;
        psnr[i] = summary->by_time[i].psnr;
        blank[i] = summary->by_time[i].background_psnr;
    }
    struct plot plot = {
        .id = "psnr-by-time",
        .title = "PSNR by the view's time",
        .unit = "dB",
        .decimals = 2,
        .hide_last = true,
        .x_name = "time",
        .curve_count = isfinite(summary->background_psnr) ? 2 : 1,
        .curves = {{"test views", "mark", count, times, psnr, .dots = true},
                   {"background alone", "c2", count, times, blank, .dots = true}},
    };
    plot_figure(page, &plot);
    free(times);
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

/* Adds the curves of loss scaling, except curves that keep their usual value. */
static void add_loss_scaling(struct base_text *page, const struct run *run)
{
    if (run_differs(&run->metrics, RUN_LOSS_SCALE, 1.0)) {
        struct plot scale = make_plot(run, "loss-scale", "Loss scale", "");
        scale.logarithmic = scale.stepwise = true;
        scale.decimals = -1;
        add_curve(&scale, run, "loss scale", RUN_LOSS_SCALE);
        plot_figure(page, &scale);
    }
    if (run_differs(&run->metrics, RUN_SKIPPED, 0.0)) {
        struct plot skipped = make_plot(run, "skipped-steps", "Skipped steps", "");
        skipped.from_zero = skipped.stepwise = true;
        skipped.decimals = -1;
        add_curve(&skipped, run, "since the start", RUN_SKIPPED);
        plot_figure(page, &skipped);
    }
    if (run_differs(&run->metrics, RUN_UNDERFLOWED, 0.0)) {
        struct plot underflowed =
            make_plot(run, "underflowed", "Gradients that underflowed in f16", "");
        underflowed.from_zero = underflowed.smooth = true;
        add_curve(&underflowed, run, "share", RUN_UNDERFLOWED);
        plot_figure(page, &underflowed);
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
    page_section(page, "training", "Training");
    if (run->metrics.count == 0 && run->summary.evaluation_count == 0) {
        base_text_add(page,
                      "<p class=\"absent\">metrics.jsonl holds no line yet.</p>\n</section>\n");
        return;
    }
    base_text_add(page, "<div class=\"charts\">\n");
    add_psnr(page, run);
    add_ssim(page, run);
    add_psnr_by_time(page, run);
    add_loss(page, run);
    add_optimizer_curves(page, run);
    add_loss_scaling(page, run);
    add_throughput(page, run);
    base_text_add(page, "</div>\n</section>\n");
}
