/* Lists the problems of a scene, with advice. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/inspect.h"
#include "scene/reader.h"

/* Cameras count as coplanar or collinear when their spread across the plane or line is below this
 * fraction of their largest spread. */
#define FLAT           0.01
#define LEAST_SPREAD   0.004 /* smallest spread of the cameras, as a fraction of the cube's side */
#define LEAST_POINTS   0.7   /* smallest fraction of the points inside of the cube */
#define MANY_NEAR      0.02  /* largest fraction of the points that lie before the rays' start */
#define WIDEST         150 /* degrees; a wider perspective lens probably has a wrong focal length */
#define NARROWEST      3
#define FAR_OFF_CENTER 0.25 /* as a fraction of the image's size */
#define COARSE_STEP    1e-3 /* smallest visible rounding step of positions, in unit cube sides */
#define LEAST_ROUNDED  4    /* fewest views for which multiples of a step are no coincidence */

/* ---- masks ----------------------------------------------------------------------------------- */

/* Sets *text to the path of the scene's folder of that name; NULL: there is none. */
static vkn_status find_folder(const struct vkn_scene *scene, const char *name, char **text)
{
    char *folder = NULL;
    BASE_TRY(base_is_folder(scene->path) ? scene_capture_folder(scene->path, &folder) : VKN_OK);
    if (folder == NULL)
        folder = base_path_folder(scene->path);
    char *path = folder != NULL ? base_path_join(folder, name) : NULL;
    free(folder);
    if (path == NULL)
        return VKN_ERROR;
    bool exists = base_is_folder(path);
    *text = exists ? path : NULL;
    if (!exists)
        free(path);
    return VKN_OK;
}

/* Reports a folder of masks that no view uses, except `mask` of NSVF, which NSVF ignores too. */
static vkn_status check_unused_masks(struct inspection *inspection)
{
    const struct vkn_scene *scene = inspection->scene;
    bool has_mask_paths = scene->format == VKN_SCENE_TRANSFORMS;
    char *folder = NULL;
    if (inspection->masked_views > 0)
        return VKN_OK;
    BASE_TRY(find_folder(scene, "masks", &folder));
    if (folder == NULL && scene->format != VKN_SCENE_NSVF)
        BASE_TRY(find_folder(scene, "mask", &folder));
    if (folder == NULL)
        return VKN_OK;
    vkn_status status = inspect_add_problem(
        inspection,
        has_mask_paths
            ? "nothing, if they are not meant to be used; else name each in the mask_path of "
              "its frame"
            : "nothing, if they are not meant to be used; else give each the name of its image, "
              "in a folder masks",
        "%s: no view has a mask of this folder", folder);
    free(folder);
    return status;
}

/* ---- images ---------------------------------------------------------------------------------- */

static vkn_status check_images(struct inspection *inspection)
{
    const struct scene_findings *findings = inspection->findings;
    if (findings->broken > 0)
        BASE_TRY(inspect_add_problem(
            inspection, "restore the files, or take these frames out; training refuses the scene",
            "%zu frames are left out because of their image or mask; the first: %s",
            findings->broken, findings->first_broken != NULL ? findings->first_broken : ""));
    if (findings->missing > 0)
        BASE_TRY(inspect_add_problem(inspection,
                                     "nothing, if they were deleted for being blurred; training "
                                     "leaves them out as well",
                                     "%zu frames have no image", findings->missing));
    BASE_TRY(inspect_unposed(inspection));
    if (findings->orientation_unknown != NULL)
        BASE_TRY(inspect_add_problem(inspection,
                                     "nothing, if poses were found on the pictures as they are "
                                     "stored, as COLMAP, nerfstudio and instant-ngp read "
                                     "them; else turn the files upright, as vknerf prepare does",
                                     "%s", findings->orientation_unknown));
    if (findings->others != NULL)
        BASE_TRY(inspect_add_problem(
            inspection,
            "merge them with COLMAP (model_merger), or name the one to train on as the scene, "
            "SCENE/sparse/0",
            "several sparse models: %s", findings->others));
    if (inspection->size_count > 1)
        BASE_TRY(inspect_add_problem(
            inspection,
            "check that every view has the intrinsics of its own size (w, h, fl_x, ...)",
            "images of %zu sizes: %zu of %ux%u, %zu of %ux%u%s", inspection->size_count,
            inspection->sizes[0].views, inspection->sizes[0].width, inspection->sizes[0].height,
            inspection->sizes[1].views, inspection->sizes[1].width, inspection->sizes[1].height,
            inspection->size_count > 2 ? ", ..." : ""));
    if (inspection->unused_views > 0)
        BASE_TRY(inspect_add_problem(inspection,
                                     "masks are bright where pixels count (dynamic_mask_NAME.png: "
                                     "where they do not); invert them, or take the views out",
                                     "the masks of %zu views hide everything",
                                     inspection->unused_views));
    return check_unused_masks(inspection);
}

/* Reports unread keys that are similar to known ones. */
static vkn_status check_keys(struct inspection *inspection)
{
    const cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, inspection->findings->unread) {
        const cJSON *meant = cJSON_GetObjectItemCaseSensitive(entry, "meant");
        if (meant != NULL)
            BASE_TRY(inspect_add_problem(
                inspection, "correct its name, or take it out",
                "%s: %.64s: not read; did you mean %s?",
                cJSON_GetObjectItemCaseSensitive(entry, "file")->valuestring,
                cJSON_GetObjectItemCaseSensitive(entry, "key")->valuestring, meant->valuestring));
    }
    return VKN_OK;
}

/* Reports different times, which only dynamic models use. */
static vkn_status check_times(struct inspection *inspection)
{
    if (!inspection->scene->dynamic)
        return VKN_OK;
    return inspect_add_problem(inspection,
                               "nothing, if what they show does not move; else train --model "
                               "dynamic, or use only the frames of one time",
                               "frames have different times: the scene may move, and most models "
                               "do not");
}

static vkn_status check_splits(struct inspection *inspection)
{
    const struct scene_split *splits = inspection->scene->splits;
    if (splits[SCENE_TRAIN].camera_count < 3)
        BASE_TRY(inspect_add_problem(inspection, "add pictures; about twenty are a good start",
                                     "only %zu views to train on",
                                     splits[SCENE_TRAIN].camera_count));
    const struct scene_reader *reader = reader_of(inspection->scene->format);
    if (splits[SCENE_TEST].camera_count == 0 && splits[SCENE_VAL].camera_count == 0)
        BASE_TRY(inspect_add_problem(
            inspection, reader != NULL ? reader->hold_out : "eval with --split train",
            "no view is held out: the quality of unseen views cannot be measured"));
    return VKN_OK;
}

/* ---- lenses ---------------------------------------------------------------------------------- */

static vkn_status check_lenses(struct inspection *inspection)
{
    size_t off_center = 0;
    for (size_t n = 0; n < inspection->views; n++) {
        const struct scene_camera *view = inspect_view(inspection->scene, n, NULL);
        double x = fabs((double)view->center_x / view->width - 0.5);
        double y = fabs((double)view->center_y / view->height - 0.5);
        off_center += x > FAR_OFF_CENTER || y > FAR_OFF_CENTER ? 1 : 0;
    }
    size_t perspective = inspection->pinhole_views + inspection->lens_views[VKN_LENS_PERSPECTIVE];
    bool wide = inspection->fov_x.high > WIDEST && perspective == inspection->views;
    if (wide || inspection->fov_x.low < NARROWEST)
        BASE_TRY(inspect_add_problem(
            inspection, "focal lengths are in pixels of w x h; check fl_x or camera_angle_x",
            "the field of view is %.3g to %.3g degrees across", inspection->fov_x.low,
            inspection->fov_x.high));
    if (off_center > 0)
        BASE_TRY(inspect_add_problem(
            inspection, "cx and cy are in pixels of w x h; check that they belong to these sizes",
            "in %zu views the optical centre is far from the image's middle", off_center));
    return VKN_OK;
}

/* ---- poses ----------------------------------------------------------------------------------- */

struct ordered {
    double key; /* position along a direction that is parallel to no axis or symmetry plane */
    size_t view;
    enum scene_split_name split;
};

static int by_key(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* Returns whether two views have the same pose, up to rounding, and time. */
static bool same_pose(const struct scene_camera *a, const struct scene_camera *b, double slack)
{
    for (int i = 0; i < 12; i++)
        if (!(fabs((double)a->pose[i] - (double)b->pose[i]) <= (i % 4 == 3 ? slack : 1e-5)))
            return false;
    return a->time == b->time;
}

struct duplicates {
    size_t count, across_splits; /* pairs; pairs in different splits */
    const char *first[2];        /* images of the first pair */
};

/* Counts duplicates. Only neighbours are compared, since equal positions have nearly equal keys. */
static void find_duplicates(const struct inspection *inspection, const struct ordered *ordered,
                            double slack, struct duplicates *duplicates)
{
    for (size_t a = 0; a < inspection->views; a++) {
        const struct scene_camera *view = inspect_view(inspection->scene, ordered[a].view, NULL);
        for (size_t b = a + 1;
             b < inspection->views && ordered[b].key - ordered[a].key <= 2 * slack; b++) {
            const struct scene_camera *other =
                inspect_view(inspection->scene, ordered[b].view, NULL);
            if (!same_pose(view, other, slack))
                continue;
            if (duplicates->count++ == 0) {
                duplicates->first[0] = view->image_path;
                duplicates->first[1] = other->image_path;
            }
            duplicates->across_splits += ordered[a].split != ordered[b].split ? 1 : 0;
            break; /* ten equal views count as nine pairs */
        }
    }
}

/* Returns SCENE_TEST for validation too: the two count as one because they often share views. */
static enum scene_split_name held_out(enum scene_split_name split)
{
    return split == SCENE_VAL ? SCENE_TEST : split;
}

static vkn_status check_duplicates(struct inspection *inspection)
{
    struct ordered *ordered = base_alloc(inspection->views, sizeof(*ordered));
    struct duplicates duplicates = {0};
    if (ordered == NULL)
        return VKN_ERROR;
    double extent = 0;
    for (size_t n = 0; n < inspection->views; n++) {
        const struct scene_camera *view = inspect_view(inspection->scene, n, &ordered[n].split);
        ordered[n].split = held_out(ordered[n].split);
        ordered[n].view = n;
        ordered[n].key = 0.36 * (double)view->pose[3] + 0.48 * (double)view->pose[7] +
                         0.8 * (double)view->pose[11];
    }
    for (int i = 0; i < 3; i++)
        extent = fmax(extent, inspection->box[i].high - inspection->box[i].low);
    qsort(ordered, inspection->views, sizeof(*ordered), by_key);
    find_duplicates(inspection, ordered, fmax(1e-5 * extent, 1e-7), &duplicates);
    free(ordered);
    if (duplicates.count == 0)
        return VKN_OK;
    return inspect_add_problem(
        inspection,
        duplicates.across_splits > 0
            ? "take one of each pair out; a picture in training and test alike "
              "makes the result look better than it is"
            : "take one of each pair out, or correct its pose",
        "%zu views have the pose of another (%zu of them in another split), such as %s and %s",
        duplicates.count, duplicates.across_splits, duplicates.first[0], duplicates.first[1]);
}

static vkn_status check_arrangement(struct inspection *inspection)
{
    size_t count = inspection->scene->splits[SCENE_TRAIN].camera_count;
    const double *spread = inspection->spread;
    double distance = inspection->has_focus ? inspection->distance : 1;
    if (count >= 2 && spread[0] < 1e-4 * distance)
        return inspect_add_problem(inspection,
                                   "move between pictures: without parallax there are no depths",
                                   "all %zu training cameras are in one place", count);
    if (count >= 3 && spread[1] < FLAT * spread[0])
        return inspect_add_problem(
            inspection, "add pictures from above, below or the side",
            "all %zu training cameras are on one line: depths are uncertain across it", count);
    if (count >= 4 && spread[2] < FLAT * spread[0])
        return inspect_add_problem(
            inspection, "add pictures from outside of it, if views from there are to be rendered",
            "all %zu training cameras are in one plane", count);
    return VKN_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

static vkn_status check_points(struct inspection *inspection)
{
    const struct scene_findings *findings = inspection->findings;
    if (findings->bad_points == 0)
        return VKN_OK;
    return inspect_add_problem(
        inspection,
        findings->point_count > 0
            ? "nothing, if they are few: training leaves them out as well"
            : "write the model again, if its points matter: the training space is now measured "
              "on the cameras alone",
        "%zu of %zu points are left out; the first: %s", findings->bad_points,
        findings->bad_points + findings->point_count, findings->first_bad_point);
}

/* ---- scale ----------------------------------------------------------------------------------- */

static vkn_status check_focus(struct inspection *inspection)
{
    const double *point = inspection->focus;
    double farthest = 0, half = 0.5 * inspection->scene->aabb_scale;
    for (int i = 0; i < 3; i++)
        farthest = fmax(farthest, fabs(point[i] - 0.5));
    if (inspection->has_focus && farthest > half)
        return inspect_add_problem(
            inspection,
            "make scale smaller or aabb_scale larger, or set offset so that it lies at 0.5 0.5 0.5",
            "the cameras' focus point, (%.3g, %.3g, %.3g) in training space, is outside of the "
            "cube that is reconstructed",
            point[0], point[1], point[2]);
    if (inspection->rays_inside < INSPECT_MIN_INSIDE)
        return inspect_add_problem(
            inspection, "make aabb_scale larger, or check scale and offset",
            "only %.0f %% of what the training views see is within the cube that is reconstructed; "
            "the rest can only be background",
            100 * inspection->rays_inside);
    return VKN_OK;
}

static vkn_status check_smallness(struct inspection *inspection)
{
    double side = inspection->scene->aabb_scale;
    size_t count = inspection->scene->splits[SCENE_TRAIN].camera_count;
    if (count >= 2 && inspection->spread[0] > 0 && inspection->spread[0] < LEAST_SPREAD * side &&
        (!inspection->has_focus || inspection->distance < 10 * LEAST_SPREAD * side))
        return inspect_add_problem(
            inspection, "make scale larger or aabb_scale smaller",
            "the cameras are within %.2g of each other in a cube of side %g: most of its cells "
            "would be wasted",
            inspection->spread[0], side);
    return VKN_OK;
}

static vkn_status check_near(struct inspection *inspection)
{
    static const char advice[] =
        "make scale larger, or --set march.near_distance=... smaller in training";
    if (inspection->has_focus && inspection->distance < 2 * inspection->near)
        return inspect_add_problem(inspection, advice,
                                   "the cameras' focus point is %.3g away from them, but rays "
                                   "begin at %.3g: it is cut off",
                                   inspection->distance, inspection->near);
    if (inspection->points_near > MANY_NEAR)
        return inspect_add_problem(
            inspection, advice,
            "%.0f %% of the points are nearer to a camera than the %.3g at which rays begin",
            100 * inspection->points_near, inspection->near);
    return VKN_OK;
}

/* Returns the largest single-precision step among the cameras' coordinates, in dataset units, if
 * all coordinates with coarse steps are multiples of their step, so were rounded to it; else 0. */
static double single_precision_step(const struct inspection *inspection)
{
    const struct vkn_scene *scene = inspection->scene;
    double largest = 0;
    for (size_t n = 0; n < inspection->views; n++) {
        const float *pose = inspect_view(scene, n, NULL)->pose;
        for (int i = 0; i < 3; i++) {
            double x = ((double)pose[4 * i + 3] - scene->offset[i]) / scene->scale;
            double step = x != 0 ? ldexp(1, ilogb(x) - 23) : 0;
            if (step * scene->scale < COARSE_STEP)
                continue;
            if (fabs(x - step * round(x / step)) > step / 64)
                return 0;
            largest = fmax(largest, step);
        }
    }
    return inspection->views >= LEAST_ROUNDED ? largest : 0;
}

static vkn_status check_origin(struct inspection *inspection)
{
    if (!scene_needs_double(inspection->scene->offset))
        return VKN_OK;
    double step = single_precision_step(inspection);
    if (step > 0)
        return inspect_add_problem(
            inspection,
            "write the poses again in double precision (float64, all digits), or move the origin "
            "before they are written",
            "the scene lies far from its origin, %.4g dataset units, and the cameras' positions "
            "are rounded to single precision there: to multiples of up to %.3g",
            inspection->from_origin, step);
    return inspect_add_problem(
        inspection,
        "nothing to do for training, pictures and exports, which are exact there; for programs "
        "that read coordinates in single precision, move the origin before the scene is written",
        "the scene lies far from its origin: %.4g dataset units, %.3g times the side of the cube "
        "that is reconstructed",
        inspection->from_origin,
        inspection->from_origin * inspection->scene->scale / inspection->scene->aabb_scale);
}

static vkn_status check_scale(struct inspection *inspection)
{
    BASE_TRY(check_origin(inspection));
    BASE_TRY(check_focus(inspection));
    BASE_TRY(check_smallness(inspection));
    BASE_TRY(check_near(inspection));
    if (inspection->findings->point_count > 0 && inspection->points_inside < LEAST_POINTS)
        BASE_TRY(inspect_add_problem(
            inspection, "make aabb_scale larger or scale smaller",
            "only %.0f %% of the points are within the cube that is reconstructed",
            100 * inspection->points_inside));
    return VKN_OK;
}

vkn_status inspect_problems(struct inspection *inspection)
{
    BASE_TRY(check_images(inspection));
    BASE_TRY(check_points(inspection));
    BASE_TRY(check_keys(inspection));
    BASE_TRY(check_times(inspection));
    BASE_TRY(check_splits(inspection));
    BASE_TRY(check_lenses(inspection));
    BASE_TRY(check_duplicates(inspection));
    BASE_TRY(inspect_consistency(inspection));
    BASE_TRY(check_arrangement(inspection));
    return check_scale(inspection);
}
