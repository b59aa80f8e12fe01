/* Draws each sampling's PSNR over seconds, and when it reaches the PSNR of uniform sampling. */
#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/chart.h"

#define RIGHT  660.0
#define HEIGHT 340.0

struct frame {
    double top, bottom;
    double x_low, x_high, y_low, y_high; /* x in log10 of seconds, y in dB */
};

static const cJSON *marks_of(const cJSON *run)
{
    return cJSON_GetObjectItemCaseSensitive(run, "marks");
}

static double to_x(const struct frame *frame, double seconds)
{
    return CHART_LEFT +
           (RIGHT - CHART_LEFT) * (log10(seconds) - frame->x_low) / (frame->x_high - frame->x_low);
}

static double to_y(const struct frame *frame, double psnr)
{
    return frame->bottom -
           (frame->bottom - frame->top) * (psnr - frame->y_low) / (frame->y_high - frame->y_low);
}

static bool is_point(const cJSON *mark)
{
    return chart_number_of(mark, "seconds") > 0.0 && isfinite(chart_number_of(mark, "psnr"));
}

/* Computes the axes' ranges. False when there is nothing to draw. */
static bool fit_axes(const cJSON *runs, struct frame *frame)
{
    double low = HUGE_VAL, high = -HUGE_VAL, first = HUGE_VAL, last = 0.0;
    const cJSON *run, *mark;
    cJSON_ArrayForEach (run, runs)
        cJSON_ArrayForEach (mark, marks_of(run)) {
            if (!is_point(mark))
                continue;
            low = fmin(low, chart_number_of(mark, "psnr"));
            high = fmax(high, chart_number_of(mark, "psnr"));
            first = fmin(first, chart_number_of(mark, "seconds"));
            last = fmax(last, chart_number_of(mark, "seconds"));
        }
    if (!(low <= high))
        return false;
    high = fmax(high, low + 0.1);
    ticks_round_out(&low, &high, 6);
    frame->x_low = log10(first) - 0.02;
    frame->x_high = log10(fmax(last, 1.01 * first)) + 0.02;
    frame->y_low = low;
    frame->y_high = high;
    return true;
}

static void add_axes(struct base_text *svg, const struct frame *frame)
{
    struct ticks ticks;
    ticks_logarithmic(frame->x_low, frame->x_high, 8, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double x = to_x(frame, ticks.value[i]);
        base_text_add(svg, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", x, frame->top,
                      frame->bottom);
        chart_text(svg, x, frame->bottom + 16, "middle", ticks.label[i]);
    }
    ticks_linear(frame->y_low, frame->y_high, 6, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double y = to_y(frame, ticks.value[i]);
        base_text_add(svg, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", CHART_LEFT, y, RIGHT);
        chart_text(svg, CHART_LEFT - 6, y + 4, "end", ticks.label[i]);
    }
    chart_text(svg, (CHART_LEFT + RIGHT) / 2, frame->bottom + 34, "middle", "seconds of training");
    chart_text(svg, CHART_LEFT - 6, frame->top - 10, "start", "dB");
}

static void add_curve(struct base_text *svg, const struct frame *frame, const cJSON *run,
                      const char *color)
{
    const cJSON *mark;
    const char *command = "M";
    base_text_add(svg, "<path fill=\"none\" stroke-width=\"2\" stroke=\"%s\" d=\"", color);
    cJSON_ArrayForEach (mark, marks_of(run)) {
        if (is_point(mark)) {
            base_text_add(svg, "%s%.1f %.1f", command,
                          to_x(frame, chart_number_of(mark, "seconds")),
                          to_y(frame, chart_number_of(mark, "psnr")));
            command = "L";
        }
    }
    base_text_add(svg, "\"/>\n");
    cJSON_ArrayForEach (mark, marks_of(run)) {
        if (is_point(mark))
            base_text_add(svg,
                          "<circle fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" "
                          "class=\"point\"><title>%.3g s: %.2f dB</title></circle>\n",
                          color, to_x(frame, chart_number_of(mark, "seconds")),
                          to_y(frame, chart_number_of(mark, "psnr")),
                          chart_number_of(mark, "seconds"), chart_number_of(mark, "psnr"));
    }
}

static bool is_uniform(const cJSON *run)
{
    return strcmp(base_json_text(run, "kind"), "uniform") == 0;
}

/* Adds a horizontal line at the final PSNR of uniform sampling, and for the other samplings a
 * vertical line at the time when they reach it. */
static void add_equal(struct base_text *svg, const struct frame *frame, const cJSON *run,
                      const char *color)
{
    double psnr = chart_number_of(run, "uniform_psnr"),
           seconds = chart_number_of(run, "seconds_to_uniform");
    if (!isfinite(psnr))
        return;
    base_text_add(svg,
                  "<path stroke=\"#999\" stroke-dasharray=\"4 4\" fill=\"none\" d=\"M%.1f "
                  "%.1fH%.1f\"/>\n",
                  CHART_LEFT, to_y(frame, psnr), RIGHT);
    if (isfinite(seconds) && !is_uniform(run))
        base_text_add(svg,
                      "<path stroke=\"%s\" stroke-dasharray=\"4 4\" fill=\"none\" d=\"M%.1f "
                      "%.1fV%.1f\"/>\n",
                      color, to_x(frame, seconds), to_y(frame, psnr), frame->bottom);
}

/* Adds "occupancy, seed 1: 31.20 dB; equals uniform in 4.1 s". */
static void add_legend(struct base_text *svg, const cJSON *run, const char *color, double y)
{
    char text[128];
    const cJSON *marks = marks_of(run);
    const cJSON *last = cJSON_GetArrayItem(marks, cJSON_GetArraySize(marks) - 1);
    double seconds = chart_number_of(run, "seconds_to_uniform"),
           psnr = chart_number_of(last, "psnr");
    int used = snprintf(text, sizeof text, "%.24s, seed %.0f", base_json_text(run, "kind"),
                        chart_number_of(run, "seed"));
    if (isfinite(psnr))
        used += snprintf(text + used, sizeof text - (size_t)used, ": %.2f dB", psnr);
    if (isfinite(seconds) && !is_uniform(run))
        snprintf(text + used, sizeof text - (size_t)used, "; equals uniform in %.3g s", seconds);
    base_text_add(svg, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n",
                  RIGHT + 16, y - 9, color);
    chart_text(svg, RIGHT + 32, y, "start", text);
}

/* Returns the colour of the run's sampling, the same for all seeds. */
static const char *color_of(const cJSON *runs, const cJSON *run)
{
    size_t index = 0;
    const cJSON *other;
    cJSON_ArrayForEach (other, runs) {
        if (strcmp(base_json_text(other, "kind"), base_json_text(run, "kind")) == 0)
            break;
        index++;
    }
    return chart_colors[index % CHART_COLORS];
}

double chart_sampling(struct base_text *svg, const struct cJSON *sampling, double y)
{
    const cJSON *runs = cJSON_GetObjectItemCaseSensitive(sampling, "runs"), *run;
    struct frame frame = {.top = y + 40, .bottom = y + 40 + HEIGHT};
    if (!fit_axes(runs, &frame))
        return y;
    double legend = frame.top + 8;
    chart_text(svg, CHART_LEFT - 50, y + 12, "title", "PSNR of test views by march.sampling");
    add_axes(svg, &frame);
    cJSON_ArrayForEach (run, runs)
        add_equal(svg, &frame, run, color_of(runs, run));
    cJSON_ArrayForEach (run, runs) {
        add_curve(svg, &frame, run, color_of(runs, run));
        add_legend(svg, run, color_of(runs, run), legend);
        legend += 18;
    }
    return fmax(frame.bottom + 60, legend + 20);
}
