/* Writes the page of a refinement of cameras, which page/refinement.js completes: header, sections,
 * quality by seed, data. */
#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "report/progress_text.h"
#include "report/refinement.h"

/* ---- head ------------------------------------------------------------------------------------ */

static void add_psnr_tile(struct base_text *page, const struct report_refinement *shown)
{
    char more[96] = "noise unknown";
    page_tile_begin(page, "Difference of test PSNR");
    refinement_signed(page, shown->difference, 2);
    if (isfinite(shown->noise)) {
        base_text_add(page, " ± %.2f", shown->noise);
        snprintf(more, sizeof(more), "mean of %zu seeds, and its noise", shown->seed_count);
    }
    base_text_add(page, "%s", isfinite(shown->difference) ? " <small>dB</small>" : "");
    page_tile_end(page, isfinite(shown->difference) ? more : "not measured");
}

static void add_movement_tiles(struct base_text *page, const struct refinement *refinement)
{
    const struct report_refinement *shown = refinement->shown;
    char more[96] = "not recorded";
    double median = (double)NAN;
    if (refinement->known > 0) {
        median = shown->views[refinement->order[refinement->known / 2]].pixels;
        snprintf(more, sizeof(more), "largest %.2f pixels",
                 shown->views[refinement->order[0]].pixels);
    }
    page_tile_begin(page, "Median movement");
    page_number(page, median, 2);
    base_text_add(page, "%s", isfinite(median) ? " <small>pixels</small>" : "");
    page_tile_end(page, more);
    page_tile_begin(page, "Views that keep their cameras");
    base_text_add(page, "%zu", refinement->rolled_back);
    snprintf(more, sizeof(more), "of %zu view%s", shown->view_count,
             shown->view_count == 1 ? "" : "s");
    page_tile_end(page, more);
}

static void add_effort_tile(struct base_text *page, const struct report_refinement *shown)
{
    char duration[32], more[96];
    page_tile_begin(page, "Steps");
    page_count(page, (double)shown->steps);
    report_duration(duration, shown->seconds);
    snprintf(more, sizeof(more), "of each training; %s in all", duration);
    page_tile_end(page, isfinite(shown->seconds) ? more : "of each training");
}

static void add_head(struct base_text *page, const void *context)
{
    const struct refinement *refinement = context;
    const struct report_refinement *shown = refinement->shown;
    char *name = page_last_part(shown->scene ? shown->scene : "");
    base_text_add(page, "<header>\n<p class=\"kind\">vknerf refinement of cameras</p>\n<h1>");
    page_text(page, name ? name : "");
    base_text_add(page, "</h1>\n<p class=\"verdict\">");
    page_text(page, shown->verdict ? shown->verdict : "There is no verdict.");
    base_text_add(page, "</p>\n");
    base_text_add(page, "<dl class=\"tiles\">\n");
    add_psnr_tile(page, shown);
    add_movement_tiles(page, refinement);
    add_effort_tile(page, shown);
    base_text_add(page, "</dl>\n<dl class=\"facts\">\n");
    page_fact(page, "Scene", shown->scene);
    page_fact(page, "Refined scene", shown->refined);
    page_fact(page, "Device", shown->device);
    page_fact(page, "Driver", shown->driver);
    base_text_add(page, "</dl>\n</header>\n");
    page->failed |= name == NULL;
    free(name);
}

/* ---- seeds ----------------------------------------------------------------------------------- */

static void add_signed_cell(struct base_text *page, double value, int digits)
{
    base_text_add(page, "<td class=\"number\">");
    refinement_signed(page, value, digits);
    base_text_add(page, "</td>");
}

/* Returns the means of PSNR and SSIM over the seeds; NaN when one is unknown. */
static struct report_refined_seed mean_of(const struct report_refinement *shown)
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

static void add_values(struct base_text *page, const double psnr[2], const double ssim[2])
{
    page_number_cell(page, psnr[0], 2, "");
    page_number_cell(page, psnr[1], 2, "");
    add_signed_cell(page, psnr[1] - psnr[0], 2);
    page_number_cell(page, ssim[0], 4, "");
    page_number_cell(page, ssim[1], 4, "");
    add_signed_cell(page, ssim[1] - ssim[0], 4);
    base_text_add(page, "</tr>\n");
}

static void add_seed_rows(struct base_text *page, const struct report_refinement *shown)
{
    for (size_t i = 0; i < shown->seed_count; i++) {
        base_text_add(page, "<tr><th scope=\"row\">%llu</th>",
                      (unsigned long long)shown->seeds[i].seed);
        add_values(page, shown->seeds[i].psnr, shown->seeds[i].ssim);
    }
    if (shown->seed_count < 2)
        return;
    const struct report_refined_seed mean = mean_of(shown);
    base_text_add(page, "<tr class=\"strong\"><th scope=\"row\">mean</th>");
    add_values(page, mean.psnr, mean.ssim);
}

static void add_seeds(struct base_text *page, const struct refinement *refinement)
{
    static const char *const columns[] = {"PSNR before, dB", "after", "difference",
                                          "SSIM before",     "after", "difference"};
    const struct report_refinement *shown = refinement->shown;
    page_section(page, "seeds", "Trainings");
    if (shown->seed_count == 0) {
        base_text_add(page, "<p class=\"absent\">There are no test views that could tell which "
                            "cameras are better.</p>\n</section>\n");
        return;
    }
    base_text_add(page, "<p>Each seed trains two fields from the start with the same settings: one "
                        "with the original cameras (before), one with the refined cameras "
                        "(after).</p>\n");
    base_text_add(page, "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
                        "aria-label=\"Trainings\">\n<table class=\"results\">\n<thead><tr>"
                        "<th scope=\"col\">Seed</th>");
    for (size_t i = 0; i < BASE_COUNT(columns); i++)
        base_text_add(page, "<th scope=\"col\" class=\"number\">%s</th>", columns[i]);
    base_text_add(page, "</tr></thead>\n<tbody>\n");
    add_seed_rows(page, shown);
    base_text_add(page, "</tbody>\n</table>\n</div>\n</section>\n");
}

/* ---- data of the page's script --------------------------------------------------------------- */

/* Without memory the data lacks the pair, which base_json_print reports. */
static void add_pair(cJSON *object, const char *name, const double values[2])
{
    cJSON *pair = cJSON_CreateDoubleArray(values, 2);
    if (!cJSON_AddItemToObject(object, name, pair))
        cJSON_Delete(pair);
}

/* Appends an empty object and returns it; NULL without memory. */
static cJSON *append_object(cJSON *list)
{
    cJSON *item = cJSON_CreateObject();
    if (cJSON_AddItemToArray(list, item))
        return item;
    cJSON_Delete(item);
    return NULL;
}

static void add_view_json(cJSON *list, const struct refinement *refinement, size_t index)
{
    const struct report_refined_view *view = &refinement->shown->views[index];
    cJSON *item = append_object(list);
    cJSON_AddStringToObject(item, "image",
                            refinement_path(refinement->shown, index) + refinement->shared);
    if (view->split)
        cJSON_AddStringToObject(item, "split", view->split);
    cJSON_AddNumberToObject(item, "pixels", view->pixels);
    cJSON_AddNumberToObject(item, "degrees", view->degrees);
    cJSON_AddNumberToObject(item, "distance", view->distance);
    cJSON_AddNumberToObject(item, "fit", view->fit);
    if (view->misfits || view->at_limit || view->rolled_back)
        cJSON_AddStringToObject(item, "why",
                                view->misfits    ? "does not fit"
                                : view->at_limit ? "at the limit"
                                                 : "");
    cJSON_AddBoolToObject(item, "limited", view->at_limit);
    cJSON_AddBoolToObject(item, "keeps", view->rolled_back);
    if (view->test_view)
        add_pair(item, "psnr", view->psnr);
}

/* Returns the data in the order of the table: first the views to look at, then by movement. */
static cJSON *make_data(const struct refinement *refinement)
{
    const struct report_refinement *shown = refinement->shown;
    cJSON *data = cJSON_CreateObject(), *seeds = cJSON_AddArrayToObject(data, "seeds"),
          *views = cJSON_AddArrayToObject(data, "views");
    cJSON_AddNumberToObject(data, "difference", shown->difference);
    cJSON_AddNumberToObject(data, "noise", shown->noise);
    for (size_t i = 0; i < shown->seed_count; i++) {
        char name[32];
        cJSON *item = append_object(seeds);
        snprintf(name, sizeof(name), "seed %llu", (unsigned long long)shown->seeds[i].seed);
        cJSON_AddStringToObject(item, "name", name);
        add_pair(item, "psnr", shown->seeds[i].psnr);
    }
    for (int misfits = 1; misfits >= 0; misfits--)
        for (size_t i = 0; i < shown->view_count; i++)
            if (shown->views[refinement->order[i]].misfits == (misfits == 1))
                add_view_json(views, refinement, refinement->order[i]);
    return data;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void add_sections(struct base_text *page, const void *context)
{
    refinement_cameras(page, context);
    refinement_pictures(page, context);
    add_seeds(page, context);
}

/* A view and its movement, for sorting. */
struct movement {
    double pixels; /* -1: unknown */
    size_t view;
};

static int by_movement(const void *a, const void *b)
{
    const struct movement *first = a, *second = b;
    if (first->pixels < second->pixels || first->pixels > second->pixels)
        return first->pixels < second->pixels ? 1 : -1;
    return (first->view > second->view) - (first->view < second->view);
}

/* Sorts the views; the caller frees refinement->order. False: out of memory. */
static bool sort_views(struct refinement *refinement)
{
    const struct report_refinement *shown = refinement->shown;
    struct movement *movements = base_alloc(shown->view_count, sizeof(*movements));
    refinement->order = base_alloc(shown->view_count, sizeof(*refinement->order));
    if (movements && refinement->order) {
        for (size_t i = 0; i < shown->view_count; i++) {
            double pixels = shown->views[i].pixels;
            bool is_known = isfinite(pixels) && pixels >= 0;
            movements[i] = (struct movement){is_known ? pixels : -1, i};
            refinement->known += is_known ? 1 : 0;
            refinement->limited += shown->views[i].at_limit ? 1 : 0;
            refinement->rolled_back += shown->views[i].rolled_back ? 1 : 0;
        }
        qsort(movements, shown->view_count, sizeof(*movements), by_movement);
        for (size_t i = 0; i < shown->view_count; i++)
            refinement->order[i] = movements[i].view;
    }
    bool is_sorted = movements && refinement->order;
    free(movements);
    return is_sorted;
}

vkn_status report_write_refinement(const struct report_refinement *shown, const char *out)
{
    struct refinement refinement = {.shown = shown, .shared = refinement_shared(shown)};
    char *name = page_last_part(shown->scene ? shown->scene : "");
    char *title = name ? base_format("%s · refined cameras", name) : NULL;
    cJSON *data = title && sort_views(&refinement) ? make_data(&refinement) : NULL;
    const struct page_document document = {
        .file = &page_refinement_file,
        .title = title,
        .sources = "the results of its refinement and the pictures of its run directories",
        .head = add_head,
        .sections = add_sections,
        .data = data,
    };
    vkn_status status = data ? page_write(out, &document, &refinement)
                             : base_fail(VKN_ERROR, "%s: not written: %s", out, vkn_last_error());
    cJSON_Delete(data);
    free(refinement.order);
    free(title);
    free(name);
    return status;
}
