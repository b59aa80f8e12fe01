/* Draws the charts of a refinement: quality by seed, and a histogram of the views' movements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/chart.h"
#include "report/refinement.h"

/* Sizes of the drawings in user units, about one pixel each on a desktop. */
#define WIDTH           560.0
#define TOP             24.0
#define BOTTOM          24.0
#define RIGHT           104.0 /* of charts with rows: the rows' values as text */
#define ROW             26.0
#define CHARACTER_WIDTH 6.6

/* ---- numbers --------------------------------------------------------------------------------- */

void refinement_signed(struct base_text *page, double value, int digits)
{
    bool is_zero = fabs(value) <= 0.5 * pow(10, -digits); /* else it might become "-0.00" */
    if (isfinite(value))
        base_text_add(page, "%+.*f", digits, is_zero ? 0 : value);
    else
        base_text_add(page, "–");
}

void refinement_signed_cell(struct base_text *page, double value, int digits)
{
    base_text_add(page, "<td class=\"number\">");
    refinement_signed(page, value, digits);
    base_text_add(page, "</td>");
}

struct report_refined_seed refinement_mean(const struct report_refinement *shown)
{
    struct report_refined_seed mean = {0};
    for (size_t i = 0; i < shown->seed_count; i++) {
        for (int which = 0; which < 2; which++) {
            mean.psnr[which] += shown->seeds[i].psnr[which];
            mean.ssim[which] += shown->seeds[i].ssim[which];
        }
    }
    for (int which = 0; which < 2; which++) {
        mean.psnr[which] /= (double)shown->seed_count;
        mean.ssim[which] /= (double)shown->seed_count;
    }
    return mean;
}

/* ---- a chart with a row for each seed -------------------------------------------------------- */

struct frame {
    double left, low, high; /* of the plot, user units; of its axis */
    size_t rows;            /* one for each seed; a row of the mean if there are several seeds */
};

static double to_x(const struct frame *frame, double value)
{
    double share = (value - frame->low) / (frame->high - frame->low);
    return frame->left + (WIDTH - RIGHT - frame->left) * share;
}

static double row_y(size_t row)
{
    return TOP + ROW * ((double)row + 0.5);
}

/* Completes a frame whose range holds the chart's values. False: there is nothing to draw. */
static bool set_frame(struct frame *frame, const struct report_refinement *shown)
{
    size_t longest = 0;
    for (size_t i = 0; i < shown->seed_count; i++) {
        int length = snprintf(NULL, 0, "seed %llu", (unsigned long long)shown->seeds[i].seed);
        longest = (size_t)length > longest ? (size_t)length : longest;
    }
    frame->left = 20 + CHARACTER_WIDTH * (double)longest;
    frame->rows = shown->seed_count + (shown->seed_count > 1 ? 1 : 0);
    if (!(frame->low <= frame->high) || !isfinite(frame->high - frame->low))
        return false;
    double least = fmax(1e-3, 1e-3 * fmax(fabs(frame->low), fabs(frame->high)));
    double margin = 0.08 * fmax(least, frame->high - frame->low);
    frame->low -= margin;
    frame->high += margin;
    return isfinite(frame->high - frame->low);
}

static void open_chart(struct base_text *page, const struct frame *frame, const char *id,
                       const char *title, const char *legend)
{
    double bottom = TOP + ROW * (double)frame->rows;
    struct ticks ticks;
    base_text_add(page,
                  "<figure class=\"chart\" id=\"%s\">\n<figcaption><h3>%s</h3>"
                  "<span class=\"legend\">%s</span></figcaption>\n"
                  "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"%s\">\n",
                  id, title, legend, WIDTH, bottom + BOTTOM, title);
    ticks_linear(frame->low, frame->high, 5, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double x = to_x(frame, ticks.value[i]);
        base_text_add(page, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, TOP, bottom);
        base_text_add(page, "<text class=\"x\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, bottom + 17,
                      ticks.label[i]);
    }
    if (frame->rows > 1)
        base_text_add(page, "<path class=\"axis\" d=\"M0 %.1fH%.0f\"/>\n", bottom - ROW, WIDTH);
}

static void add_row_name(struct base_text *page, const struct report_refinement *shown,
                         const struct frame *frame, size_t row)
{
    base_text_add(page, "<text class=\"y%s\" x=\"%.1f\" y=\"%.1f\">",
                  row == shown->seed_count ? " strong" : "", frame->left - 12, row_y(row) + 3.8);
    if (row == shown->seed_count)
        base_text_add(page, "mean</text>\n");
    else
        base_text_add(page, "seed %llu</text>\n", (unsigned long long)shown->seeds[row].seed);
}

static void open_value(struct base_text *page, const struct report_refinement *shown, size_t row)
{
    base_text_add(page, "<text class=\"y%s\" x=\"%.1f\" y=\"%.1f\">",
                  row == shown->seed_count ? " strong" : "", WIDTH - 2, row_y(row) + 3.8);
}

static void add_dot(struct base_text *page, const struct frame *frame, size_t row, double value,
                    const char *css_class)
{
    double x = to_x(frame, value);
    if (isfinite(x))
        base_text_add(page, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n",
                      css_class, x, row_y(row));
}

/* Adds a horizontal line between two values. */
static void add_span(struct base_text *page, const struct frame *frame, size_t row, double from,
                     double to, const char *css_class)
{
    double left = to_x(frame, from), right = to_x(frame, to);
    if (isfinite(left) && isfinite(right))
        base_text_add(page, "<path class=\"%s\" d=\"M%.1f %.1fH%.1f\"/>\n", css_class, left,
                      row_y(row), right);
}

/* ---- quality by seed ------------------------------------------------------------------------- */

/* Draws PSNR before and after: two dots with a line between them in each row. */
static void add_values(struct base_text *page, const struct report_refinement *shown)
{
    const struct report_refined_seed mean = refinement_mean(shown);
    struct frame frame = {.low = HUGE_VAL, .high = -HUGE_VAL};
    for (size_t i = 0; i < shown->seed_count; i++)
        ticks_cover(shown->seeds[i].psnr, 2, &frame.low, &frame.high);
    if (!set_frame(&frame, shown)) {
        base_text_add(page, "<p class=\"absent\">There is no PSNR of test views.</p>\n");
        return;
    }
    struct base_text legend = {0};
    base_text_add(&legend, "<span>");
    page_swatch(&legend, "before");
    base_text_add(&legend, "before</span><span>");
    page_swatch(&legend, "after");
    base_text_add(&legend, "after, dB</span>");
    open_chart(page, &frame, "psnr", "PSNR of test views", legend.data ? legend.data : "");
    for (size_t row = 0; row < frame.rows; row++) {
        const double *psnr = row < shown->seed_count ? shown->seeds[row].psnr : mean.psnr;
        add_row_name(page, shown, &frame, row);
        add_span(page, &frame, row, psnr[0], psnr[1], "curve after");
        add_dot(page, &frame, row, psnr[0], "before");
        add_dot(page, &frame, row, psnr[1], "after");
        open_value(page, shown, row);
        page_number(page, psnr[0], 2);
        base_text_add(page, " → ");
        page_number(page, psnr[1], 2);
        base_text_add(page, "</text>\n");
    }
    base_text_add(page, "</svg>\n</figure>\n");
    page->failed |= legend.failed;
    free(legend.data);
}

/* Includes 0, all differences, the mean with its noise, and space for the words beside 0. */
static void set_difference_range(struct frame *frame, const struct report_refinement *shown)
{
    const double around[3] = {shown->difference, shown->difference - 2 * shown->noise,
                              shown->difference + 2 * shown->noise};
    frame->low = HUGE_VAL;
    frame->high = -HUGE_VAL;
    for (size_t i = 0; i < shown->seed_count; i++) {
        double difference = shown->seeds[i].psnr[1] - shown->seeds[i].psnr[0];
        ticks_cover(&difference, 1, &frame->low, &frame->high);
    }
    ticks_cover(around, BASE_COUNT(around), &frame->low, &frame->high);
    if (!(frame->low <= frame->high))
        return;
    double side = 0.2 * fmax(frame->high, -frame->low);
    frame->low = fmin(frame->low, -side);
    frame->high = fmax(frame->high, side);
}

static void add_zero(struct base_text *page, const struct frame *frame)
{
    double x = to_x(frame, 0);
    base_text_add(page, "<path class=\"axis zero\" d=\"M%.1f %.1fV%.1f\"/>\n", x, TOP - 8,
                  TOP + ROW * (double)frame->rows);
    base_text_add(page, "<text class=\"y faint\" x=\"%.1f\" y=\"%.1f\">← worse</text>\n", x - 8,
                  TOP - 8);
    base_text_add(page, "<text class=\"faint\" x=\"%.1f\" y=\"%.1f\">better →</text>\n", x + 8,
                  TOP - 8);
}

/* Draws the mean difference with its noise, once and twice, to each side. */
static void add_mean(struct base_text *page, const struct frame *frame,
                     const struct report_refinement *shown)
{
    size_t row = shown->seed_count;
    double mean = shown->difference, noise = shown->noise;
    add_span(page, frame, row, mean - 2 * noise, mean + 2 * noise, "curve after");
    add_span(page, frame, row, mean - noise, mean + noise, "curve after range");
    add_dot(page, frame, row, mean, "after");
}

static void add_differences(struct base_text *page, const struct report_refinement *shown)
{
    struct frame frame;
    set_difference_range(&frame, shown);
    if (!set_frame(&frame, shown)) /* the other chart has the note */
        return;
    open_chart(page, &frame, "difference", "Difference, after − before",
               isfinite(shown->noise) ? "<span>dB; bars: mean ± 1 and ± 2 times its noise</span>"
                                      : "<span>dB; the noise is unknown</span>");
    add_zero(page, &frame);
    for (size_t row = 0; row < frame.rows; row++) {
        bool is_mean = row == shown->seed_count;
        double difference =
            is_mean ? shown->difference : shown->seeds[row].psnr[1] - shown->seeds[row].psnr[0];
        add_row_name(page, shown, &frame, row);
        if (is_mean) {
            add_mean(page, &frame, shown);
        } else {
            add_span(page, &frame, row, 0, difference, "curve after raw");
            add_dot(page, &frame, row, difference, "after");
        }
        open_value(page, shown, row);
        refinement_signed(page, difference, 2);
        if (is_mean && isfinite(shown->noise))
            base_text_add(page, " ± %.2f", shown->noise);
        base_text_add(page, "</text>\n");
    }
    base_text_add(page, "</svg>\n</figure>\n");
}

void refinement_quality_charts(struct base_text *page, const struct report_refinement *shown)
{
    base_text_add(page, "<div class=\"charts\">\n");
    add_values(page, shown);
    add_differences(page, shown);
    base_text_add(page, "</div>\n");
}

/* ---- histogram of movements ------------------------------------------------------------------ */

#define PLOT_LEFT   44.0
#define PLOT_HEIGHT 130.0
#define DECADE      8  /* bins in a decade */
#define MOST_BINS   40 /* smaller movements are left out */

struct bins {
    int first, count; /* bin i begins at 10^((first + i) / DECADE) pixels */
    size_t views[MOST_BINS], limited[MOST_BINS], smaller;
};

static double bin_of(double pixels)
{
    return floor(fmax(-1e6, log10(pixels) * DECADE));
}

/* Sorts the views into bins. False: no view has moved. */
static bool fill_bins(const struct refinement *refinement, struct bins *bins)
{
    const struct report_refined_view *views = refinement->shown->views;
    size_t moved = 0;
    while (moved < refinement->known && views[refinement->order[moved]].pixels > 0)
        moved++;
    if (moved == 0)
        return false;
    double last = bin_of(views[refinement->order[0]].pixels);
    double first = bin_of(views[refinement->order[moved - 1]].pixels);
    first = fmax(last - MOST_BINS + 1, fmin(first, last - DECADE + 1));
    *bins = (struct bins){.first = (int)first, .count = (int)(last - first) + 1};
    for (size_t i = 0; i < refinement->known; i++) {
        const struct report_refined_view *view = &views[refinement->order[i]];
        double bin = bin_of(view->pixels) - first;
        if (bin >= 0) {
            bins->views[(int)bin]++;
            bins->limited[(int)bin] += view->at_limit ? 1 : 0;
        } else {
            bins->smaller++;
        }
    }
    return true;
}

static double bin_x(const struct bins *bins, double bin)
{
    return PLOT_LEFT + (WIDTH - PLOT_LEFT - 10) * bin / bins->count;
}

static void add_axes(struct base_text *page, const struct bins *bins, double most)
{
    struct ticks ticks;
    double bottom = TOP + PLOT_HEIGHT;
    ticks_linear(0, most, 4, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double y = bottom - PLOT_HEIGHT * ticks.value[i] / most;
        if (ticks.value[i] != floor(ticks.value[i]))
            continue;
        base_text_add(page, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", PLOT_LEFT, y,
                      WIDTH - 10);
        base_text_add(page, "<text class=\"y\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", PLOT_LEFT - 7,
                      y + 3.8, ticks.label[i]);
    }
    double low = (double)bins->first / DECADE, high = (double)(bins->first + bins->count) / DECADE;
    ticks_logarithmic(low, high, 8, &ticks);
    for (size_t i = 0; i < ticks.count; i++) {
        double x = bin_x(bins, (log10(ticks.value[i]) - low) * DECADE);
        base_text_add(page, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>", x, bottom);
        base_text_add(page, "<text class=\"x\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, bottom + 17,
                      ticks.label[i]);
    }
}

static void add_bar(struct base_text *page, const struct bins *bins, int bin, double most)
{
    double left = bin_x(bins, bin) + 0.5, width = bin_x(bins, bin + 1) - left - 0.5;
    double height = PLOT_HEIGHT * (double)bins->views[bin] / most;
    double limited = PLOT_HEIGHT * (double)bins->limited[bin] / most;
    if (bins->views[bin] == 0)
        return;
    double low = (double)(bins->first + bin) / DECADE, high = low + 1.0 / DECADE;
    base_text_add(page, "<g><title>%.3g to %.3g pixels: %zu view%s, %zu at the limit</title>",
                  pow(10, low), pow(10, high), bins->views[bin], bins->views[bin] == 1 ? "" : "s",
                  bins->limited[bin]);
    base_text_add(page,
                  "<rect class=\"after\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                  left, TOP + PLOT_HEIGHT - height, width, height - limited);
    base_text_add(page,
                  "<rect class=\"limited\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
                  "</g>\n",
                  left, TOP + PLOT_HEIGHT - limited, width, limited);
}

void refinement_histogram(struct base_text *page, const struct refinement *refinement)
{
    struct bins bins;
    size_t most = 0;
    if (!fill_bins(refinement, &bins)) {
        base_text_add(page, "<p class=\"absent\">No view has moved.</p>\n");
        return;
    }
    for (int i = 0; i < bins.count; i++)
        most = bins.views[i] > most ? bins.views[i] : most;
    base_text_add(page,
                  "<figure class=\"chart\" id=\"movements\">\n<figcaption><h3>Movements of views"
                  "</h3><span class=\"legend\"><span>number of views by movement in pixels</span>");
    if (bins.smaller > 0)
        base_text_add(page, "<span>%zu moved less</span>", bins.smaller);
    base_text_add(page,
                  "</span></figcaption>\n<svg class=\"bars\" viewBox=\"0 0 %.0f %.0f\" "
                  "role=\"img\" aria-label=\"Number of views by movement in pixels\">\n",
                  WIDTH, TOP + PLOT_HEIGHT + BOTTOM);
    add_axes(page, &bins, (double)most);
    for (int i = 0; i < bins.count; i++)
        add_bar(page, &bins, i, (double)most);
    base_text_add(page, "</svg>\n</figure>\n");
}
