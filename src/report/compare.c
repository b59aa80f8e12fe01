/* Writes the page that compares runs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/page.h"

#define MOST_VIEWS  8  /* with pictures */
#define TITLE_NAMES 3u /* runs named in the title */

struct comparison {
    struct page_run runs[PAGE_RUNS];
    size_t count;
};

static const char *const css_classes[PAGE_RUNS] = {"r1", "r2", "r3", "r4",  "r5",  "r6",
                                                   "r7", "r8", "r9", "r10", "r11", "r12"};

/* ---- head ----------------------------------------------------------------------------------- */

static void add_head(struct base_text *page, const void *context)
{
    const struct comparison *comparison = context;
    base_text_add(page,
                  "<header>\n<p class=\"kind\">vknerf comparison</p>\n<h1>%zu runs</h1>\n"
                  "<ul class=\"runs\">\n",
                  comparison->count);
    for (size_t i = 0; i < comparison->count; i++) {
        const struct page_run *run = &comparison->runs[i];
        base_text_add(page, "<li>");
        page_swatch(page, css_classes[i]);
        base_text_add(page, "<b>");
        page_text(page, run->name);
        base_text_add(page, "</b> <span>");
        page_text(page, run->scene[0] ? run->scene : "scene not recorded");
        base_text_add(page, "</span></li>\n");
    }
    base_text_add(page, "</ul>\n");
    page_figures(page, comparison->runs, comparison->count);
    base_text_add(page, "</header>\n");
}

/* ---- pictures ------------------------------------------------------------------------------- */

static const struct run_picture *find_view(const struct page_run *run, const char *scene,
                                           const char *view)
{
    const struct run_summary *summary = &run->run.summary;
    for (size_t i = 0; i < summary->picture_count && strcmp(run->scene, scene) == 0; i++)
        if (summary->pictures[i].name && strcmp(summary->pictures[i].name, view) == 0)
            return &summary->pictures[i];
    return NULL;
}

/* Adds the target image of a view and the renders of all runs of the scene. */
static void add_view(struct base_text *page, const struct comparison *comparison, const char *scene,
                     const char *view, size_t *budget)
{
    struct page_cell cells[PAGE_RUNS + 1] = {{"target", "target", "", NULL, (double)NAN}};
    size_t count = 1;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct page_run *run = &comparison->runs[i];
        const struct run_picture *picture = find_view(run, scene, view);
        if (picture == NULL)
            continue;
        if (cells[0].path == NULL) {
            cells[0].folder = run->run.folder;
            cells[0].path = picture->target;
        }
        cells[count++] = (struct page_cell){css_classes[i], run->name, run->run.folder,
                                            picture->render, picture->psnr};
    }
    char *name = scene[0] ? base_format("%s %s", scene, view) : base_format("%s", view);
    if (name)
        page_view(page, name, "", cells, count, budget);
    page->failed |= name == NULL;
    free(name);
}

/* Adds those views of a run that no earlier run has. Returns the number of added views. */
static size_t add_views(struct base_text *page, const struct comparison *comparison, size_t index,
                        size_t most, size_t *budget)
{
    const struct page_run *run = &comparison->runs[index];
    size_t added = 0;
    for (size_t i = 0; i < run->run.summary.picture_count && added < most; i++) {
        const char *view = run->run.summary.pictures[i].name;
        bool is_shown = view == NULL;
        for (size_t earlier = 0; earlier < index && !is_shown; earlier++)
            is_shown = find_view(&comparison->runs[earlier], run->scene, view) != NULL;
        if (is_shown)
            continue;
        add_view(page, comparison, run->scene, view, budget);
        added++;
    }
    return added;
}

static void add_pictures(struct base_text *page, const struct comparison *comparison)
{
    size_t left = MOST_VIEWS, budget = PAGE_PICTURE_BUDGET;
    page_section(page, "views", "Test views");
    base_text_add(page, "<div class=\"views\">\n");
    for (size_t i = 0; i < comparison->count; i++)
        left -= add_views(page, comparison, i, left, &budget);
    base_text_add(page, "</div>\n%s</section>\n",
                  left == MOST_VIEWS
                      ? "<p class=\"absent\">None of the runs has pictures of test views.</p>\n"
                      : "");
}

/* ---- the page ------------------------------------------------------------------------------- */

static void add_sections(struct base_text *page, const void *context)
{
    const struct comparison *comparison = context;
    page_section(page, "per-view", "Quality by test view");
    for (size_t i = 0; i < comparison->count; i++)
        page_view_table(page, &comparison->runs[i].run, comparison->runs[i].name);
    base_text_add(page, "</section>\n");
    add_pictures(page, comparison);
}

/* Returns "lego, ship and 3 more": as many names of runs as a browser's tab may show. */
static char *make_title(const struct comparison *comparison)
{
    struct base_text title = {0};
    size_t named = comparison->count <= TITLE_NAMES ? comparison->count : TITLE_NAMES - 1;
    for (size_t i = 0; i < named; i++)
        base_text_add(&title, "%s%s", i > 0 ? ", " : "", comparison->runs[i].name);
    if (named < comparison->count)
        base_text_add(&title, " and %zu more", comparison->count - named);
    if (!title.failed)
        return title.data;
    free(title.data);
    return NULL;
}

static vkn_status write_page(const struct comparison *comparison, const char *path)
{
    cJSON *data = page_runs_json(comparison->runs, comparison->count);
    char *title = make_title(comparison);
    const struct page_document document = {
        .file = &page_comparison_file,
        .title = title,
        .sources = "the files of the run directories",
        .head = add_head,
        .sections = add_sections,
        .data = data,
    };
    vkn_status status = data && title ? page_write(path, &document, comparison)
                                      : base_fail(VKN_ERROR, "%s: out of memory", path);
    cJSON_Delete(data);
    free(title);
    return status;
}

vkn_status report_write_comparison(const char *const *runs, size_t count, const char *out)
{
    if (count > PAGE_RUNS)
        return base_fail(VKN_BAD_INPUT, "%s: one page compares at most %d runs", runs[PAGE_RUNS],
                         PAGE_RUNS);
    struct comparison comparison = {.count = count};
    vkn_status status = page_read_runs(runs, count, comparison.runs);
    if (status == VKN_OK)
        status = write_page(&comparison, out);
    page_free_runs(comparison.runs, count);
    return status;
}
