/* report.html from the files of a run directory. */
#include <stdlib.h>

#include "report/page.h"

void page_document(struct base_text *page, const char *title, const char *footer,
                   void (*body)(struct base_text *page, const void *context), const void *context)
{
    base_text_add(
        page, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
              "<meta charset=\"utf-8\"/>\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
              "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>");
    page_text(page, title);
    base_text_add(page, " – vknerf</title>\n<style>\n%s%s%s</style>\n</head>\n<body>\n", page_style,
                  page_style_more, page_style_pictures);
    body(page, context);
    base_text_add(page,
                  "<footer>Written by vknerf " VKNERF_VERSION " from %s.</footer>\n"
                  "<script>\n%s</script>\n</body>\n</html>\n",
                  footer, page_script);
}

static void add_body(struct base_text *page, const void *context)
{
    const struct run *run = context;
    page_head(page, run);
    base_text_add(page, "<main>\n");
    page_curves(page, run);
    page_filmstrip(page, run);
    page_pictures(page, run);
    page_passes(page, run);
    page_buffers(page, run);
    page_config(page, run);
    page_command(page, run);
    base_text_add(page, "</main>\n");
}

static void add_page(struct base_text *page, const struct run *run)
{
    const char *scene = page_scene(run);
    page_document(page, scene ? scene : run->folder,
                  "config.json, metrics.jsonl, summary.json and views/ of the run directory",
                  add_body, run);
}

static vkn_status write_page(const struct run *run, const char *path)
{
    struct base_text page = {0};
    add_page(&page, run);
    vkn_status status = page.failed ? base_fail(VKN_ERROR, "%s: out of memory", path)
                                    : base_file_replace(path, page.data, page.size);
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
