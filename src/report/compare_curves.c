/* Adds the curves of several runs, against steps and against time. */
#include <math.h>
#include <stdlib.h>

#include "report/compare.h"

enum axis { AXIS_STEP, AXIS_TIME };

/* A unit of time. */
struct time_unit {
    const char *name;
    double seconds;
};

struct chart {
    const char *id, *title, *unit;
    int decimals;
    bool logarithmic, from_zero, stepwise;
    enum run_column column;
    bool is_test; /* draws `quality` of test views, not `column` */
    enum run_quality quality;
};

static const struct chart loss = {.id = "loss",
                                  .title = "Loss of training rays",
                                  .unit = "",
                                  .logarithmic = true,
                                  .column = RUN_LOSS};
static const struct chart loss_parts[] = {
    {.id = "distortion-loss",
     .title = "Distortion loss",
     .unit = "",
     .logarithmic = true,
     .column = RUN_DISTORTION_LOSS},
    {.id = "interlevel-loss",
     .title = "Interlevel loss",
     .unit = "",
     .logarithmic = true,
     .column = RUN_INTERLEVEL_LOSS},
    {.id = "coarse-loss",
     .title = "Loss of the coarse field",
     .unit = "",
     .logarithmic = true,
     .column = RUN_COARSE_LOSS},
};
static const struct chart psnr = {.id = "psnr",
                                  .title = "PSNR of training rays",
                                  .unit = "dB",
                                  .decimals = 2,
                                  .column = RUN_PSNR};
static const struct chart test_psnr = {
    .id = "test-psnr", .title = "PSNR of test views", .unit = "dB", .decimals = 2, .is_test = true};
static const struct chart test_ssim = {.id = "test-ssim",
                                       .title = "SSIM of test views",
                                       .unit = "",
                                       .decimals = 4,
                                       .is_test = true,
                                       .quality = RUN_TEST_SSIM};
static const struct chart loss_scale = {.id = "loss-scale",
                                        .title = "Loss scale",
                                        .unit = "",
                                        .decimals = -1,
                                        .logarithmic = true,
                                        .stepwise = true,
                                        .column = RUN_LOSS_SCALE};
static const struct chart grad_norm = {.id = "grad-norm",
                                       .title = "Gradient norm",
                                       .unit = "",
                                       .logarithmic = true,
                                       .column = RUN_GRAD_NORM};
static const struct chart skipped = {.id = "skipped-steps",
                                     .title = "Skipped steps",
                                     .unit = "",
                                     .decimals = -1,
                                     .from_zero = true,
                                     .stepwise = true,
                                     .column = RUN_SKIPPED};
static const struct chart underflowed = {.id = "underflowed",
                                         .title = "Share of gradients that underflowed in f16",
                                         .unit = "",
                                         .from_zero = true,
                                         .column = RUN_UNDERFLOWED};
static const struct chart idle = {.id = "idle-share",
                                  .title = "Share of idle time of the device",
                                  .unit = "",
                                  .from_zero = true,
                                  .column = RUN_IDLE};
static const struct chart throughput = {.id = "throughput",
                                        .title = "Live samples",
                                        .unit = "/s",
                                        .from_zero = true,
                                        .column = RUN_SAMPLES};
static const struct chart rays = {
    .id = "rays", .title = "Rays", .unit = "/s", .from_zero = true, .column = RUN_RAYS};

/* ---- points --------------------------------------------------------------------------------- */

static struct time_unit choose_time_unit(const struct comparison *comparison)
{
    double longest = 0.0;
    for (size_t i = 0; i < comparison->count; i++)
        longest = fmax(longest, run_last(&comparison->runs[i].run.metrics, RUN_SECONDS));
    return longest > 3.0 * 3600.0 ? (struct time_unit){"hours", 3600.0}
           : longest > 180.0      ? (struct time_unit){"min", 60.0}
                                  : (struct time_unit){"sec", 1.0};
}

/* Points of one curve; `x` is the one allocation of both arrays. */
struct points {
    double *x, *y;
    size_t count;
};

/* Adds a point unless its x is unknown or less than the previous point's. */
static void add_point(struct points *points, double x, double y)
{
    bool in_order = points->count == 0 || x >= points->x[points->count - 1];
    if (!isfinite(x) || x < 0.0 || !in_order)
        return;
    points->x[points->count] = x;
    points->y[points->count++] = y;
}

static bool collect_points(const struct run *run, const struct chart *chart, enum axis axis,
                           const struct time_unit *time_unit, struct points *points)
{
    struct run_series series = {0};
    if (chart->is_test && run_test_quality(run, chart->quality, &series) != VKN_OK)
        return false;
    const struct run_metrics *metrics = &run->metrics;
    size_t count = chart->is_test ? series.count : metrics->count;
    const double *steps = chart->is_test ? series.steps : metrics->values[RUN_STEP];
    const double *seconds = chart->is_test ? series.seconds : metrics->values[RUN_SECONDS];
    const double *values = chart->is_test ? series.values : metrics->values[chart->column];
    *points = (struct points){.x = base_alloc(2 * count, sizeof(double))};
    if (points->x) {
        points->y = points->x + count;
        for (size_t i = 0; i < count; i++)
            add_point(points, axis == AXIS_STEP ? steps[i] : seconds[i] / time_unit->seconds,
                      values[i]);
    }
    free(series.steps);
    return points->x != NULL;
}

/* ---- charts --------------------------------------------------------------------------------- */

static void add_chart(struct base_text *page, const struct comparison *comparison,
                      const struct chart *chart, enum axis axis)
{
    struct time_unit time_unit = choose_time_unit(comparison);
    char id[40], title[80];
    snprintf(id, sizeof(id), "%s-%s", chart->id, axis == AXIS_STEP ? "steps" : "time");
    snprintf(title, sizeof(title), "%s <small>by %s</small>", chart->title,
             axis == AXIS_STEP ? "step" : "time");
    struct plot plot = {
        .id = id,
        .title = title,
        .unit = chart->unit,
        .decimals = chart->decimals,
        .logarithmic = chart->logarithmic,
        .from_zero = chart->from_zero,
        .smooth = !chart->stepwise,
        .hide_raw = true,
        .stepwise = chart->stepwise,
        .x_name = axis == AXIS_STEP ? "step" : time_unit.name,
    };
    double *memory[COMPARE_MOST] = {0};
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared *compared = &comparison->runs[i];
        struct points points = {0};
        page->failed |= !collect_points(&compared->run, chart, axis, &time_unit, &points);
        memory[i] = points.x;
        plot.curves[plot.curve_count++] = (struct plot_curve){
            .name = compared->name,
            .css_class = compared->css_class,
            .count = points.count,
            .x = points.x,
            .values = points.y,
            .dots = chart->is_test,
        };
    }
    plot_figure(page, &plot);
    for (size_t i = 0; i < comparison->count; i++)
        free(memory[i]);
}

static void add_both(struct base_text *page, const struct comparison *comparison,
                     const struct chart *chart)
{
    add_chart(page, comparison, chart, AXIS_STEP);
    add_chart(page, comparison, chart, AXIS_TIME);
}

static bool any_evaluation(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (comparison->runs[i].run.summary.evaluation_count > 0)
            return true;
    return false;
}

/* Returns whether an evaluation has an SSIM; views smaller than SSIM's window have none. */
static bool any_ssim(const struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++) {
        const struct run_summary *summary = &comparison->runs[i].run.summary;
        for (size_t j = 0; j < summary->evaluation_count; j++)
            if (isfinite(summary->evaluations[j].ssim))
                return true;
    }
    return false;
}

static bool any_differs(const struct comparison *comparison, enum run_column column, double usual)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (run_differs(&comparison->runs[i].run.metrics, column, usual))
            return true;
    return false;
}

static bool any_finite(const struct comparison *comparison, enum run_column column)
{
    for (size_t i = 0; i < comparison->count; i++)
        if (isfinite(run_last(&comparison->runs[i].run.metrics, column)))
            return true;
    return false;
}

/* Adds the charts of gradients, except charts that are empty, or constant, in all runs. */
static void add_gradient_charts(struct base_text *page, const struct comparison *comparison)
{
    if (any_finite(comparison, RUN_GRAD_NORM))
        add_chart(page, comparison, &grad_norm, AXIS_STEP);
    if (any_differs(comparison, RUN_LOSS_SCALE, 1.0))
        add_chart(page, comparison, &loss_scale, AXIS_STEP);
    if (any_differs(comparison, RUN_SKIPPED, 0.0))
        add_chart(page, comparison, &skipped, AXIS_STEP);
    if (any_differs(comparison, RUN_UNDERFLOWED, 0.0))
        add_chart(page, comparison, &underflowed, AXIS_STEP);
    if (any_finite(comparison, RUN_IDLE))
        add_chart(page, comparison, &idle, AXIS_STEP);
}

void compare_curves(struct base_text *page, const struct comparison *comparison)
{
    page_section(page, "convergence", "Convergence");
    base_text_add(page, "<div class=\"charts\">\n");
    add_both(page, comparison, &loss);
    for (size_t i = 0; i < BASE_COUNT(loss_parts); i++)
        if (any_finite(comparison, loss_parts[i].column))
            add_chart(page, comparison, &loss_parts[i], AXIS_STEP);
    add_both(page, comparison, &psnr);
    if (any_evaluation(comparison))
        add_both(page, comparison, &test_psnr);
    if (any_ssim(comparison))
        add_both(page, comparison, &test_ssim);
    base_text_add(page, "</div>\n</section>\n");
    page_section(page, "speed", "Precision and throughput");
    base_text_add(page, "<div class=\"charts\">\n");
    add_gradient_charts(page, comparison);
    add_chart(page, comparison, &throughput, AXIS_STEP);
    add_chart(page, comparison, &rays, AXIS_STEP);
    base_text_add(page, "</div>\n</section>\n");
}
