/* Writes report.html from the files of a run directory. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/page.h"

static void add_status(struct base_text *page, const struct run_summary *summary)
{
    const char *status = summary->status ? summary->status : summary->is_read ? NULL : "unfinished";
    if (status == NULL)
        return;
    bool finished = strcmp(status, "finished") == 0;
    base_text_add(page, " <span class=\"status%s\">", finished ? "" : " open");
    page_text(page, status);
    base_text_add(page, "</span>");
}

static void add_note(struct base_text *page, const char *what, const char *text)
{
    if (text == NULL)
        return;
    base_text_add(page, "<p class=\"note\">%s", what);
    page_text(page, text);
    base_text_add(page, "</p>\n");
}

/* Returns whether the name of the scene says more than that of the run. */
static bool has_scene(const struct page_run *run)
{
    return run->scene[0] && strcmp(run->scene, run->name) != 0;
}

static void add_head(struct base_text *page, const void *context)
{
    const struct page_run *run = context;
    const struct run_summary *summary = &run->run.summary;
    base_text_add(page, "<header>\n<p class=\"kind\">vknerf training report</p>\n<h1>");
    page_text(page, has_scene(run) ? run->scene : run->name);
    if (has_scene(run)) {
        base_text_add(page, " <small>");
        page_text(page, run->name);
        base_text_add(page, "</small>");
    }
    add_status(page, summary);
    base_text_add(page, "</h1>\n");
    if (!summary->is_read)
        add_note(page, "",
                 "There is no summary.json: the run has not ended or was stopped before its "
                 "evaluation. This report shows its log.");
    add_note(page, "Failed: ", summary->failure);
    add_note(page, "Gradients: ", summary->gradient_warning);
    page_figures(page, run, 1);
    base_text_add(page, "</header>\n");
}

static void add_sections(struct base_text *page, const void *context)
{
    const struct page_run *run = context;
    page_filmstrip(page, &run->run);
    page_views(page, &run->run);
}

/* Writes the page with the title "lego · first try": the names of the scene and of the run. */
static vkn_status write_page(const struct page_run *run, const char *path)
{
    cJSON *data = page_runs_json(run, 1);
    char *title = base_format("%s%s%s", has_scene(run) ? run->scene : "",
                              has_scene(run) ? " · " : "", run->name);
    const struct page_document document = {
        .file = &page_run_file,
        .title = title,
        .sources = "config.json, metrics.jsonl, summary.json and views/ of the run directory",
        .head = add_head,
        .sections = add_sections,
        .data = data,
    };
    vkn_status status = data && title ? page_write(path, &document, run)
                                      : base_fail(VKN_ERROR, "%s: out of memory", path);
    cJSON_Delete(data);
    free(title);
    return status;
}

vkn_status report_write_html(const char *run_folder, const char *out)
{
    struct page_run run = {0};
    vkn_status status = page_read_runs(&run_folder, 1, &run);
    char *path = out ? base_format("%s", out) : base_path_join(run_folder, "report.html");
    if (status == VKN_OK)
        status = path ? write_page(&run, path) : VKN_ERROR;
    free(path);
    page_free_runs(&run, 1);
    return status;
}
