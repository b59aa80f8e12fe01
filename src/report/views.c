/* Adds what pages show without scripts: main figures, quality by test view, pictures of views. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/page.h"
#include "report/report.h"

/* ---- one view ------------------------------------------------------------------------------- */

static void add_cell(struct base_text *page, const char *view, const struct page_cell *cell,
                     size_t *budget)
{
    char *alt = base_format("%s: %s", view, cell->name);
    base_text_add(page, "<div class=\"cell %s\">", cell->css_class);
    if (alt)
        page_picture(page, cell->folder, cell->path, alt, 0, budget);
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
}

void page_view(struct base_text *page, const char *name, const char *facts,
               const struct page_cell *cells, size_t count, size_t *budget)
{
    base_text_add(page, "<figure class=\"view\">\n<figcaption><h3>");
    page_text(page, name);
    base_text_add(page, "</h3>%s</figcaption>\n<div class=\"cells\">\n", facts);
    for (size_t i = 0; i < count; i++)
        add_cell(page, name, &cells[i], budget);
    base_text_add(page, "</div>\n</figure>\n");
}

/* ---- views of one run ----------------------------------------------------------------------- */

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
    char number[32];
    snprintf(number, sizeof(number), "view %zu", index);
    page_view(page, picture->name ? picture->name : number, facts.data ? facts.data : "", cells,
              count, budget);
    page->failed |= facts.failed;
    free(facts.data);
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

void page_views(struct base_text *page, const struct run *run)
{
    page_section(page, "views", "Test views");
    page_view_table(page, run, NULL);
    add_error_map(page, run);
    if (run->summary.picture_count == 0)
        base_text_add(page, "<p class=\"absent\">No view has been rendered for this report.</p>\n");
    size_t budget = PAGE_PICTURE_BUDGET;
    base_text_add(page, "<div class=\"views\">\n");
    for (size_t i = 0; i < run->summary.picture_count; i++)
        add_view(page, run, i, &budget);
    base_text_add(page, "</div>\n</section>\n");
}

/* ---- tables --------------------------------------------------------------------------------- */

void page_view_table(struct base_text *page, const struct run *run, const char *caption)
{
    const struct run_summary *summary = &run->summary;
    base_text_add(page, "<table%s>\n<caption>", caption ? "" : " id=\"per-view\"");
    page_text(page, caption ? caption : "");
    base_text_add(page, "</caption>\n<thead><tr><th scope=\"col\">View</th>"
                        "<th scope=\"col\" class=\"number\">PSNR, dB</th>"
                        "<th scope=\"col\" class=\"number\">SSIM</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < summary->per_view_count; i++) {
        const struct run_view *view = &summary->per_view[i];
        base_text_add(page, "<tr><th scope=\"row\">");
        page_text(page, view->name ? view->name : "–");
        base_text_add(page, "</th>");
        page_number_cell(page, view->psnr, 2, "");
        page_number_cell(page, view->ssim, 4, "");
        base_text_add(page, "</tr>\n");
    }
    base_text_add(page, "</tbody>\n</table>\n");
}

static double figure_of(const struct run *run, size_t figure)
{
    const struct run_summary *summary = &run->summary;
    const double figures[] = {
        summary->psnr,
        summary->ssim,
        /* The log of an unfinished run is ahead of its summary. */
        fmax(summary->step, run_last(&run->metrics, RUN_STEP)),
        fmax(summary->seconds, run_last(&run->metrics, RUN_SECONDS)),
        run_last(&run->metrics, RUN_MEMORY) / (1 << 20),
    };
    return figures[figure];
}

static const char *text_of(const struct run *run, size_t text)
{
    const struct run_summary *summary = &run->summary;
    const char *texts[] = {summary->precision, summary->device,
                           summary->status    ? summary->status
                           : summary->is_read ? NULL
                                              : "unfinished"};
    return texts[text];
}

static void begin_row(struct base_text *page, const char *name)
{
    base_text_add(page, "<tr><th scope=\"row\">%s</th>", name);
}

void page_figures(struct base_text *page, const struct page_run *runs, size_t count)
{
    static const struct {
        const char *name;
        int digits;
    } figures[] = {{"Test PSNR, dB", 2},
                   {"Test SSIM", 4},
                   {"Steps", 0},
                   {"Training time, s", 1},
                   {"Device memory, MiB", 0}};
    static const char *const texts[] = {"Precision", "Device", "Status"};
    base_text_add(page, "<table id=\"figures\">\n<thead><tr><th scope=\"col\">Run</th>");
    for (size_t i = 0; i < count; i++) {
        base_text_add(page, "<th scope=\"col\" class=\"number\">");
        page_text(page, runs[i].name);
        base_text_add(page, "</th>");
    }
    base_text_add(page, "</tr></thead>\n<tbody>\n");
    for (size_t row = 0; row < BASE_COUNT(figures); row++) {
        begin_row(page, figures[row].name);
        for (size_t i = 0; i < count; i++)
            page_number_cell(page, figure_of(&runs[i].run, row), figures[row].digits, "");
        base_text_add(page, "</tr>\n");
    }
    for (size_t row = 0; row < BASE_COUNT(texts); row++) {
        begin_row(page, texts[row]);
        for (size_t i = 0; i < count; i++) {
            const char *text = text_of(&runs[i].run, row);
            base_text_add(page, "<td class=\"number\">");
            page_text(page, text ? text : "–");
            base_text_add(page, "</td>");
        }
        base_text_add(page, "</tr>\n");
    }
    base_text_add(page, "</tbody>\n</table>\n");
}
