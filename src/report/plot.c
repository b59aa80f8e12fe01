/* Draws a chart of curves as an SVG figure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/chart.h"
#include "report/page.h"
#include "report/progress_text.h"

/* Sizes of the drawing in user units, about one pixel each on a desktop. */
#define WIDTH           560.0
#define HEIGHT          250.0
#define LEFT            55.0
#define RIGHT           24.0
#define TOP             10.0
#define BOTTOM          42.0
#define PLOT_WIDTH      (WIDTH - LEFT - RIGHT)
#define PLOT_HEIGHT     (HEIGHT - TOP - BOTTOM)
#define CHARACTER_WIDTH 6.6 /* upper bound at 11 px */

/* Curves with more points are reduced to two points per column. */
#define MANY_POINTS 2000
#define COLUMNS     800
/* Curves with fewer points are not smoothed, and each point has a dot. */
#define FEW_POINTS  16

struct frame {
    double x_low, x_high, y_low, y_high; /* the y range is in log10 when logarithmic */
    bool logarithmic;
};

static double to_x(const struct frame *frame, double step)
{
    return LEFT + PLOT_WIDTH * ((step - frame->x_low) / (frame->x_high - frame->x_low));
}

/* Returns the y of a value; NaN for a value that a logarithmic axis cannot show. */
static double to_y(const struct frame *frame, double value)
{
    if (frame->logarithmic)
        value = value > 0.0 ? log10(value) : (double)NAN;
    return TOP + PLOT_HEIGHT * (1.0 - (value - frame->y_low) / (frame->y_high - frame->y_low));
}

/* ---- ranges --------------------------------------------------------------------------------- */

static void widen_flat(double *low, double *high, bool logarithmic)
{
    double least = logarithmic ? log10(4.0) : fmax(fabs(*low), fabs(*high)) * 1e-3;
    if (least <= 0.0)
        least = 1.0;
    double missing = least - (*high - *low);
    if (missing > 0.0) {
        *low -= missing / 2.0;
        *high += missing / 2.0;
    }
}

/* Computes the axes' ranges. False when there is nothing to draw. */
static bool fit_frame(const struct plot *plot, struct frame *frame)
{
    double low = HUGE_VAL, high = -HUGE_VAL, first = 0.0, last = 0.0;
    for (size_t i = 0; i < plot->curve_count; i++) {
        const struct plot_curve *curve = &plot->curves[i];
        curve_range(curve->values, curve->count, plot->logarithmic, &low, &high);
        curve_range(curve->x, curve->count, 0, &first, &last);
    }
    if (!(low <= high) || !isfinite(high - low))
        return false;
    if (plot->logarithmic) {
        low = log10(low);
        high = log10(high);
    } else if (plot->from_zero && low > 0.0) {
        low = 0.0;
    }
    widen_flat(&low, &high, plot->logarithmic);
    if (plot->logarithmic) {
        double margin = 0.04 * (high - low);
        low -= margin;
        high += margin;
    } else {
        ticks_round_out(&low, &high, 6);
    }
    *frame = (struct frame){0.0, last > 0.0 ? last : 1.0, low, high, plot->logarithmic};
    return true;
}

/* ---- axes ----------------------------------------------------------------------------------- */

static void draw_y_axis(struct base_text *page, const struct frame *frame)
{
    struct ticks ticks;
    if (frame->logarithmic)
        ticks_logarithmic(frame->y_low, frame->y_high, 7, &ticks);
    if (frame->logarithmic && ticks.count < 3) /* less than a decade */
        ticks_linear(pow(10.0, frame->y_low), pow(10.0, frame->y_high), 4, &ticks);
    if (!frame->logarithmic)
        ticks_linear(frame->y_low, frame->y_high, 6, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double y = to_y(frame, ticks.value[i]);
        base_text_add(page, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", LEFT, y, WIDTH - RIGHT);
        base_text_add(page, "<text class=\"y\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", LEFT - 7.0,
                      y + 3.8, ticks.label[i]);
    }
}

/* Returns the training time at a step, interpolated (0 at step 0); NaN when unknown. */
static double time_at(const struct plot *plot, double step)
{
    const struct plot_curve *curve = &plot->curves[0];
    double step_before = 0.0, time_before = 0.0;
    for (size_t i = 0; i < curve->count; i++) {
        if (!isfinite(plot->seconds[i]))
            continue;
        if (curve->x[i] >= step) {
            double span = curve->x[i] - step_before;
            double fraction = span > 0.0 ? (step - step_before) / span : 1.0;
            return time_before + fraction * (plot->seconds[i] - time_before);
        }
        step_before = curve->x[i];
        time_before = plot->seconds[i];
    }
    /* Steps after the last log line have no known time. */
    return step <= step_before ? time_before : (double)NAN;
}

/* Formats the time label of a step; empty when the plot has no times or the time is unknown. */
static void time_label(char text[32], const struct plot *plot, double step)
{
    text[0] = 0;
    if (!plot->seconds)
        return;
    size_t count = plot->curves[0].count;
    double seconds = time_at(plot, step), last = count ? plot->seconds[count - 1] : 0.0;
    if (isfinite(seconds) && last < 10.0)
        snprintf(text, 32, "%.1f s", seconds);
    else if (isfinite(seconds))
        report_duration(text, seconds);
}

/* Chooses as many ticks as fit without overlapping labels (step above, time below). */
static void fit_x_ticks(const struct plot *plot, const struct frame *frame, struct ticks *ticks)
{
    for (size_t wanted = 8; wanted > 0; wanted--) {
        ticks_linear(frame->x_low, frame->x_high, wanted, ticks);
        size_t longest = 1;
        for (size_t i = 0; i < ticks->count; i++) {
            char text[32];
            time_label(text, plot, ticks->value[i]);
            size_t size =
                strlen(text) > strlen(ticks->label[i]) ? strlen(text) : strlen(ticks->label[i]);
            longest = size > longest ? size : longest;
        }
        double gap =
            ticks->count > 1 ? to_x(frame, ticks->value[1]) - to_x(frame, ticks->value[0]) : WIDTH;
        if (gap >= ((double)longest + 2.0) * CHARACTER_WIDTH)
            return;
    }
}

static void draw_x_axis(struct base_text *page, const struct plot *plot, const struct frame *frame)
{
    struct ticks ticks;
    fit_x_ticks(plot, frame, &ticks);
    double y = HEIGHT - BOTTOM;
    base_text_add(page, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>", LEFT, y, WIDTH - RIGHT);
    base_text_add(page, "<text class=\"y\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", LEFT - 21.0,
                  y + 17.0, plot->x_name);
    if (plot->seconds)
        base_text_add(page, "<text class=\"y faint\" x=\"%.1f\" y=\"%.1f\">time</text>\n",
                      LEFT - 21.0, y + 32.0);
    for (size_t i = 0; i < ticks.count; i++) {
        double x = to_x(frame, ticks.value[i]);
        char time[32];
        time_label(time, plot, ticks.value[i]);
        base_text_add(page, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>", x, y);
        base_text_add(page, "<text class=\"x\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, y + 17.0,
                      ticks.label[i]);
        if (time[0])
            base_text_add(page, "<text class=\"x faint\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x,
                          y + 32.0, time);
    }
}

/* ---- curves --------------------------------------------------------------------------------- */

struct points {
    const double *x, *y;
    size_t count;
};

static void draw_path(struct base_text *page, const struct frame *frame,
                      const struct points *points, bool stepwise, const char *class_name)
{
    base_text_add(page, "<path class=\"%s\" d=\"", class_name);
    bool drawing = false;
    for (size_t i = 0; i < points->count; i++) {
        double x = to_x(frame, points->x[i]), y = to_y(frame, points->y[i]);
        if (!isfinite(y)) {
            drawing = false;
            continue;
        }
        if (!drawing)
            base_text_add(page, "M%.1f %.1f", x, y);
        else if (stepwise)
            base_text_add(page, "H%.1fV%.1f", x, y);
        else
            base_text_add(page, "L%.1f %.1f", x, y);
        drawing = true;
    }
    base_text_add(page, "\"/>\n");
}

static void draw_dots(struct base_text *page, const struct plot *plot, const struct frame *frame,
                      const struct plot_curve *curve, double radius)
{
    for (size_t i = 0; i < curve->count; i++) {
        double x = to_x(frame, curve->x[i]), y = to_y(frame, curve->values[i]);
        if (isfinite(x) && isfinite(y))
            base_text_add(
                page,
                "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>%s %.6g: %.4g"
                "</title></circle>\n",
                curve->css_class, x, y, radius, plot->x_name, curve->x[i], curve->values[i]);
    }
}

/* Memory for the points of one curve. */
struct scratch {
    double *smooth, *decimated_x, *decimated_y;
};

static void draw_series(struct base_text *page, const struct plot *plot, const struct frame *frame,
                        const struct points *all, const char *class_name, struct scratch *scratch)
{
    struct points points = *all;
    if (points.count > MANY_POINTS) {
        points.count = curve_decimate(all->x, all->y, all->count, frame->x_low, frame->x_high,
                                      COLUMNS, scratch->decimated_x, scratch->decimated_y);
        points.x = scratch->decimated_x;
        points.y = scratch->decimated_y;
    }
    draw_path(page, frame, &points, plot->stepwise, class_name);
}

static void draw_curve(struct base_text *page, const struct plot *plot, const struct frame *frame,
                       const struct plot_curve *curve, struct scratch *scratch)
{
    char class_name[32];
    struct points points = {curve->x, curve->values, curve->count};
    bool smooth = plot->smooth && !curve->dots && curve->count >= FEW_POINTS;
    snprintf(class_name, sizeof(class_name), "curve %s%s", curve->css_class, smooth ? " raw" : "");
    if (!smooth || !plot->hide_raw)
        draw_series(page, plot, frame, &points, class_name, scratch);
    if (smooth) {
        curve_smooth(curve->values, curve->count, scratch->smooth);
        points.y = scratch->smooth;
        snprintf(class_name, sizeof(class_name), "curve %s", curve->css_class);
        draw_series(page, plot, frame, &points, class_name, scratch);
    }
    if (curve->dots)
        draw_dots(page, plot, frame, curve, 3.4);
    else if (curve->count < FEW_POINTS && !plot->hide_raw)
        draw_dots(page, plot, frame, curve, 2.6);
}

static void draw_curves(struct base_text *page, const struct plot *plot, const struct frame *frame)
{
    size_t longest = 0;
    for (size_t i = 0; i < plot->curve_count; i++)
        longest = plot->curves[i].count > longest ? plot->curves[i].count : longest;
    double *memory = base_alloc(longest + 2 * COLUMNS * 2, sizeof(*memory));
    if (memory == NULL) {
        page->failed = true;
        return;
    }
    struct scratch scratch = {memory, memory + longest, memory + longest + 2 * COLUMNS};
    for (size_t i = 0; i < plot->curve_count; i++)
        draw_curve(page, plot, frame, &plot->curves[i], &scratch);
    free(memory);
}

/* ---- figure --------------------------------------------------------------------------------- */

static double last_finite(const double *values, size_t count)
{
    while (count > 0 && !isfinite(values[count - 1]))
        count--;
    return count > 0 ? values[count - 1] : (double)NAN;
}

static void add_legend_entry(struct base_text *page, const struct plot *plot,
                             const struct plot_curve *curve)
{
    char text[32] = "–";
    double last = last_finite(curve->values, curve->count);
    if (isfinite(last) && plot->decimals < 0)
        snprintf(text, sizeof(text), "%.7g", last);
    else if (isfinite(last) && plot->decimals > 0)
        snprintf(text, sizeof(text), "%.*f", plot->decimals, last);
    else if (isfinite(last))
        report_quantity(text, last);
    /* "1.1 M" and "/s" make "1.1 M/s", "28.31" and "dB" make "28.31 dB". */
    const char *unit = isfinite(last) ? plot->unit : "";
    bool spaced = unit[0] && unit[0] != '/';
    base_text_add(page, "<span class=\"key\">");
    page_swatch(page, curve->css_class);
    page_text(page, curve->name);
    if (!plot->hide_last)
        base_text_add(page, " <b>%s%s%s</b>", text, spaced ? " " : "", unit);
    base_text_add(page, "</span>\n");
}

static void add_caption(struct base_text *page, const struct plot *plot)
{
    base_text_add(page, "<figcaption><h3>%s</h3><span class=\"legend\">\n", plot->title);
    for (size_t i = 0; i < plot->curve_count; i++)
        if (plot->curves[i].count > 0 || !plot->curves[i].dots)
            add_legend_entry(page, plot, &plot->curves[i]);
    base_text_add(page, "</span></figcaption>\n");
}

static void add_description(struct base_text *page, const struct plot *plot)
{
    base_text_add(page, "<title id=\"%s-title\">%s against %s</title><desc id=\"%s-desc\">%s axis.",
                  plot->id, plot->title, plot->x_name, plot->id,
                  plot->logarithmic ? "Logarithmic" : "Linear");
    for (size_t i = 0; i < plot->curve_count; i++) {
        const struct plot_curve *curve = &plot->curves[i];
        double low = HUGE_VAL, high = -HUGE_VAL;
        curve_range(curve->values, curve->count, 0, &low, &high);
        if (!(low <= high))
            continue;
        base_text_add(page, " ");
        page_text(page, curve->name);
        base_text_add(page, ": lowest %.4g, highest %.4g, last %.4g.", low, high,
                      last_finite(curve->values, curve->count));
    }
    base_text_add(page, "</desc>\n");
}

void plot_figure(struct base_text *page, const struct plot *plot)
{
    struct frame frame;
    base_text_add(page, "<figure class=\"chart\" id=\"%s\">\n", plot->id);
    add_caption(page, plot);
    if (fit_frame(plot, &frame)) {
        base_text_add(
            page,
            "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-labelledby=\"%s-title %s-desc\">\n",
            WIDTH, HEIGHT, plot->id, plot->id);
        add_description(page, plot);
        draw_y_axis(page, &frame);
        draw_x_axis(page, plot, &frame);
        draw_curves(page, plot, &frame);
        base_text_add(page, "</svg>\n");
    } else {
        base_text_add(page, "<p class=\"absent\">Not recorded in this run.</p>\n");
    }
    base_text_add(page, "</figure>\n");
}
