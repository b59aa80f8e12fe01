/* Adds advice about views, and pictures of the test views that have changed most. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/refinement.h"
#include "scene/scene.h"

#define MOST_PICTURES ((size_t)4)

/* ---- names ----------------------------------------------------------------------------------- */

const char *refinement_path(const struct report_refinement *shown, size_t view)
{
    const struct scene_camera *camera = shown->views[view].before;
    return camera && camera->image_path ? camera->image_path : "–";
}

size_t refinement_shared(const struct report_refinement *shown)
{
    if (shown->view_count == 0)
        return 0;
    const char *path = refinement_path(shown, 0), *end = strrchr(path, '/');
    size_t shared = end ? (size_t)(end - path) + 1 : 0;
    for (size_t i = 1; i < shown->view_count && shared > 0; i++) {
        const char *other = refinement_path(shown, i);
        while (shared > 0 && (strncmp(path, other, shared) != 0 || path[shared - 1] != '/'))
            shared--;
    }
    return shared;
}

/* ---- advice ---------------------------------------------------------------------------------- */

void refinement_advice(struct base_text *page, const struct refinement *refinement)
{
    const struct report_refinement *shown = refinement->shown;
    size_t misfits = 0;
    for (size_t i = 0; i < shown->view_count; i++)
        misfits += shown->views[i].misfits ? 1 : 0;
    base_text_add(page, "<div class=\"charts\" id=\"advice\">\n<div>\n<p>A view's movement is the "
                        "root mean square distance, in pixels "
                        "of the training images, by which points in its frustum have moved in its "
                        "image.</p>\n");
    if (refinement->limited > 0) {
        base_text_add(page, "<p class=\"note\"><b>%zu</b> of %zu views %s at the limit",
                      refinement->limited, shown->view_count,
                      refinement->limited == 1 ? "is" : "are");
        if (isfinite(shown->limit))
            base_text_add(page, " (<code>refine.limit</code>: %g of the image's longer side)",
                          shown->limit);
        base_text_add(page, " and would move further. Their images may not belong to the scene: "
                            "take them out, or raise the limit.</p>\n");
    }
    if (misfits > 0)
        base_text_add(page,
                      "<p class=\"note\"><b>%zu</b> of %zu views %s not fit the field that has "
                      "refined %s, although the field was trained on %s: look at the image, "
                      "and take it out if it shows something else.</p>\n",
                      misfits, shown->view_count, misfits == 1 ? "does" : "do",
                      misfits == 1 ? "it" : "them", misfits == 1 ? "it" : "them");
    if (refinement->rolled_back > 0)
        base_text_add(page, "<p>Such views keep their original poses in the refined scene. Chart "
                            "and table show the movements that were taken back.</p>\n");
    base_text_add(page, "</div>\n</div>\n");
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* A test view and by how much its PSNR has changed. */
struct change {
    size_t view;
    double change;
};

/* Sorts the largest gain first, unknown changes last. */
static int by_change(const void *a, const void *b)
{
    const struct change *first = a, *second = b;
    if (isnan(first->change) || isnan(second->change))
        return (isnan(first->change) != 0) - (isnan(second->change) != 0);
    return (first->change < second->change) - (first->change > second->change);
}

static void add_view(struct base_text *page, const struct refinement *refinement,
                     const struct change *change, size_t *budget)
{
    const struct report_refinement *shown = refinement->shown;
    const struct report_refined_view *view = &shown->views[change->view];
    const struct report_refined_seed *seed = &shown->seeds[0];
    char *render = base_format("views/%s.png", view->test_view);
    char *target = base_format("views/%s_target.png", view->test_view);
    const struct page_cell cells[] = {
        {"before", "original cameras", seed->runs[0], seed->runs[0] ? render : NULL, view->psnr[0]},
        {"after", "refined cameras", seed->runs[1], seed->runs[1] ? render : NULL, view->psnr[1]},
        {"target", "photograph", seed->runs[0], seed->runs[0] ? target : NULL, (double)NAN},
    };
    struct base_text facts = {0};
    base_text_add(&facts, "<span>");
    page_text(&facts, refinement_path(shown, change->view) + refinement->shared);
    base_text_add(&facts, "</span><span>");
    refinement_signed(&facts, change->change, 2);
    base_text_add(&facts, " dB</span>");
    page->failed |= facts.failed || !render || !target;
    if (!page->failed)
        page_view(page, view->test_view, facts.data, cells, BASE_COUNT(cells), budget);
    free(facts.data);
    free(render);
    free(target);
}

/* Lists the test views by their change; returns their number. */
static size_t list_changes(const struct report_refinement *shown, struct change *changes)
{
    size_t count = 0;
    for (size_t i = 0; i < shown->view_count; i++)
        if (shown->views[i].test_view)
            changes[count++] =
                (struct change){i, shown->views[i].psnr[1] - shown->views[i].psnr[0]};
    qsort(changes, count, sizeof(*changes), by_change);
    return count;
}

/* Adds the views that have gained most and those that have lost most, or gained least. */
static void add_views(struct base_text *page, const struct refinement *refinement,
                      struct change *changes)
{
    const struct report_refinement *shown = refinement->shown;
    size_t count = list_changes(shown, changes), known = count, budget = PAGE_PICTURE_BUDGET;
    while (known > 0 && isnan(changes[known - 1].change))
        known--;
    if (shown->seed_count == 0 || count == 0) {
        base_text_add(page, "<p class=\"absent\">No test view has been measured.</p>\n");
        return;
    }
    /* Without enough known changes the first views are shown. */
    size_t last = known > MOST_PICTURES ? known : count < MOST_PICTURES ? count : MOST_PICTURES;
    size_t shown_count = last < MOST_PICTURES ? last : MOST_PICTURES;
    size_t gains = (shown_count + 1) / 2;
    base_text_add(page,
                  "<p>%s of seed %llu; PSNR is the mean over the seeds.</p>\n"
                  "<div class=\"views\">\n",
                  count > shown_count
                      ? "The test views that have gained most, and those that have lost most or "
                        "gained least: pictures"
                      : "Pictures",
                  (unsigned long long)shown->seeds[0].seed);
    for (size_t i = 0; i < shown_count; i++)
        add_view(page, refinement, &changes[i < gains ? i : last - shown_count + i], &budget);
    base_text_add(page, "</div>\n");
}

void refinement_pictures(struct base_text *page, const struct refinement *refinement)
{
    const struct report_refinement *shown = refinement->shown;
    struct change *changes = base_alloc(shown->view_count, sizeof(*changes));
    page_section(page, "pictures", "Test views");
    if (changes)
        add_views(page, refinement, changes);
    base_text_add(page, "</section>\n");
    page->failed |= changes == NULL;
    free(changes);
}
