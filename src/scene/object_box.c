/* Finds the box of the object that most training views look at, from points on surfaces. */
#include <math.h>
#include <stdlib.h>

#include "scene/space.h"

#define PARALLEL    0.9       /* length of the mean direction above which cameras look one way */
#define VIEW_SHARE  (2.0 / 3) /* least share of the views that see an object's point */
#define LEAST_SHARE 0.01      /* least share of the points on the object */
#define WHOLE_SHARE 0.85      /* share of the points on the object from which there is no room */
#define OUTLIERS    0.005     /* share of the object's points ignored at each end of each axis */
#define MARGIN      0.05      /* of the box's longest edge, beyond the object's points */
#define MOST_VIEWS  512u      /* evenly spaced views that are tested: a sufficient sample */

/* Returns the length of the mean of the views' unit directions. */
static double mean_direction(const struct scene_split *train)
{
    double squared = 0;
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (size_t n = 0; n < train->camera_count; n++)
            sum += (double)train->cameras[n].pose[4 * i + 2];
        squared += sum / (double)train->camera_count * (sum / (double)train->camera_count);
    }
    return sqrt(squared);
}

/* Counts for each point the tested views that have it in their picture. Returns how many views are
 * tested. */
static size_t count_views(const struct scene_split *train, const double (*points)[3], size_t count,
                          uint32_t *views)
{
    size_t stride = (train->camera_count - 1) / MOST_VIEWS + 1, tested = 0;
    for (size_t n = 0; n < train->camera_count; n += stride, tested++) {
        const struct scene_camera *camera = &train->cameras[n];
        double limit = scene_camera_limit(camera), x, y;
        for (size_t p = 0; p < count; p++)
            views[p] += scene_camera_project_within(camera, limit, points[p], &x, &y) && x >= 0 &&
                                y >= 0 && x <= camera->width && y <= camera->height
                            ? 1
                            : 0;
    }
    return tested;
}

/* Moves the object's points to the front. Surfaces that are farther from the focus point than the
 * cameras are not the object's: views that cover less than half a circle all see the wall behind.
 * Returns the number of the object's points. */
static size_t select_points(const struct scene_split *train, const double focus[3],
                            double (*points)[3], size_t count, uint32_t *views)
{
    double reach = scene_mean_distance(train, focus);
    size_t tested = count_views(train, (const double(*)[3])points, count, views), selected = 0;
    for (size_t p = 0; p < count; p++) {
        double squared = 0;
        for (int i = 0; i < 3; i++)
            squared += (points[p][i] - focus[i]) * (points[p][i] - focus[i]);
        if ((double)views[p] < VIEW_SHARE * (double)tested || squared > reach * reach)
            continue;
        for (int i = 0; i < 3; i++)
            points[selected][i] = points[p][i];
        selected++;
    }
    return selected;
}

/* Rounds outwards to a multiple of a power of ten that is at most 1/100 of `size`, so that the box
 * is printed with few digits. */
static double round_outwards(double value, double size, double (*outwards)(double))
{
    double digits = 2 - floor(log10(size)), factor = pow(10, fabs(digits));
    return digits >= 0 ? outwards(value * factor) / factor : outwards(value / factor) * factor;
}

/* Bounds the points, in dataset units. `values`: space for one number per point. */
static void bound(const struct vkn_scene *scene, const double (*points)[3], size_t count,
                  double *values, double low[3], double high[3])
{
    double longest = 0;
    for (int i = 0; i < 3; i++) {
        for (size_t p = 0; p < count; p++)
            values[p] = (points[p][i] - scene->offset[i]) / scene->scale;
        low[i] = space_quantile(values, count, OUTLIERS);
        high[i] = space_quantile(values, count, 1 - OUTLIERS);
        longest = fmax(longest, high[i] - low[i]);
    }
    longest = fmax(longest, 1e-9 / scene->scale); /* all points are equal */
    for (int i = 0; i < 3; i++) {
        low[i] = round_outwards(low[i] - MARGIN * longest, longest, floor);
        high[i] = round_outwards(high[i] + MARGIN * longest, longest, ceil);
    }
}

vkn_status scene_find_object(const struct vkn_scene *scene, double (*points)[3], size_t count,
                             double low[3], double high[3], const char **problem)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    bool has_focus = false;
    double focus[3];
    BASE_TRY(scene_find_focus(train, &has_focus, focus));
    *problem = !has_focus                         ? "the views look at no common point"
               : mean_direction(train) > PARALLEL ? "the views look in one direction"
               : count == 0                       ? "the field has no surface"
                                                  : NULL;
    if (*problem)
        return VKN_OK;
    uint32_t *views = base_alloc(count, sizeof *views);
    double *values = base_alloc(count, sizeof *values);
    vkn_status status = views && values ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK) {
        size_t selected = select_points(train, focus, points, count, views);
        *problem = (double)selected < LEAST_SHARE * (double)count
                       ? "most views have no surface in common"
                   : (double)selected > WHOLE_SHARE * (double)count
                       ? "most views have almost all surfaces in common"
                       : NULL;
        if (!*problem)
            bound(scene, (const double(*)[3])points, selected, values, low, high);
    }
    free(views);
    free(values);
    return status;
}
