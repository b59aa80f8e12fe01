/* Opens the two scenes of a refinement, reads refined cameras, and measures movements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "refine/internal.h"

#define MOST_TESTED  64u  /* views that check_views tests */
#define ROUNDED      1e-3 /* pixels: a movement by the rounding of poses in files */
/* Rounding of intrinsics, in parts of the focal length; of coefficients. */
#define ROUNDED_LENS 1e-6

/* ---- the original ---------------------------------------------------------------------------- */

static vkn_status open_scene(const char *path, const struct vkn_config *config,
                             enum vkn_test_views test_views, struct vkn_scene **scene)
{
    struct vkn_config own = *config;
    own.scene.test_views = test_views;
    return vkn_scene_open(path, &own, scene);
}

/* Checks that the scene's format can hold refined lenses, before any training. */
static vkn_status check_format(const struct refinement *r, const struct vkn_scene *scene)
{
    enum vkn_scene_format format = scene->format;
    if (r->params->cameras != NULL || r->config.scene.refine <= VKN_REFINEMENT_POSES ||
        format == VKN_SCENE_TRANSFORMS || format == VKN_SCENE_COLMAP)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "scene.refine: the format of %s holds no lens distortion: refine the poses, "
                     "or convert the scene to a transforms.json",
                     r->paths[REFINE_ORIGINAL]);
}

/* Checks that there is something to refine: two views or more, that look at the reconstructed cube.
 */
static vkn_status check_views(const struct refinement *r, const struct vkn_scene *scene)
{
    const struct scene_split *all = &scene->splits[SCENE_TRAIN];
    BASE_TRY(check_format(r, scene));
    if (all->camera_count < 2)
        return base_fail(VKN_BAD_INPUT, "%s: a single view: there is nothing to refine",
                         r->paths[REFINE_ORIGINAL]);
    if (inspect_inside(scene, all->camera_count / MOST_TESTED + 1) > 0)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: no view sees anything of the cube that is reconstructed: check scale, "
                     "offset and aabb_scale (vknerf info)",
                     r->paths[REFINE_ORIGINAL]);
}

/* All trainings use the space of the original scene: a space measured on other cameras would change
 * the resolution, too. Scenes with cameras from elsewhere have axes and a scale of their own. */
static void fix_space(struct refinement *r)
{
    const struct vkn_scene *scene = r->split;
    r->config.scene.format = scene->format;
    r->config.scene.scale = scene->scale;
    memcpy(r->config.scene.offset, scene->offset, sizeof r->config.scene.offset);
    r->config.scene.aabb_scale = scene->aabb_scale;
    r->config.scene.fixed_transform = true;
}

/* Opens the scene with the test views of its files, or else with every 8th view for testing. */
static vkn_status open_split(struct refinement *r)
{
    const char *path = r->paths[REFINE_ORIGINAL];
    enum vkn_test_views *test_views = &r->config.scene.test_views;
    if (*test_views == VKN_TEST_VIEWS_NONE)
        return base_fail(VKN_BAD_INPUT, "scene.test_views: none: test views have to tell which "
                                        "cameras are better");
    BASE_TRY(open_scene(path, &r->config, *test_views, &r->split));
    if (r->split->splits[SCENE_TEST].camera_count > 0)
        return VKN_OK;
    *test_views = VKN_TEST_VIEWS_EIGHTH;
    base_log(BASE_LOG_INFO, "%s: its files name no test views: every 8th view is one", path);
    scene_close(&r->split);
    return open_scene(path, &r->config, *test_views, &r->split);
}

/* Finds the index of a frame among the test views; SIZE_MAX: it is none. */
static size_t find_test(const struct refinement *r, const struct scene_camera *camera)
{
    const struct scene_split *test = &r->split->splits[SCENE_TEST];
    for (size_t i = 0; i < test->camera_count; i++)
        if (test->cameras[i].file == camera->file && test->cameras[i].frame == camera->frame)
            return i;
    return SIZE_MAX;
}

vkn_status refine_open_original(struct refinement *r)
{
    BASE_TRY(open_split(r));
    if (r->params->cameras == NULL)
        fix_space(r);
    struct vkn_scene **all = &r->scenes[REFINE_ORIGINAL];
    BASE_TRY(open_scene(r->paths[REFINE_ORIGINAL], &r->config, VKN_TEST_VIEWS_NONE, all));
    BASE_TRY(check_views(r, *all));
    const struct scene_split *views = &(*all)->splits[SCENE_TRAIN];
    r->views = base_alloc(views->camera_count, sizeof *r->views);
    if (r->views == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < views->camera_count; i++)
        r->views[i] = (struct refine_view){.pixels = (double)NAN,
                                           .degrees = (double)NAN,
                                           .distance = (double)NAN,
                                           .focal = (double)NAN,
                                           .psnr = (double)NAN,
                                           .test = find_test(r, &views->cameras[i])};
    return VKN_OK;
}

/* ---- refined cameras ------------------------------------------------------------------------- */

static vkn_status read_pose(const struct cJSON *view, const char *file,
                            struct scene_new_camera *camera)
{
    const cJSON *matrix = cJSON_GetObjectItemCaseSensitive(view, "transform_matrix");
    for (int i = 0; i < 12; i++) {
        const cJSON *number = cJSON_GetArrayItem(cJSON_GetArrayItem(matrix, i / 4), i % 4);
        if (!cJSON_IsNumber(number) || !isfinite(number->valuedouble))
            return base_json_fail(file, "transform_matrix", "not four rows of four numbers");
        camera->pose[i] = number->valuedouble;
    }
    return VKN_OK;
}

/* Reads a number that is stored in pixels of the image before scene.downscale, or as it is. Sets
 * *differs if it is not `given`, the scene's, by more than rounding. */
static vkn_status read_intrinsic(const struct cJSON *view, const char *file, const char *name,
                                 double given, double unit, double *value, bool *differs)
{
    BASE_TRY(base_json_number(view, name, file, true, -1e9, 1e9, value));
    *differs = *differs || fabs(*value - given) > ROUNDED_LENS * unit;
    return VKN_OK;
}

/* Reads the intrinsics, which only trainings that refine lenses change. */
static vkn_status read_lens(const struct vkn_scene *scene, const struct scene_camera *camera,
                            const struct cJSON *view, const char *file,
                            struct scene_new_camera *read)
{
#define COEFFICIENT_NAME(name) #name,
    static const char *const names[] = {SCENE_COEFFICIENTS(COEFFICIENT_NAME)};
    static const char *const axes[2][2] = {{"fl_x", "fl_y"}, {"cx", "cy"}};
    const float focal[2] = {camera->focal_x, camera->focal_y},
                center[2] = {camera->center_x, camera->center_y};
    bool *differs = &read->has_lens;
    if (cJSON_GetObjectItemCaseSensitive(view, "fl_x") == NULL)
        return VKN_OK;
    for (int i = 0; i < 2; i++) {
        double f = scene->downscale * (double)focal[i], c = scene->downscale * (double)center[i];
        BASE_TRY(read_intrinsic(view, file, axes[0][i], f, f, &read->focal[i], differs));
        BASE_TRY(read_intrinsic(view, file, axes[1][i], c, f, &read->center[i], differs));
    }
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        BASE_TRY(read_intrinsic(view, file, names[i], (double)camera->distortion[i], 1,
                                &read->distortion[i], differs));
    return VKN_OK;
}

/* Returns whether a refined lens folds over before the corners of its image, which the lens as
 * given reaches: fields trained with it would ignore the pixels beyond. */
static bool loses_corners(const struct vkn_scene *scene, const struct scene_camera *given,
                          const struct scene_new_camera *refined)
{
    struct scene_camera camera = *given;
    camera.focal_x = (float)(refined->focal[0] / scene->downscale);
    camera.focal_y = (float)(refined->focal[1] / scene->downscale);
    camera.center_x = (float)(refined->center[0] / scene->downscale);
    camera.center_y = (float)(refined->center[1] / scene->downscale);
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        camera.distortion[i] = (float)refined->distortion[i];
    return scene_camera_invertible(given) && !scene_camera_invertible(&camera);
}

static vkn_status read_movement(const struct cJSON *json, const char *file,
                                struct refine_view *view)
{
    BASE_TRY(base_json_number(json, "pixels", file, true, 0, 1e9, &view->pixels));
    BASE_TRY(base_json_number(json, "degrees", file, true, 0, 1e9, &view->degrees));
    BASE_TRY(base_json_number(json, "distance", file, true, 0, 1e9, &view->distance));
    return base_json_bool(json, "at_limit", file, false, &view->at_limit);
}

/* Reads the cameras of all views, how far they moved, and which are at their limit. */
static vkn_status read_cameras(struct refinement *r, const char *file, const struct cJSON *json,
                               struct scene_new_camera *cameras)
{
    const struct vkn_scene *scene = r->scenes[REFINE_ORIGINAL];
    const struct scene_split *views = &scene->splits[SCENE_TRAIN];
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "views"), *view;
    size_t i = 0, folded = 0;
    if ((size_t)cJSON_GetArraySize(list) != views->camera_count)
        return base_json_fail(file, "views", "not as many as the scene's %zu views",
                              views->camera_count);
    cJSON_ArrayForEach (view, list) {
        cameras[i].file = views->cameras[i].file;
        cameras[i].frame = views->cameras[i].frame;
        BASE_TRY(read_pose(view, file, &cameras[i]));
        BASE_TRY(read_lens(scene, &views->cameras[i], view, file, &cameras[i]));
        if (cameras[i].has_lens && loses_corners(scene, &views->cameras[i], &cameras[i])) {
            cameras[i].has_lens = false;
            folded++;
        }
        BASE_TRY(read_movement(view, file, &r->views[i]));
        r->result.limited += r->views[i].at_limit ? 1 : 0;
        i++;
    }
    if (folded > 0)
        base_log(BASE_LOG_WARNING,
                 "%s: the refined lenses of %zu of %zu views do not reach the corners of their "
                 "images: these views keep their lenses; refine longer, or with a lower "
                 "refine.initial_rate",
                 r->paths[REFINE_ORIGINAL], folded, views->camera_count);
    return VKN_OK;
}

bool refine_rolls_back(const struct refine_view *view)
{
    return view->at_limit || view->misfits;
}

/* Returns whether a view that is not rolled back has the lens of view n. */
static bool is_lens_shared(const struct refinement *r, size_t n)
{
    const struct scene_split *views = &r->scenes[REFINE_ORIGINAL]->splits[SCENE_TRAIN];
    for (size_t i = 0; i < views->camera_count; i++)
        if (!refine_rolls_back(&r->views[i]) &&
            scene_same_lens(&views->cameras[i], &views->cameras[n]))
            return true;
    return false;
}

/* Takes the poses of views that are rolled back out of the cameras, and lenses that only such views
 * have. What is left of `count` cameras moves to the beginning; *count becomes their number. */
static vkn_status roll_back(struct refinement *r, struct scene_new_camera *cameras, size_t *count)
{
    const struct vkn_scene *scene = r->scenes[REFINE_ORIGINAL];
    const struct scene_camera *given = scene->splits[SCENE_TRAIN].cameras;
    const size_t views = *count;
    *count = 0;
    for (size_t i = 0; i < views; i++) {
        if (refine_rolls_back(&r->views[i])) {
            r->result.rolled_back++;
            if (!cameras[i].has_lens || !is_lens_shared(r, i))
                continue;
            const struct vkn_camera original =
                scene_camera_to_public(&given[i], scene->scale, scene->offset);
            memcpy(cameras[i].pose, original.pose, sizeof original.pose);
        }
        cameras[(*count)++] = cameras[i];
    }
    if (r->result.rolled_back < views)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT,
                     "%s: all %zu views are at refine.limit or do not fit: raise refine.limit, "
                     "refine on smaller images first (--downscale), or take out images that do "
                     "not belong together",
                     r->paths[REFINE_ORIGINAL], views);
}

/* A scene that was refined before links to its results. */
static void remove_result(const struct refinement *r, const char *name)
{
    char *path = base_path_join(r->out, name);
    if (path)
        (void)remove(path);
    free(path);
}

/* Writes the scene, once: files say that it was begun, and that it is complete. */
static vkn_status write_scene(struct refinement *r, const struct scene_new_camera *cameras,
                              size_t count)
{
    char *begun = base_path_join(r->work, "scene_is_begun");
    char *done = base_path_join(r->work, "scene_is_written");
    const struct vkn_scene *scene = r->scenes[REFINE_ORIGINAL];
    vkn_status status = begun && done ? VKN_OK : VKN_ERROR;
    bool is_done = status == VKN_OK && base_file_exists(done);
    bool again = status == VKN_OK && base_file_exists(begun);
    if (status == VKN_OK && !is_done)
        status = base_file_replace(begun, "", 0);
    if (status == VKN_OK && !is_done)
        status = scene_write(scene, cameras, count, r->out, again);
    if (status == VKN_OK && !is_done) {
        remove_result(r, REFINE_VERDICT);
        remove_result(r, REFINE_REPORT);
        status = base_file_replace(done, "", 0);
    }
    free(begun);
    free(done);
    return status;
}

vkn_status refine_write_scene(struct refinement *r, const char *folder)
{
    char *file = base_path_join(folder, "cameras.json");
    size_t count = r->scenes[REFINE_ORIGINAL]->splits[SCENE_TRAIN].camera_count;
    struct scene_new_camera *cameras = base_alloc(count, sizeof *cameras);
    cJSON *json = NULL;
    vkn_status status =
        file && cameras ? base_json_read(file, REFINE_JSON_LIMIT, &json) : VKN_ERROR;
    if (status == VKN_OK)
        status = read_cameras(r, file, json, cameras);
    if (status == VKN_OK)
        status = roll_back(r, cameras, &count);
    if (status == VKN_OK)
        status = write_scene(r, cameras, count);
    cJSON_Delete(json);
    free(cameras);
    free(file);
    return status;
}

/* ---- the other cameras ----------------------------------------------------------------------- */

/* Compares file names without folders and extensions. */
static bool same_image(const struct scene_camera *a, const struct scene_camera *b)
{
    const char *names[2] = {base_path_name(a->image_path), base_path_name(b->image_path)};
    size_t length[2];
    for (int i = 0; i < 2; i++) {
        const char *dot = strrchr(names[i], '.');
        length[i] = dot ? (size_t)(dot - names[i]) : strlen(names[i]);
    }
    return length[0] == length[1] && memcmp(names[0], names[1], length[0]) == 0;
}

static vkn_status check_same_images(const struct refinement *r, const struct scene_split *a,
                                    const struct scene_split *b, const char *what)
{
    if (a->camera_count != b->camera_count)
        return base_fail(VKN_BAD_INPUT,
                         "%s: it has %zu %s, %s has %zu: cameras of the same images "
                         "are compared (scene.test_views=eighth sets the test views)",
                         r->paths[REFINE_OTHER], b->camera_count, what, r->paths[REFINE_ORIGINAL],
                         a->camera_count);
    for (size_t i = 0; i < a->camera_count; i++)
        if (!same_image(&a->cameras[i], &b->cameras[i]))
            return base_fail(VKN_BAD_INPUT,
                             "%s: %s, where %s has %s: cameras of the same images "
                             "are compared",
                             r->paths[REFINE_OTHER], b->cameras[i].image_path,
                             r->paths[REFINE_ORIGINAL], a->cameras[i].image_path);
    return VKN_OK;
}

/* Returns the angle between two rotations, in degrees, from |A - B| = 2 sqrt(2) sin(angle / 2). */
static double angle_between(const float a[12], const float b[12])
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            sum += pow((double)a[4 * i + j] - (double)b[4 * i + j], 2);
    return 360 / M_PI * asin(fmin(sqrt(sum / 8), 1));
}

static double distance_between(const float a[12], const float b[12])
{
    double sum = 0;
    for (int i = 0; i < 3; i++)
        sum += pow((double)a[4 * i + 3] - (double)b[4 * i + 3], 2);
    return sqrt(sum);
}

/* Measures how far each view has moved that is not rolled back. VKN_BAD_INPUT: none has. */
static vkn_status measure_movements(struct refinement *r)
{
    const struct scene_split *before = &r->scenes[REFINE_ORIGINAL]->splits[SCENE_TRAIN];
    const struct scene_split *after = &r->scenes[REFINE_OTHER]->splits[SCENE_TRAIN];
    double sum = 0;
    for (size_t i = 0; i < before->camera_count; i++) {
        const struct scene_camera *a = &before->cameras[i], *b = &after->cameras[i];
        struct refine_view *view = &r->views[i];
        view->focal = (double)b->focal_x / (double)a->focal_x;
        if (refine_rolls_back(view))
            continue;
        view->pixels = scene_pixel_movement(before, i, b);
        view->degrees = angle_between(a->pose, b->pose);
        view->distance = distance_between(a->pose, b->pose) / r->split->scale;
        sum += view->pixels;
    }
    r->result.pixels = sum / (double)(before->camera_count - r->result.rolled_back);
    if (r->result.pixels > ROUNDED)
        return VKN_OK;
    if (r->result.rolled_back > 0)
        return base_fail(VKN_BAD_INPUT,
                         "%s: %zu of %zu views are at refine.limit or do not fit, and the others "
                         "have not moved: raise refine.limit, into another folder",
                         r->paths[REFINE_ORIGINAL], r->result.rolled_back, before->camera_count);
    return base_fail(VKN_BAD_INPUT,
                     "%s: no view has moved: train for longer (--steps, --seconds) into another "
                     "folder, or with a lower refine.start",
                     r->paths[REFINE_ORIGINAL]);
}

/* Compares the test views of scenes from elsewhere, which decide the verdict. */
static vkn_status check_same_split(const struct refinement *r)
{
    struct vkn_scene *other = NULL;
    BASE_TRY(open_scene(r->paths[REFINE_OTHER], &r->config, r->config.scene.test_views, &other));
    vkn_status status = check_same_images(r, &r->split->splits[SCENE_TEST],
                                          &other->splits[SCENE_TEST], "test views");
    scene_close(&other);
    return status;
}

vkn_status refine_open_other(struct refinement *r)
{
    struct vkn_scene **other = &r->scenes[REFINE_OTHER];
    const struct vkn_scene *original = r->scenes[REFINE_ORIGINAL];
    BASE_TRY(open_scene(r->paths[REFINE_OTHER], &r->config, VKN_TEST_VIEWS_NONE, other));
    BASE_TRY(check_same_images(r, &original->splits[SCENE_TRAIN], &(*other)->splits[SCENE_TRAIN],
                               "views"));
    return r->params->cameras ? check_same_split(r) : measure_movements(r);
}
