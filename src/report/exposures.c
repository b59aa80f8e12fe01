/* Draws the exposures and white balances that a training has estimated of its images. */
#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "report/chart.h"
#include "report/page.h"
#include "report/report.h"

/* Curves of the chart. */
enum { EXPOSURE, IN_FILE, RED, BLUE, CURVES };

#define MOST 100.0 /* stops; numbers beyond are damaged */

static double number_of(const cJSON *item)
{
    return cJSON_IsNumber(item) && fabs(item->valuedouble) <= MOST ? item->valuedouble
                                                                   : (double)NAN;
}

/* Sets values[curve][image], NaN where a view lacks a value, and the images' numbers. */
static void read_values(const cJSON *views, size_t count, double *x, double *values)
{
    const cJSON *view;
    size_t i = 0;
    cJSON_ArrayForEach (view, views) {
        const cJSON *balance = cJSON_GetObjectItemCaseSensitive(view, "white_balance");
        x[i] = (double)i;
        values[EXPOSURE * count + i] =
            number_of(cJSON_GetObjectItemCaseSensitive(view, "exposure"));
        values[IN_FILE * count + i] =
            number_of(cJSON_GetObjectItemCaseSensitive(view, "exposure_in_file"));
        values[RED * count + i] = number_of(cJSON_GetArrayItem(balance, 0));
        values[BLUE * count + i] = number_of(cJSON_GetArrayItem(balance, 1));
        i++;
    }
}

static void draw(struct base_text *page, const cJSON *views)
{
    static const struct {
        const char *name, *css_class;
    } curves[CURVES] = {[EXPOSURE] = {"exposure", "c3"},
                        [IN_FILE] = {"in the image file", "mark"},
                        [RED] = {"gain of red", "c2"},
                        [BLUE] = {"gain of blue", "c1"}};
    size_t count = (size_t)cJSON_GetArraySize(views);
    double *x = base_alloc(count, sizeof *x), *values = base_alloc(CURVES * count, sizeof *values);
    struct plot plot = {.id = "exposures",
                        .title = "Exposures of training images, in stops about the mean",
                        .unit = "",
                        .decimals = 2,
                        .hide_last = true,
                        .x_name = "image"};
    page->failed |= !x || !values;
    if (x && values)
        read_values(views, count, x, values);
    for (size_t k = 0; k < CURVES && !page->failed; k++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        curve_range(values + k * count, count, 0, &low, &high);
        if (low <= high)
            plot.curves[plot.curve_count++] = (struct plot_curve){.name = curves[k].name,
                                                                  .css_class = curves[k].css_class,
                                                                  .count = count,
                                                                  .x = x,
                                                                  .values = values + k * count,
                                                                  .dots = true};
    }
    if (!page->failed)
        plot_figure(page, &plot);
    free(x);
    free(values);
}

void page_exposures(struct base_text *page, const struct run *run)
{
    const cJSON *views = cJSON_GetObjectItemCaseSensitive(run->appearance, "views");
    if (!cJSON_IsArray(views) || cJSON_GetArraySize(views) == 0)
        return;
    page_section(page, "appearance", "Exposure and white balance");
    draw(page, views);
    base_text_add(page, "</section>\n");
}
