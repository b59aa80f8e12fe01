/* Decides from the fits which views' poses do not fit their images, and describes the result. */
#include <stdlib.h>
#include <string.h>

#include "scene/inspect.h"
#include "scene/space.h"

#define LEAST_VIEWS  3u
/* A median fit below these values means wrong poses: sound captures had 0.82 and more by tracks,
 * and 0.68 and more by the nearest points (docs/experiments.md). */
#define TRACKED_FITS 0.5
#define NEAREST_FITS 0.4
/* A view's fit below these fractions of the median, by two standard errors, means a wrong pose. */
#define TRACKED_POOR 0.5
#define NEAREST_POOR 0.35

/* ---- the verdict ----------------------------------------------------------------------------- */

const struct consistency_fit *consistency_deciding_fit(const struct consistency *consistency,
                                                       const struct consistency_view *view)
{
    return consistency->uses_tracks ? &view->tracked : &view->nearest;
}

/* Returns the median fit by one kind of points over the views that have such a fit; sets *count to
 * their number. `values` has the capacity of all views. */
static double median_fit(const struct consistency *consistency, bool tracked, double *values,
                         size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < consistency->count; i++) {
        const struct consistency_view *view = &consistency->views[i];
        const struct consistency_fit *fit = tracked ? &view->tracked : &view->nearest;
        if (fit->points > 0)
            values[(*count)++] = fit->fit;
    }
    return *count > 0 ? space_quantile(values, *count, 0.5) : 0;
}

/* Marks and counts the views whose fit is below `least` by `errors` standard errors. */
static void find_poor(struct consistency *consistency, double least, double errors)
{
    for (size_t i = 0; i < consistency->count; i++) {
        struct consistency_view *view = &consistency->views[i];
        const struct consistency_fit *fit = consistency_deciding_fit(consistency, view);
        view->is_poor = fit->points > 0 && fit->fit + errors * fit->error < least;
        consistency->poor_views += view->is_poor ? 1 : 0;
    }
}

static double poor_below(const struct consistency *consistency)
{
    return (consistency->uses_tracks ? TRACKED_POOR : NEAREST_POOR) * consistency->fit;
}

static enum consistency_verdict judge(struct consistency *consistency, size_t nearest_views)
{
    double least = consistency->uses_tracks ? TRACKED_FITS : NEAREST_FITS;
    if (consistency->count >= LEAST_VIEWS && 2 * consistency->blind_views > consistency->count)
        return CONSISTENCY_BLIND;
    if (consistency->scored_views < LEAST_VIEWS)
        return CONSISTENCY_UNKNOWN;
    bool most_wrong = consistency->fit < least;
    find_poor(consistency, most_wrong ? least : poor_below(consistency), most_wrong ? 0 : 2);
    if (most_wrong || consistency->poor_views > 0)
        return most_wrong ? CONSISTENCY_MOST_WRONG : CONSISTENCY_SOME_WRONG;
    bool is_folded = consistency->uses_tracks && nearest_views >= LEAST_VIEWS &&
                     consistency->nearest_fit < NEAREST_FITS;
    return is_folded ? CONSISTENCY_FOLDED : CONSISTENCY_GOOD;
}

vkn_status consistency_judge(struct consistency *consistency)
{
    size_t by_tracks = 0, by_nearest = 0;
    double *values = base_alloc(consistency->count, sizeof *values);
    if (values == NULL)
        return VKN_ERROR;
    double tracked = median_fit(consistency, true, values, &by_tracks);
    consistency->nearest_fit = median_fit(consistency, false, values, &by_nearest);
    free(values);
    consistency->uses_tracks = by_tracks >= LEAST_VIEWS && 2 * by_tracks >= by_nearest;
    consistency->fit = consistency->uses_tracks ? tracked : consistency->nearest_fit;
    consistency->scored_views = consistency->uses_tracks ? by_tracks : by_nearest;
    for (size_t i = 0; i < consistency->count; i++)
        consistency->blind_views += consistency->views[i].is_blind ? 1 : 0;
    consistency->reason = "too few views see enough of the sparse points";
    consistency->verdict = judge(consistency, by_nearest);
    return VKN_OK;
}

/* ---- description ----------------------------------------------------------------------------- */

const char *consistency_name(const struct vkn_scene *scene, const struct consistency_view *view)
{
    const char *path = scene->splits[view->split].cameras[view->index].image_path,
               *slash = strrchr(path, '/');
    size_t folder = strlen(scene->path);
    if (strncmp(path, scene->path, folder) == 0 && path[folder] == '/')
        return path + folder + 1;
    return slash != NULL ? slash + 1 : path;
}

/* Appends ": images/0007.jpg (0.02), images/0012.jpg (-0.11), ...". */
static void add_names(const struct vkn_scene *scene, const struct consistency *consistency,
                      size_t names, struct base_text *text)
{
    size_t named = 0;
    for (size_t i = 0; i < consistency->count && named <= names; i++) {
        const struct consistency_view *view = &consistency->views[i];
        if (!view->is_poor)
            continue;
        if (named < names)
            base_text_add(text, "%s%.80s (%.2f)", named > 0 ? ", " : ": ",
                          consistency_name(scene, view),
                          consistency_deciding_fit(consistency, view)->fit);
        else
            base_text_add(text, ", ...");
        named++;
    }
}

static const char *add_problem(const struct vkn_scene *scene, const struct consistency *consistency,
                               struct base_text *text)
{
    const char *sampled = consistency->sampled < consistency->total ? " that were sampled" : "";
    switch (consistency->verdict) {
    case CONSISTENCY_MOST_WRONG:
        base_text_add(text,
                      "the poses of %zu of %zu views%s do not fit their pictures: the colours of "
                      "the sparse points agree with the pictures hardly better than under other "
                      "views' poses (median fit %.2f; 1 is perfect, 0 no better than other poses)",
                      consistency->poor_views, consistency->scored_views, sampled,
                      consistency->fit);
        return "check that each pose belongs to the picture of its name, the poses' convention "
               "(camera to world or world to camera, axes) and the focal length; or find new poses "
               "(vknerf prepare)";
    case CONSISTENCY_SOME_WRONG:
        base_text_add(text,
                      "the poses of %zu of %zu views%s do not fit their pictures, by the colours "
                      "of the sparse points (fit below %.2f, where the median is %.2f)",
                      consistency->poor_views, consistency->scored_views, sampled,
                      poor_below(consistency), consistency->fit);
        return "take these views out, or check whether their pictures were renamed or replaced";
    case CONSISTENCY_BLIND:
        base_text_add(
            text, "%zu of %zu views%s have hardly any of the %zu sparse points in their pictures",
            consistency->blind_views, consistency->count, sampled, scene->point_count);
        return "check that poses and points are of one reconstruction, and the convention of the "
               "poses (camera to world or world to camera, axes)";
    case CONSISTENCY_FOLDED:
        base_text_add(
            text,
            "the nearest visible points do not have the colours of the pictures (median fit %.2f; "
            "%.2f for the points of the views' tracks): parts of the model may overlap",
            consistency->nearest_fit, consistency->fit);
        return "check whether two similar sides were mistaken for one; if so, find new poses "
               "without the pictures of one of them, or with more pictures between the two";
    case CONSISTENCY_UNKNOWN:
    case CONSISTENCY_GOOD:
        break;
    }
    return NULL;
}

vkn_status consistency_explain(const struct vkn_scene *scene, const struct consistency *consistency,
                               size_t names, char **problem, const char **advice)
{
    struct base_text text = {0};
    *advice = add_problem(scene, consistency, &text);
    add_names(scene, consistency, names, &text);
    if (text.failed) {
        free(text.data);
        text.data = NULL;
    }
    *problem = text.data;
    return text.failed ? VKN_ERROR : VKN_OK;
}

void scene_warn_consistency(const struct vkn_scene *scene)
{
    BASE_KEEP_ERROR;
    struct consistency consistency;
    char *problem = NULL;
    const char *advice = NULL;
    if (consistency_measure(scene, &consistency) == VKN_OK &&
        consistency_explain(scene, &consistency, 3, &problem, &advice) == VKN_OK && problem != NULL)
        base_log(BASE_LOG_WARNING, "%s: %s; %s (vknerf info)", scene->path, problem, advice);
    free(problem);
    consistency_free(&consistency);
}

vkn_status inspect_consistency(struct inspection *inspection)
{
    enum { NAMES = 8 };
    char *problem = NULL;
    const char *advice = NULL;
    vkn_status status =
        consistency_explain(inspection->scene, &inspection->consistency, NAMES, &problem, &advice);
    if (status == VKN_OK && problem != NULL)
        status = inspect_add_problem(inspection, advice, "%s", problem);
    free(problem);
    return status;
}
