/* Draws the cameras before and after a refinement from three sides. */
#include <math.h>
#include <stdlib.h>

#include "report/camera_panels.h"
#include "report/chart.h"
#include "report/refinement.h"
#include "scene/scene.h"

#define MOST_CAMERAS       200u
#define TYPICAL            0.9 /* quantile of the movements that sets their magnification */
#define TYPICAL_LENGTH     0.8 /* of such a movement, as a share of a drawn camera's length */
#define MOST_MAGNIFICATION 1000.0

/* A drawn view: the points of its frusta. */
struct pair {
    double before[PANELS_POINTS][3], after[PANELS_POINTS][3];
    double movement; /* largest of a point, training units */
    bool rolled_back;
};

struct pairs {
    struct pair *items;
    size_t count;
    double magnification; /* of drawn movements */
    bool is_cut;          /* longer movements are drawn as long as a camera */
};

/* ---- geometry -------------------------------------------------------------------------------- */

static bool is_drawable(const struct scene_camera *camera)
{
    bool is_finite = camera != NULL;
    for (int i = 0; i < 12 && is_finite; i++)
        is_finite = isfinite(camera->pose[i]);
    return is_finite;
}

/* Chooses views evenly among those with two finite poses; returns their number. */
static size_t choose_views(const struct report_refinement *shown,
                           const struct report_refined_view **views)
{
    size_t count = 0, every = 1 + (shown->view_count - 1) / MOST_CAMERAS;
    for (size_t i = 0; i < shown->view_count; i += every) {
        const struct report_refined_view *view = &shown->views[i];
        if (is_drawable(view->before) && is_drawable(view->after))
            views[count++] = view;
    }
    return count;
}

/* Fits the panels to the cameras before and after and to the unit cube. */
static bool fit(struct camera_panels *panels, const struct report_refined_view *const *views,
                size_t count)
{
    double low[3] = {0, 0, 0}, high[3] = {1, 1, 1}, up[3];
    struct scene_split split = {.cameras = base_alloc(count, sizeof(struct scene_camera)),
                                .camera_count = count};
    if (split.cameras == NULL)
        return false;
    for (size_t n = 0; n < count; n++) {
        const struct scene_camera *const cameras[2] = {views[n]->before, views[n]->after};
        split.cameras[n] = *cameras[0];
        for (int k = 0; k < 2; k++) {
            double position[3];
            for (int i = 0; i < 3; i++)
                position[i] = (double)cameras[k]->pose[4 * i + 3];
            panels_include(low, high, position);
        }
    }
    scene_up(&split, up);
    free(split.cameras);
    panels_fit(panels, up, low, high, count);
    return true;
}

static double distance(const double a[3], const double b[3])
{
    return hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]);
}

/* Computes a view's frusta. Returns whether all their points are finite. */
static bool set_pair(const struct camera_panels *panels, const struct report_refined_view *view,
                     struct pair *pair)
{
    *pair = (struct pair){.rolled_back = view->rolled_back};
    panels_frustum(panels, view->before, pair->before);
    panels_frustum(panels, view->after, pair->after);
    double sum = 0;
    for (int i = 0; i < PANELS_POINTS; i++) {
        double movement = distance(pair->before[i], pair->after[i]);
        pair->movement = fmax(pair->movement, movement);
        sum += movement;
    }
    return isfinite(sum);
}

static int by_size(const void *a, const void *b)
{
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

/* Returns how many times larger than they are movements are drawn: most of them can then be seen,
 * and are shorter than a camera. */
static double find_magnification(const struct pairs *pairs, double length, double *memory)
{
    size_t moved = 0;
    for (size_t n = 0; n < pairs->count; n++)
        if (pairs->items[n].movement > 1e-6 * length)
            memory[moved++] = pairs->items[n].movement;
    if (moved == 0)
        return 1;
    qsort(memory, moved, sizeof(*memory), by_size);
    double typical = memory[(size_t)(TYPICAL * (double)(moved - 1))];
    double most = fmin(TYPICAL_LENGTH * length / typical, MOST_MAGNIFICATION);
    return most > 1 ? ticks_round_down(most) : 1;
}

/* Magnifies the movements of a view's points, all by one factor. */
static void magnify(struct pairs *pairs, struct pair *pair, double length)
{
    double factor = pairs->magnification;
    if (factor > 1 && factor * pair->movement > length) {
        factor = fmax(1, length / pair->movement);
        pairs->is_cut = true;
    }
    for (int i = 0; i < PANELS_POINTS; i++)
        for (int axis = 0; axis < 3; axis++)
            pair->after[i][axis] =
                pair->before[i][axis] + factor * (pair->after[i][axis] - pair->before[i][axis]);
}

/* Computes the frusta of the drawn views; `memory`: a number for each. False: out of memory. */
static bool make_pairs(struct camera_panels *panels, const struct report_refined_view *const *views,
                       size_t count, double *memory, struct pairs *pairs)
{
    pairs->items = base_alloc(count, sizeof(*pairs->items));
    if (pairs->items == NULL || !fit(panels, views, count))
        return false;
    for (size_t n = 0; n < count; n++)
        if (set_pair(panels, views[n], &pairs->items[pairs->count]))
            pairs->count++;
    pairs->magnification = find_magnification(pairs, panels->frustum_length, memory);
    for (size_t n = 0; n < pairs->count; n++)
        magnify(pairs, &pairs->items[n], panels->frustum_length);
    return true;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void draw_before(const struct camera_panels *panels, const struct camera_panel *panel,
                        const struct pairs *pairs)
{
    base_text_add(panels->svg, "<path class=\"camera before\" d=\"");
    for (size_t n = 0; n < pairs->count; n++)
        panels_add_frustum(panels, panel, pairs->items[n].before);
    base_text_add(panels->svg, "\"/>\n");
}

/* Draws the views that were, or were not, rolled back: their frusta, and lines from where they
 * were. */
static void draw_after(const struct camera_panels *panels, const struct camera_panel *panel,
                       const struct pairs *pairs, bool rolled_back)
{
    const char *css_class = rolled_back ? "limited" : "after";
    base_text_add(panels->svg, "<path class=\"camera %s\" d=\"", css_class);
    for (size_t n = 0; n < pairs->count; n++)
        if (pairs->items[n].rolled_back == rolled_back)
            panels_add_frustum(panels, panel, pairs->items[n].after);
    base_text_add(panels->svg, "\"/>\n<path class=\"movement %s\" d=\"", css_class);
    for (size_t n = 0; n < pairs->count; n++)
        if (pairs->items[n].rolled_back == rolled_back)
            panels_add_line(panels, panel, pairs->items[n].before[0], pairs->items[n].after[0]);
    base_text_add(panels->svg, "\"/>\n");
}

static void draw_panels(const struct camera_panels *panels, const struct pairs *pairs)
{
    base_text_add(panels->svg, "<div class=\"rig\">\n");
    for (int i = 0; i < 3; i++) {
        const struct camera_panel *panel = &panels->panels[i];
        char attributes[160];
        snprintf(attributes, sizeof(attributes),
                 "viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"cameras before and after, "
                 "%s\"",
                 PANELS_SIDE, PANELS_SIDE, panel->name);
        panels_open(panels, attributes);
        panels_draw_cube(panels, panel, 1, "unit");
        draw_before(panels, panel, pairs);
        draw_after(panels, panel, pairs, false);
        draw_after(panels, panel, pairs, true);
        panels_close(panels, panel);
    }
    base_text_add(panels->svg, "</div>\n");
}

static void add_legend(struct base_text *page, const struct refinement *refinement,
                       const struct pairs *pairs)
{
    base_text_add(page, "<p class=\"legend\"><span>");
    page_swatch(page, "before");
    base_text_add(page, "before</span><span>");
    page_swatch(page, "after");
    base_text_add(page, "after</span>");
    if (refinement->rolled_back > 0) {
        base_text_add(page, "<span>");
        page_swatch(page, "limited");
        base_text_add(page, "keeps its camera</span>");
    }
    base_text_add(page, "<span>The square is the unit cube of training space.</span></p>\n<p>");
    if (pairs->magnification > 1)
        base_text_add(page, "Movements are drawn <b>%g times</b> as large as they are%s.",
                      pairs->magnification,
                      pairs->is_cut ? ", but at most as long as a camera is drawn" : "");
    else
        base_text_add(page, "Movements are drawn as large as they are.");
    if (pairs->count < refinement->shown->view_count)
        base_text_add(page, " %zu of %zu views are drawn.", pairs->count,
                      refinement->shown->view_count);
    base_text_add(page, "</p>\n");
}

void refinement_cameras(struct base_text *page, const struct refinement *refinement)
{
    const struct report_refined_view *views[MOST_CAMERAS];
    double memory[MOST_CAMERAS];
    struct pairs pairs = {0};
    struct camera_panels panels = {.svg = page, .scale = refinement->shown->scale};
    page_section(page, "cameras", "Cameras");
    size_t count = choose_views(refinement->shown, views);
    if (count > 0 && !make_pairs(&panels, views, count, memory, &pairs))
        page->failed = true;
    if (pairs.count > 0) {
        add_legend(page, refinement, &pairs);
        draw_panels(&panels, &pairs);
    } else {
        base_text_add(page, "<p class=\"absent\">There are no cameras to draw.</p>\n");
    }
    refinement_advice(page, refinement);
    base_text_add(page, "</section>\n");
    free(pairs.items);
}
