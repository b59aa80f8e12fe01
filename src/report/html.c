/* Writes report.html from the files of a run directory. */
#include <stdlib.h>
#include <string.h>

#include "report/page.h"

static void add_header(struct base_text *page, const void *context)
{
    page_head(page, context);
}

static void add_sections(struct base_text *page, const void *context)
{
    const struct run *run = context;
    page_curves(page, run);
    page_filmstrip(page, run);
    page_pictures(page, run);
    page_exposures(page, run);
    page_passes(page, run);
    page_buffers(page, run);
    page_config(page, run);
    page_command(page, run);
}

/* Returns "lego · first try": the names of the scene and of the run. */
static char *make_title(const struct run *run)
{
    char *name = NULL, *scene = NULL, *title = NULL;
    if (page_names(run, &name, &scene))
        title = base_format("%s%s%s", scene ? scene : "", scene ? " · " : "", name);
    free(name);
    free(scene);
    return title;
}

static void add_page(struct base_text *page, const struct run *run)
{
    char *title = make_title(run);
    const struct page_document document = {
        .title = title ? title : "",
        .footer = "config.json, metrics.jsonl, summary.json and views/ of the run directory",
        .head = add_header,
        .sections = add_sections,
    };
    page_document(page, &document, run);
    page->failed |= title == NULL;
    free(title);
}

static vkn_status write_page(const struct run *run, const char *path)
{
    struct base_text page = {0};
    add_page(&page, run);
    vkn_status status =
        page.failed ? page_fail(path) : base_file_replace(path, page.data, page.size);
    free(page.data);
    return status;
}

vkn_status report_write_html(const char *run_folder, const char *out)
{
    struct run run;
    BASE_TRY(run_read(run_folder, &run));
    char *path = out ? base_format("%s", out) : base_path_join(run_folder, "report.html");
    vkn_status status = path ? write_page(&run, path) : VKN_ERROR;
    free(path);
    run_free(&run);
    return status;
}
