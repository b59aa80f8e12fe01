/* report.html from the files of a run directory. */
#include <stdlib.h>

#include "report/page.h"

static void add_page(struct base_text *page, const struct run *run)
{
    const char *scene = page_scene(run);
    base_text_add(
        page, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
              "<meta charset=\"utf-8\"/>\n"
              "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
              "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>");
    page_text(page, scene ? scene : run->folder);
    base_text_add(page, " – vknerf</title>\n<style>\n%s%s</style>\n</head>\n<body>\n", page_style,
                  page_style_more);
    page_head(page, run);
    base_text_add(page, "<main>\n");
    page_curves(page, run);
    page_passes(page, run);
    page_pictures(page, run);
    page_config(page, run);
    page_command(page, run);
    base_text_add(page,
                  "</main>\n<footer>Written by vknerf " VKNERF_VERSION
                  " from config.json, metrics.jsonl, "
                  "summary.json and views/ of the run directory.</footer>\n"
                  "<script>\n%s</script>\n</body>\n</html>\n",
                  page_script);
}

vkn_status report_write_html(const char *run_folder)
{
    struct run run;
    BASE_TRY(run_read(run_folder, &run));
    char *path = base_path_join(run_folder, "report.html");
    struct base_text page = {0};
    vkn_status status = VKN_ERROR;
    if (path != NULL) {
        add_page(&page, &run);
        status = page.failed ? base_fail(VKN_ERROR, "%s: out of memory", path)
                             : base_file_replace(path, page.data, page.size);
    }
    free(page.data);
    free(path);
    run_free(&run);
    return status;
}
