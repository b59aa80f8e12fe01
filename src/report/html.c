/* report.html from the files of a run directory. */
#include <stdlib.h>
#include <string.h>

#include "report/page.h"

static void add_head(struct base_text *page, const char *title)
{
    base_text_add(
        page, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
              "<meta charset=\"utf-8\"/>\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
              "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>");
    page_text(page, title);
    base_text_add(page, " – vknerf</title>\n<style>\n%s%s%s</style>\n</head>\n<body>\n", page_style,
                  page_style_more, page_style_pictures);
}

#define SECTION_BEGIN "<section id=\""
#define SECTION_TITLE "\">\n<h2>"

void page_section(struct base_text *page, const char *id, const char *title)
{
    base_text_add(page, SECTION_BEGIN "%s" SECTION_TITLE "%s</h2>\n", id, title);
}

/* Of the sections there are; what else the page holds is escaped and begins none. */
static void add_contents(struct base_text *page, const char *sections)
{
    base_text_add(page, "<nav aria-label=\"Contents\">\n");
    for (const char *at = sections; (at = strstr(at, SECTION_BEGIN)) != NULL;) {
        const char *id = at + strlen(SECTION_BEGIN), *id_end = strchr(id, '"');
        const char *title = id_end + strlen(SECTION_TITLE), *title_end = strstr(title, "</h2>");
        base_text_add(page, "<a href=\"#%.*s\">%.*s</a>\n", (int)(id_end - id), id,
                      (int)(title_end - title), title);
        at = title_end;
    }
    base_text_add(page, "</nav>\n");
}

void page_document(struct base_text *page, const struct page_document *document,
                   const void *context)
{
    struct base_text sections = {0};
    add_head(page, document->title);
    document->head(page, context);
    document->sections(&sections, context);
    page->failed |= sections.failed || !sections.data;
    if (!page->failed) {
        add_contents(page, sections.data);
        base_text_add(page, "<main>\n");
        base_text_add_bytes(page, sections.data, sections.size);
    }
    free(sections.data);
    base_text_add(page,
                  "</main>\n<footer>Written by vknerf " VKNERF_VERSION " from %s.</footer>\n"
                  "<script>\n%s</script>\n</body>\n</html>\n",
                  document->footer, page_script);
}

vkn_status page_fail(const char *path)
{
    return base_fail(VKN_ERROR, "%s: not written: %s", path, vkn_last_error());
}

/* ---- of one run ----------------------------------------------------------------------------- */

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
    page_passes(page, run);
    page_buffers(page, run);
    page_config(page, run);
    page_command(page, run);
}

/* "lego · first try": the scene's name and the run's. */
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
