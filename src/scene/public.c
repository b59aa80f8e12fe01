/* Implements the public functions of scenes and cameras, in the dataset's units. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/camera_path.h"

/* ---- scenes ---------------------------------------------------------------------------------- */

vkn_status scene_check_unit(const char *what, double unit_length)
{
    return unit_length == 0 ? VKN_OK
                            : base_check_range(what, "unit_length", unit_length, 1e-9, 1e9);
}

struct scene_options scene_options_of(const char *path, const struct vkn_config *config)
{
    struct scene_options options = {
        .path = path,
        .format = config->scene.format,
        .downscale = config->scene.downscale,
        .scale = config->scene.scale,
        .aabb_scale = config->scene.aabb_scale,
        .is_fixed = config->scene.fixed_transform,
        .unit_length = config->scene.unit_length,
        .test_views = config->scene.test_views,
    };
    memcpy(options.offset, config->scene.offset, sizeof options.offset);
    return options;
}

vkn_status vkn_scene_open(const char *path, const vkn_config *given, vkn_scene **scene)
{
    BASE_C_LOCALE;
    BASE_NEED(scene);
    *scene = NULL;
    BASE_NEED(path);
    const struct scene_options options = scene_options_of(path, config_or_default(given));
    return scene_open(&options, scene);
}

void vkn_scene_close(vkn_scene **scene)
{
    if (scene)
        scene_close(scene);
}

vkn_status scene_find_split(const vkn_scene *scene, enum vkn_split split,
                            enum scene_split_name *name)
{
    static const enum scene_split_name order[] = {SCENE_TEST, SCENE_VAL, SCENE_TRAIN};
    if ((unsigned)split > VKN_SPLIT_TEST)
        return base_fail(VKN_BAD_INPUT, "split: %u is none of its values, 0 to %u", (unsigned)split,
                         (unsigned)VKN_SPLIT_TEST);
    if (split != VKN_SPLIT_DEFAULT)
        *name = split == VKN_SPLIT_TEST  ? SCENE_TEST
                : split == VKN_SPLIT_VAL ? SCENE_VAL
                                         : SCENE_TRAIN;
    for (size_t i = 0; i < BASE_COUNT(order) && split == VKN_SPLIT_DEFAULT; i++) {
        *name = order[i];
        if (scene->splits[*name].camera_count > 0)
            break;
    }
    if (scene->splits[*name].camera_count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: there are no %s views", scene->path,
                         scene_split_names[*name]);
    return VKN_OK;
}

size_t vkn_scene_view_count(const vkn_scene *scene, enum vkn_split split)
{
    enum scene_split_name name;
    BASE_KEEP_ERROR;
    return scene && scene_find_split(scene, split, &name) == VKN_OK
               ? scene->splits[name].camera_count
               : 0;
}

vkn_status scene_find_view(const vkn_scene *scene, enum vkn_split split, size_t view,
                           enum scene_split_name *name)
{
    BASE_TRY(scene_find_split(scene, split, name));
    size_t count = scene->splits[*name].camera_count;
    if (view >= count)
        return base_fail(VKN_BAD_INPUT, "%s: view %zu: there are %zu %s views, 0 to %zu",
                         scene->path, view, count, scene_split_names[*name], count - 1);
    return VKN_OK;
}

const char *vkn_scene_image_file(const vkn_scene *scene, enum vkn_split split, size_t view)
{
    enum scene_split_name name;
    BASE_KEEP_ERROR;
    return scene && scene_find_view(scene, split, view, &name) == VKN_OK
               ? scene->splits[name].cameras[view].image_path
               : NULL;
}

vkn_status vkn_scene_camera(const vkn_scene *scene, enum vkn_split split, size_t view,
                            struct vkn_camera *camera)
{
    BASE_NEED(scene);
    BASE_NEED(camera);
    enum scene_split_name name;
    BASE_TRY(scene_find_view(scene, split, view, &name));
    const struct vkn_camera converted =
        scene_camera_to_public(&scene->splits[name].cameras[view], scene->scale, scene->offset);
    const struct vkn_camera *found = &converted;
    return BASE_FILL(vkn_camera, found, camera, pose);
}

vkn_status vkn_scene_orbit_camera(const vkn_scene *scene, uint32_t view, uint32_t count,
                                  struct vkn_camera *camera)
{
    BASE_C_LOCALE;
    BASE_NEED(scene);
    BASE_NEED(camera);
    BASE_TRY(base_check_range(__func__, "count", count, 1, SCENE_MAX_FRAMES));
    BASE_TRY(base_check_range(__func__, "view", view, 0, (double)count - 1));
    struct scene_camera *cameras = NULL;
    BASE_TRY(scene_orbit(scene, count, &cameras));
    const struct vkn_camera converted =
        scene_camera_to_public(&cameras[view], scene->scale, scene->offset);
    const struct vkn_camera *found = &converted;
    free(cameras);
    return BASE_FILL(vkn_camera, found, camera, pose);
}

/* ---- cameras --------------------------------------------------------------------------------- */

struct vkn_camera scene_camera_to_public(const struct scene_camera *camera, double scale,
                                         const double offset[3])
{
    struct vkn_camera made = {
        .width = camera->width,
        .height = camera->height,
        .focal_x = (double)camera->focal_x,
        .focal_y = (double)camera->focal_y,
        .center_x = (double)camera->center_x,
        .center_y = (double)camera->center_y,
        .lens = camera->lens,
        .time = (double)camera->time,
    };
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        lens_set_coefficient(&made, i, (double)camera->distortion[i]);
    for (size_t i = 0; i < 12; i++)
        made.pose[i] = (double)camera->pose[i];
    for (size_t row = 0; row < 3; row++)
        made.pose[4 * row + 3] =
            ((double)camera->pose[4 * row + 3] - scene_round_number(offset[row], offset)) /
            scene_round_number(scale, offset);
    return made;
}

static bool is_finite(const struct vkn_camera *camera)
{
    bool finite = isfinite(camera->focal_x) && isfinite(camera->focal_y) &&
                  isfinite(camera->center_x) && isfinite(camera->center_y);
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        finite = finite && isfinite(lens_coefficient(camera, i));
    return finite;
}

static vkn_status refuse_infinite(const struct vkn_camera *camera)
{
    struct base_text text = {0};
    base_text_add(&text, "focal_x %g, focal_y %g, center_x %g, center_y %g", camera->focal_x,
                  camera->focal_y, camera->center_x, camera->center_y);
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        base_text_add(&text, ", %s %g", lens_coefficient_names[i], lens_coefficient(camera, i));
    vkn_status status =
        base_fail(VKN_BAD_INPUT, "camera: %s: not all are finite", text.failed ? "" : text.data);
    free(text.data);
    return status;
}

#define SQUARE_TOLERANCE 1e-3

/* Returns whether the first three columns are orthonormal and the fourth is finite. */
static bool is_pose(const double pose[12])
{
    bool good = true;
    for (size_t a = 0; a < 4; a++)
        for (size_t b = a; b < 4; b++) {
            double sum = pose[a] * pose[b] + pose[4 + a] * pose[4 + b] + pose[8 + a] * pose[8 + b];
            double wanted = a == b ? 1.0 : 0.0;
            good &= b == 3 ? isfinite(sum) : fabs(sum - wanted) <= SQUARE_TOLERANCE;
        }
    return good;
}

static vkn_status check_camera(const struct vkn_camera *camera)
{
    if (camera->width == 0 || camera->height == 0)
        return base_fail(VKN_BAD_INPUT, "camera: width and height: %u x %u pixels: must not be 0",
                         camera->width, camera->height);
    bool is_known = (unsigned)camera->lens < SCENE_LENSES;
    bool is_full = is_known && lens_kinds[camera->lens].panoramic && camera->focal_x == 0.0 &&
                   camera->focal_y == 0.0;
    if (!is_finite(camera))
        return refuse_infinite(camera);
    if ((camera->focal_x <= 0.0 && !is_full) || camera->focal_y < 0.0)
        return base_fail(VKN_BAD_INPUT, "camera: focal_x %g, focal_y %g: must be positive",
                         camera->focal_x, camera->focal_y);
    BASE_TRY(base_check_choice("camera", "lens", (unsigned)camera->lens, SCENE_LENSES - 1));
    if (!(camera->time >= 0.0 && camera->time <= 1.0))
        return base_fail(VKN_BAD_INPUT, "camera: time: %g is not from 0 to 1", camera->time);
    if (!is_pose(camera->pose))
        return base_fail(VKN_BAD_INPUT,
                         "camera: pose: must be finite; its first three columns must be of unit "
                         "length and at right angles, to %g",
                         SQUARE_TOLERANCE);
    return VKN_OK;
}

vkn_status scene_read_camera(const struct vkn_camera *given, struct vkn_camera *camera)
{
    BASE_TRY(BASE_READ("vkn_camera", vkn_camera, given, camera, pose));
    BASE_TRY(check_camera(camera));
    if (camera->focal_x == 0.0) {
        camera->focal_x = lens_focal_panorama(camera->width, 0);
        camera->focal_y = lens_focal_panorama(camera->height, 1);
    }
    if (camera->focal_y == 0.0)
        camera->focal_y = camera->focal_x;
    if (camera->center_x == 0.0 && camera->center_y == 0.0) {
        camera->center_x = 0.5 * camera->width;
        camera->center_y = 0.5 * camera->height;
    }
    return VKN_OK;
}

vkn_status scene_camera_from_public(const struct vkn_camera *given, double scale,
                                    const double offset[3], struct scene_camera *camera)
{
    struct vkn_camera read;
    BASE_TRY(scene_read_camera(given, &read));
    *camera = (struct scene_camera){
        .width = read.width,
        .height = read.height,
        .focal_x = (float)read.focal_x,
        .focal_y = (float)read.focal_y,
        .center_x = (float)read.center_x,
        .center_y = (float)read.center_y,
        .lens = read.lens,
        .time = (float)read.time,
    };
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        camera->distortion[i] = (float)lens_coefficient(&read, i);
    for (size_t i = 0; i < 12; i++)
        camera->pose[i] = (float)read.pose[i];
    const double position[3] = {read.pose[3], read.pose[7], read.pose[11]};
    double converted[3];
    scene_position_from_public(position, scale, offset, converted);
    for (size_t row = 0; row < 3; row++)
        camera->pose[4 * row + 3] = (float)converted[row];
    return VKN_OK;
}

vkn_status vkn_camera_look_at(struct vkn_camera *camera, const double *eye, const double *target,
                              const double *up)
{
    BASE_NEED(camera);
    BASE_NEED(eye);
    BASE_NEED(target);
    BASE_NEED(up);
    for (int i = 0; i < 3; i++)
        if (!isfinite(eye[i]) || !isfinite(target[i]) || !isfinite(up[i]))
            return base_fail(VKN_BAD_INPUT,
                             "%s: eye, target, up: %g, %g and %g along %c are not all finite",
                             __func__, eye[i], target[i], up[i], "xyz"[i]);
    const double back[3] = {eye[0] - target[0], eye[1] - target[1], eye[2] - target[2]};
    if (!(vector_dot(back, back) > 0.0) || !(vector_dot(up, up) > 0.0))
        return base_fail(VKN_BAD_INPUT, "%s: the target equals the eye, or `up` is zero", __func__);
    look_along(eye, back, up, camera->pose);
    return VKN_OK;
}
