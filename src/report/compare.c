/* Writes the page that compares runs: reads and names the runs, adds the sections. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare.h"

#define MOST_VIEWS  8  /* with pictures */
#define TITLE_NAMES 3u /* runs named in the title */

/* ---- head ----------------------------------------------------------------------------------- */

void compare_head(struct base_text *page, const struct comparison *comparison)
{
    base_text_add(page,
                  "<header>\n<p class=\"kind\">vknerf comparison</p>\n<h1>%zu runs</h1>\n"
                  "<ul class=\"runs\">\n",
                  comparison->count);
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared *compared = &comparison->runs[i];
        base_text_add(page, "<li>");
        page_swatch(page, compared->css_class);
        base_text_add(page, "<b>");
        page_text(page, compared->name);
        base_text_add(page, "</b> <span>");
        page_text(page, compared->scene[0] ? compared->scene : "scene not recorded");
        base_text_add(page, "</span></li>\n");
    }
    base_text_add(page, "</ul>\n</header>\n");
}

/* ---- pictures ------------------------------------------------------------------------------- */

static const struct run_picture *find_view(const struct compared *compared, const char *scene,
                                           const char *view)
{
    const struct run_summary *summary = &compared->run.summary;
    for (size_t i = 0; i < summary->picture_count && strcmp(compared->scene, scene) == 0; i++)
        if (summary->pictures[i].name && strcmp(summary->pictures[i].name, view) == 0)
            return &summary->pictures[i];
    return NULL;
}

/* Adds the target image of a view and the renders of all runs of the scene. */
static void add_view(struct base_text *page, const struct comparison *comparison, const char *scene,
                     const char *view, size_t *budget)
{
    struct page_cell cells[COMPARE_MOST + 1] = {{"target", "target", "", NULL, (double)NAN}};
    size_t count = 1;
    for (size_t i = 0; i < comparison->count; i++) {
        const struct compared *compared = &comparison->runs[i];
        const struct run_picture *picture = find_view(compared, scene, view);
        if (picture == NULL)
            continue;
        if (cells[0].path == NULL) {
            cells[0].folder = compared->run.folder;
            cells[0].path = picture->target;
        }
        cells[count++] = (struct page_cell){compared->css_class, compared->name,
                                            compared->run.folder, picture->render, picture->psnr};
    }
    char *name = scene[0] ? base_format("%s %s", scene, view) : base_format("%s", view);
    if (name)
        page_view(page, &(struct page_view){name, "", ""}, cells, count, budget);
    page->failed |= name == NULL;
    free(name);
}

/* Adds those views of a run that no earlier run has. Returns the number of added views. */
static size_t add_views(struct base_text *page, const struct comparison *comparison, size_t index,
                        size_t most, size_t *budget)
{
    const struct compared *compared = &comparison->runs[index];
    size_t added = 0;
    for (size_t i = 0; i < compared->run.summary.picture_count && added < most; i++) {
        const char *view = compared->run.summary.pictures[i].name;
        bool is_shown = view == NULL;
        for (size_t earlier = 0; earlier < index && !is_shown; earlier++)
            is_shown = find_view(&comparison->runs[earlier], compared->scene, view) != NULL;
        if (is_shown)
            continue;
        add_view(page, comparison, compared->scene, view, budget);
        added++;
    }
    return added;
}

void compare_pictures(struct base_text *page, const struct comparison *comparison)
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

static void add_head(struct base_text *page, const void *context)
{
    compare_head(page, context);
}

static void add_sections(struct base_text *page, const void *context)
{
    const struct comparison *comparison = context;
    compare_results(page, comparison);
    compare_samples(page, comparison);
    compare_gradients(page, comparison);
    compare_curves(page, comparison);
    compare_pictures(page, comparison);
    compare_settings(page, comparison);
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

static vkn_status add_page(struct base_text *page, const struct comparison *comparison)
{
    char *title = make_title(comparison);
    if (!title)
        return VKN_ERROR;
    const struct page_document document = {
        .title = title,
        .footer = "the files of the run directories",
        .head = add_head,
        .sections = add_sections,
    };
    page_document(page, &document, comparison);
    free(title);
    return VKN_OK;
}

static vkn_status name_run(struct compared *compared, size_t index)
{
    static const char *const css_classes[COMPARE_MOST] = {"r1", "r2", "r3", "r4",  "r5",  "r6",
                                                          "r7", "r8", "r9", "r10", "r11", "r12"};
    const char *scene = page_scene(&compared->run);
    compared->css_class = css_classes[index];
    compared->name = page_run_name(compared->run.folder);
    compared->scene = page_last_part(scene ? scene : "");
    return compared->name && compared->scene ? VKN_OK : VKN_ERROR;
}

/* Replaces equal names by the folders' paths. */
static vkn_status separate_names(struct comparison *comparison)
{
    bool shared[COMPARE_MOST] = {false};
    for (size_t i = 0; i < comparison->count; i++)
        for (size_t j = 0; j < comparison->count; j++)
            shared[i] |= i != j && strcmp(comparison->runs[i].name, comparison->runs[j].name) == 0;
    for (size_t i = 0; i < comparison->count; i++) {
        if (!shared[i])
            continue;
        free(comparison->runs[i].name);
        comparison->runs[i].name = base_format("%s", comparison->runs[i].run.folder);
        if (comparison->runs[i].name == NULL)
            return VKN_ERROR;
    }
    return VKN_OK;
}

static vkn_status read_runs(const char *const *folders, size_t count, struct comparison *comparison)
{
    for (size_t i = 0; i < count; i++) {
        BASE_TRY(run_read(folders[i], &comparison->runs[i].run));
        comparison->count++;
        BASE_TRY(name_run(&comparison->runs[i], i));
    }
    return separate_names(comparison);
}

static void free_runs(struct comparison *comparison)
{
    for (size_t i = 0; i < comparison->count; i++) {
        run_free(&comparison->runs[i].run);
        free(comparison->runs[i].name);
        free(comparison->runs[i].scene);
    }
}

vkn_status report_write_comparison(const char *const *runs, size_t count, const char *out)
{
    if (count > COMPARE_MOST)
        return base_fail(VKN_BAD_INPUT, "%s: one page compares at most %d runs", runs[COMPARE_MOST],
                         COMPARE_MOST);
    struct comparison comparison = {0};
    struct base_text page = {0};
    vkn_status status = read_runs(runs, count, &comparison);
    if (status == VKN_OK)
        status = add_page(&page, &comparison);
    if (status == VKN_OK)
        status = page.failed ? page_fail(out) : base_file_replace(out, page.data, page.size);
    free(page.data);
    free_runs(&comparison);
    return status;
}
