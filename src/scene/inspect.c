/* Measures a scene for inspect_scene. */
#include "scene/inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/image.h"
#include "scene/transforms.h"

#define PI          3.14159265358979323846
#define OUTERMOST   0.02  /* fraction of the points outside of point_box on each side: outliers */
#define MANY_POINTS 2000u /* rough number of points that are tested for being too near */
#define RAY_GRID    9     /* rays along each side of a view */

static void widen(struct inspect_range *range, double value, bool first)
{
    range->low = first ? value : fmin(range->low, value);
    range->high = first ? value : fmax(range->high, value);
}

/* ---- sizes and lenses ------------------------------------------------------------------------ */

static int by_frequency(const void *a, const void *b)
{
    const struct inspect_size *x = a, *y = b;
    return (x->views < y->views) - (x->views > y->views);
}

static vkn_status measure_sizes(struct inspection *inspection)
{
    inspection->sizes = base_alloc(inspection->views, sizeof(*inspection->sizes));
    if (inspection->sizes == NULL)
        return VKN_ERROR;
    for (size_t n = 0; n < inspection->views; n++) {
        const struct scene_camera *view = inspect_view(inspection->scene, n, NULL);
        size_t i = 0;
        while (i < inspection->size_count && (inspection->sizes[i].width != view->width ||
                                              inspection->sizes[i].height != view->height))
            i++;
        if (i == inspection->size_count)
            inspection->sizes[inspection->size_count++] =
                (struct inspect_size){view->width, view->height, 0};
        inspection->sizes[i].views++;
    }
    qsort(inspection->sizes, inspection->size_count, sizeof(*inspection->sizes), by_frequency);
    return VKN_OK;
}

/* Returns the angle, in degrees, between the rays through two opposite edges of the image. */
static double field_of_view(const struct scene_camera *view, bool vertical)
{
    double middle[2] = {0.5 * view->width, 0.5 * view->height}, total = 0;
    for (int side = 0; side < 2; side++) {
        double x = vertical ? middle[0] : side * (double)view->width;
        double y = vertical ? side * (double)view->height : middle[1];
        double origin[3], edge[3], forward = 0;
        scene_camera_ray(view, x, y, origin, edge);
        for (int i = 0; i < 3; i++)
            forward -= edge[i] * (double)view->pose[4 * i + 2];
        total += acos(fmin(fmax(forward, -1), 1));
    }
    return total * 180 / PI;
}

static void measure_lenses(struct inspection *inspection)
{
    for (size_t n = 0; n < inspection->views; n++) {
        const struct scene_camera *view = inspect_view(inspection->scene, n, NULL);
        bool is_pinhole = view->lens == VKN_LENS_PERSPECTIVE && !lens_is_distorted(view);
        *(is_pinhole ? &inspection->pinhole_views : &inspection->lens_views[view->lens]) += 1;
        widen(&inspection->focal_x, (double)view->focal_x, n == 0);
        widen(&inspection->focal_y, (double)view->focal_y, n == 0);
        widen(&inspection->fov_x, field_of_view(view, false), n == 0);
        widen(&inspection->fov_y, field_of_view(view, true), n == 0);
        for (int i = 0; i < 3; i++)
            widen(&inspection->box[i], (double)view->pose[4 * i + 3], n == 0);
    }
}

/* ---- camera positions ------------------------------------------------------------------------ */

/* Computes the eigenvalues of a symmetric matrix, largest first (Smith 1961, "Eigenvalues of a
 * symmetric 3 x 3 matrix": roots of the characteristic polynomial by cosines of thirds of an
 * angle). */
static void eigenvalues(double m[3][3], double values[3])
{
    double off_diagonal = m[0][1] * m[0][1] + m[0][2] * m[0][2] + m[1][2] * m[1][2];
    double mean = (m[0][0] + m[1][1] + m[2][2]) / 3, square = 2 * off_diagonal;
    for (int i = 0; i < 3; i++)
        square += (m[i][i] - mean) * (m[i][i] - mean);
    double size = sqrt(square / 6);
    for (int i = 0; i < 3; i++) {
        values[i] = mean;
        m[i][i] -= mean;
    }
    if (!(size > 1e-12 * fabs(mean)))
        return;
    double determinant = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[1][2]) -
                         m[0][1] * (m[0][1] * m[2][2] - m[1][2] * m[0][2]) +
                         m[0][2] * (m[0][1] * m[1][2] - m[1][1] * m[0][2]);
    double cosine = determinant / (2 * size * size * size);
    double angle = acos(fmin(fmax(cosine, -1), 1)) / 3;
    values[0] += 2 * size * cos(angle);
    values[2] += 2 * size * cos(angle + 2 * PI / 3);
    values[1] = 3 * mean - values[0] - values[2];
}

static void measure_spread(struct inspection *inspection)
{
    const struct scene_split *train = &inspection->scene->splits[SCENE_TRAIN];
    double mean[3] = {0}, m[3][3] = {{0}}, values[3];
    for (size_t n = 0; n < train->camera_count; n++)
        for (int i = 0; i < 3; i++)
            mean[i] += (double)train->cameras[n].pose[4 * i + 3] / (double)train->camera_count;
    for (size_t n = 0; n < train->camera_count; n++) {
        double d[3];
        for (int i = 0; i < 3; i++)
            d[i] = (double)train->cameras[n].pose[4 * i + 3] - mean[i];
        for (int i = 0; i < 9; i++)
            m[i / 3][i % 3] += d[i / 3] * d[i % 3] / (double)train->camera_count;
    }
    eigenvalues(m, values);
    for (int i = 0; i < 3; i++)
        inspection->spread[i] = sqrt(fmax(values[i], 0));
}

static vkn_status measure_focus(struct inspection *inspection)
{
    const struct scene_split *train = &inspection->scene->splits[SCENE_TRAIN];
    BASE_TRY(scene_find_focus(train, &inspection->has_focus, inspection->focus));
    if (!inspection->has_focus)
        memset(inspection->focus, 0, sizeof(inspection->focus));
    else
        inspection->distance = scene_mean_distance(train, inspection->focus);
    return VKN_OK;
}

/* ---- the cube -------------------------------------------------------------------------------- */

static bool in_cube(const struct vkn_scene *scene, const double point[3])
{
    for (int i = 0; i < 3; i++)
        if (fabs(point[i] - 0.5) > 0.5 * scene->aabb_scale)
            return false;
    return true;
}

/* Returns whether the ray from `origin` hits the cube: it enters every pair of parallel faces
 * before it leaves any pair. */
static bool hits_cube(const struct vkn_scene *scene, const double origin[3],
                      const double direction[3])
{
    double enter = 0, leave = INFINITY, half = 0.5 * scene->aabb_scale;
    for (int i = 0; i < 3; i++) {
        double a = (0.5 - half - origin[i]) / direction[i];
        double b = (0.5 + half - origin[i]) / direction[i];
        enter = fmax(enter, fmin(a, b));
        leave = fmin(leave, fmax(a, b));
    }
    return enter < leave;
}

double inspect_inside(const struct vkn_scene *scene, size_t stride)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    size_t rays = 0, hits = 0;
    for (size_t n = 0; n < train->camera_count; n += stride) {
        const struct scene_camera *view = &train->cameras[n];
        for (int i = 0; i < RAY_GRID * RAY_GRID; i++) {
            int column = i % RAY_GRID, row = i / RAY_GRID;
            double x = (column + 0.5) / RAY_GRID * view->width;
            double y = (row + 0.5) / RAY_GRID * view->height;
            double origin[3], direction[3];
            if (!scene_camera_ray(view, x, y, origin, direction))
                continue;
            rays++;
            hits += hits_cube(scene, origin, direction) ? 1 : 0;
        }
    }
    return rays > 0 ? (double)hits / (double)rays : 0;
}

/* ---- points ---------------------------------------------------------------------------------- */

/* Returns whether a training camera sees the point nearer than the start of its rays. */
static bool is_too_near(const struct inspection *inspection, const double point[3])
{
    const struct scene_split *train = &inspection->scene->splits[SCENE_TRAIN];
    for (size_t n = 0; n < train->camera_count; n++) {
        const struct scene_camera *view = &train->cameras[n];
        double x = 0, y = 0, squared = 0;
        for (int i = 0; i < 3; i++)
            squared += pow(point[i] - (double)view->pose[4 * i + 3], 2);
        if (squared < inspection->near * inspection->near &&
            scene_camera_project(view, point, &x, &y) && x >= 0 && x < view->width && y >= 0 &&
            y < view->height)
            return true;
    }
    return false;
}

static vkn_status measure_points(struct inspection *inspection)
{
    const struct scene_findings *findings = inspection->findings;
    size_t count = findings->point_count, inside = 0, near = 0, tested = 0;
    if (count == 0)
        return VKN_OK;
    double *values = base_alloc(count, sizeof(*values));
    if (values == NULL)
        return VKN_ERROR;
    size_t outliers = (size_t)(OUTERMOST * (double)count);
    for (int i = 0; i < 3; i++) {
        for (size_t n = 0; n < count; n++)
            values[n] = findings->points[n][i];
        base_sort(values, count);
        inspection->point_box[i] =
            (struct inspect_range){values[outliers], values[count - 1 - outliers]};
    }
    free(values);
    for (size_t n = 0; n < count; n++)
        inside += in_cube(inspection->scene, findings->points[n]) ? 1 : 0;
    for (size_t n = 0; n < count; n += 1 + count / MANY_POINTS, tested++)
        near += is_too_near(inspection, findings->points[n]) ? 1 : 0;
    inspection->points_inside = (double)inside / (double)count;
    inspection->points_near = (double)near / (double)tested;
    return VKN_OK;
}

/* ---- masks ----------------------------------------------------------------------------------- */

struct masks {
    const struct inspection *inspection;
    double *hidden; /* [view] hidden fraction; negative: no mask */
};

static vkn_status measure_mask(void *context, size_t index)
{
    const struct masks *masks = context;
    const struct scene_camera *view = inspect_view(masks->inspection->scene, index, NULL);
    uint32_t width = 0, height = 0;
    uint8_t *used = NULL;
    masks->hidden[index] = -1;
    if (view->mask_path == NULL)
        return VKN_OK;
    bool transposed = view->applied_orientation >= IMAGE_FIRST_TRANSPOSED;
    BASE_TRY(scene_image_size(view->image_path, transposed ? &height : &width,
                              transposed ? &width : &height));
    BASE_TRY(mask_read(view->mask_path, view->mask_inverted, view->applied_orientation, width,
                       height, &used));
    size_t pixels = (size_t)width * height, hidden = 0;
    for (size_t i = 0; i < pixels; i++)
        hidden += used[i] == 0 ? 1 : 0;
    free(used);
    masks->hidden[index] = (double)hidden / (double)pixels;
    return VKN_OK;
}

static vkn_status measure_masks(struct inspection *inspection)
{
    struct masks masks = {inspection, base_alloc(inspection->views, sizeof(double))};
    if (masks.hidden == NULL)
        return VKN_ERROR;
    vkn_status status = base_parallel(inspection->views, measure_mask, &masks, NULL);
    for (size_t n = 0; n < inspection->views && status == VKN_OK; n++) {
        if (masks.hidden[n] < 0)
            continue;
        inspection->masked_views++;
        inspection->mean_hidden += masks.hidden[n];
        inspection->unused_views += masks.hidden[n] >= 1 ? 1 : 0;
    }
    if (inspection->masked_views > 0)
        inspection->mean_hidden /= (double)inspection->masked_views;
    free(masks.hidden);
    return status;
}

/* ---- all measurements ------------------------------------------------------------------------ */

static vkn_status measure(struct inspection *inspection)
{
    const struct vkn_scene *scene = inspection->scene;
    for (unsigned split = 0; split < SCENE_SPLITS; split++)
        inspection->views += scene->splits[split].camera_count;
    BASE_TRY(measure_sizes(inspection));
    measure_lenses(inspection);
    measure_spread(inspection);
    BASE_TRY(measure_focus(inspection));
    inspection->rays_inside = inspect_inside(scene, 1);
    for (int i = 0; i < 3; i++)
        inspection->from_origin =
            hypot(inspection->from_origin, (0.5 - scene->offset[i]) / scene->scale);
    BASE_TRY(measure_points(inspection));
    BASE_TRY(measure_masks(inspection));
    BASE_TRY(consistency_measure(scene, &inspection->consistency));
    return inspect_problems(inspection);
}

vkn_status inspect_scene(const struct vkn_scene *scene, const struct scene_findings *findings,
                         double near, struct inspection **inspection)
{
    *inspection = base_alloc(1, sizeof(**inspection));
    if (*inspection == NULL)
        return VKN_ERROR;
    **inspection = (struct inspection){.scene = scene, .findings = findings, .near = near};
    vkn_status status = measure(*inspection);
    if (status != VKN_OK)
        inspect_free(inspection);
    return status;
}

struct inspect_overview inspect_overview(const struct inspection *inspection)
{
    struct inspect_overview overview = {
        .scene = inspection->scene,
        .findings = inspection->findings,
        .views = inspection->views,
        .problems = inspection->problem_count,
        .width = inspection->sizes[0].width,
        .height = inspection->sizes[0].height,
        .sizes_differ = inspection->size_count > 1,
        .fov = {inspection->fov_x.high, inspection->fov_y.high},
        .has_focus = inspection->has_focus,
    };
    for (int i = 0; i < 3; i++) {
        overview.low[i] = inspection->box[i].low;
        overview.high[i] = inspection->box[i].high;
        overview.focus[i] = inspection->focus[i];
    }
    return overview;
}

void inspect_free(struct inspection **inspection)
{
    struct inspection *freed = *inspection;
    if (freed == NULL)
        return;
    for (size_t i = 0; i < freed->problem_count; i++) {
        free(freed->problems[i].problem);
        free(freed->problems[i].advice);
    }
    consistency_free(&freed->consistency);
    free(freed->problems);
    free(freed->sizes);
    free(freed);
    *inspection = NULL;
}
