/* Adds the pictures of views side by side, with a slider between any two of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/page.h"
#include "report/report.h"

#define MOST_CELLS   16
#define MOST_COLUMNS ((size_t)5) /* of pictures side by side */

/* ---- one view ------------------------------------------------------------------------------- */

static void add_choice(struct base_text *page, const struct page_cell *const *shown, size_t count,
                       const char *side, size_t chosen)
{
    base_text_add(page, "<select aria-label=\"picture on the %s\">", side);
    for (size_t i = 0; i < count; i++) {
        base_text_add(page, "<option value=\"%zu\"%s>", i,
                      i == chosen ? " selected=\"selected\"" : "");
        page_text(page, shown[i]->name);
        base_text_add(page, "</option>");
    }
    base_text_add(page, "</select>");
}

/* The page's script fills and shows the slider. Without it only the pictures are shown. */
static void add_slider(struct base_text *page, const char *name,
                       const struct page_cell *const *shown, size_t count)
{
    base_text_add(page, "<div class=\"compare\" hidden=\"hidden\">\n<div class=\"stage\"></div>\n"
                        "<input type=\"range\" min=\"0\" max=\"100\" value=\"50\" aria-label=\"");
    page_text(page, name);
    base_text_add(page, ": share of the picture on the left\"/>\n<div class=\"sides\">");
    add_choice(page, shown, count, "left", 0);
    add_choice(page, shown, count, "right", 1);
    base_text_add(page, "</div>\n</div>\n");
}

static bool add_cell(struct base_text *page, const char *view, const struct page_cell *cell,
                     size_t *budget)
{
    char *alt = base_format("%s: %s", view, cell->name);
    base_text_add(page, "<div class=\"cell %s\">", cell->css_class);
    bool is_added = alt && page_picture(page, cell->folder, cell->path, alt, 0, budget);
    base_text_add(page, "<span>");
    page_text(page, cell->name);
    if (isfinite(cell->psnr)) {
        base_text_add(page, " <b>");
        page_number(page, cell->psnr, 2);
        base_text_add(page, " dB</b>");
    }
    base_text_add(page, "</span></div>\n");
    page->failed |= alt == NULL;
    free(alt);
    return is_added;
}

void page_view(struct base_text *page, const struct page_view *view, const struct page_cell *cells,
               size_t count, size_t *budget)
{
    const struct page_cell *shown[MOST_CELLS];
    size_t shown_count = 0;
    struct base_text pictures = {0};
    for (size_t i = 0; i < count && i < MOST_CELLS; i++)
        if (add_cell(&pictures, view->name, &cells[i], budget))
            shown[shown_count++] = &cells[i];
    base_text_add(page, "<figure class=\"view\"%s%s%s>\n<figcaption><h3>",
                  view->style[0] ? " style=\"" : "", view->style, view->style[0] ? "\"" : "");
    page_text(page, view->name);
    base_text_add(page, "</h3>%s</figcaption>\n", view->facts);
    if (shown_count > 1)
        add_slider(page, view->name, shown, shown_count);
    base_text_add(page, "<div class=\"cells\" style=\"--cells:%zu\">\n",
                  count < MOST_COLUMNS ? count : MOST_COLUMNS);
    base_text_add_bytes(page, pictures.data ? pictures.data : "", pictures.size);
    base_text_add(page, "</div>\n</figure>\n");
    page->failed |= pictures.failed;
    free(pictures.data);
}

/* ---- views of one run ----------------------------------------------------------------------- */

/* Returns a 32-bit CSS order that sorts the worst views first. */
static long css_order(double value, double scale)
{
    return isfinite(value) ? lround(fmax(-1e9, fmin(1e9, value * scale))) : 2000000000L;
}

static void add_view(struct base_text *page, const struct run *run, size_t index, size_t *budget)
{
    const struct run_picture *picture = &run->summary.pictures[index];
    const double none = (double)NAN;
    struct page_cell cells[5] = {
        {"target", "target", run->folder, picture->target, none},
        {"render", "render", run->folder, picture->render, none},
        {"error", "error", run->folder, picture->error, none},
    };
    size_t count = 3; /* runs of earlier versions have only these pictures */
    if (picture->depth)
        cells[count++] = (struct page_cell){"depth", "depth", run->folder, picture->depth, none};
    if (picture->opacity)
        cells[count++] =
            (struct page_cell){"opacity", "opacity", run->folder, picture->opacity, none};
    struct base_text facts = {0};
    base_text_add(&facts, "<span>PSNR ");
    page_number(&facts, picture->psnr, 2);
    base_text_add(&facts, " dB</span><span>SSIM ");
    page_number(&facts, picture->ssim, 4);
    base_text_add(&facts, "</span>");
    char number[32], style[64];
    snprintf(number, sizeof(number), "view %zu", index);
    snprintf(style, sizeof(style), "--psnr:%ld;--ssim:%ld", css_order(picture->psnr, 1e3),
             css_order(picture->ssim, 1e6));
    const struct page_view view = {.name = picture->name ? picture->name : number,
                                   .facts = facts.data ? facts.data : "",
                                   .style = style};
    page_view(page, &view, cells, count, budget);
    page->failed |= facts.failed;
    free(facts.data);
}

/* Adds the choice of the views' order, which the style sheet applies without a script. */
static void add_orders(struct base_text *page)
{
    static const char *const orders[][2] = {
        {"given", "in order"}, {"by-psnr", "lowest PSNR first"}, {"by-ssim", "lowest SSIM first"}};
    for (size_t i = 0; i < BASE_COUNT(orders); i++)
        base_text_add(page,
                      "<input type=\"radio\" name=\"order\" id=\"%s\"%s/>"
                      "<label for=\"%s\">%s</label>\n",
                      orders[i][0], i == 0 ? " checked=\"checked\"" : "", orders[i][0],
                      orders[i][1]);
}

/* Adds the picture of the error map, if the run has one. */
static void add_error_map(struct base_text *page, const struct run *run)
{
    size_t budget = PAGE_PICTURE_BUDGET;
    char *path = base_path_join(run->folder, REPORT_ERROR_MAP);
    if (path && base_file_exists(path)) {
        const cJSON *loss = cJSON_GetObjectItemCaseSensitive(run->config, "loss");
        const char *robust = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(loss, "robust"));
        base_text_add(page,
                      "<figure class=\"view\">\n<figcaption><h3>Error map of training views%s</h3>"
                      "</figcaption>\n",
                      robust && strcmp(robust, "on") == 0 ? "; red: outliers, left out" : "");
        page_picture(page, run->folder, REPORT_ERROR_MAP, "error map", 0, &budget);
        base_text_add(page, "\n</figure>\n");
    }
    page->failed |= path == NULL;
    free(path);
}

void page_pictures(struct base_text *page, const struct run *run)
{
    page_section(page, "views", "Test views");
    add_error_map(page, run);
    if (run->summary.picture_count == 0) {
        base_text_add(
            page,
            "<p class=\"absent\">No view has been rendered for this report.</p>\n</section>\n");
        return;
    }
    size_t budget = PAGE_PICTURE_BUDGET;
    if (run->summary.picture_count > 1)
        add_orders(page);
    base_text_add(page, "<div class=\"views\">\n");
    for (size_t i = 0; i < run->summary.picture_count; i++)
        add_view(page, run, i, &budget);
    base_text_add(page, "</div>\n</section>\n");
}
