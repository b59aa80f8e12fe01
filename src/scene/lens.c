/* Intrinsics: reading them from JSON, applying them to an image. */
#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/transforms.h"

#define LARGEST_PIXELS 1e7
#define PI             3.14159265358979323846

const struct transforms_lens lens_none = {.center = {NAN, NAN}};

/* The kind of lens, from COLMAP's names as nerfstudio writes them or instant-ngp's is_fisheye and
 * latlong; where none is given, that from further up holds. */
static vkn_status read_kind(const cJSON *object, const char *where, struct transforms_lens *lens)
{
    static const struct {
        const char *name;
        enum vkn_lens kind;
    } models[] = {
        {"PINHOLE", VKN_LENS_PERSPECTIVE},
        {"OPENCV", VKN_LENS_PERSPECTIVE},
        {"SIMPLE_PINHOLE", VKN_LENS_PERSPECTIVE},
        {"SIMPLE_RADIAL", VKN_LENS_PERSPECTIVE},
        {"RADIAL", VKN_LENS_PERSPECTIVE},
        {"OPENCV_FISHEYE", VKN_LENS_FISHEYE},
        {"RADIAL_FISHEYE", VKN_LENS_FISHEYE},
        {"SIMPLE_RADIAL_FISHEYE", VKN_LENS_FISHEYE},
        {"FISHEYE", VKN_LENS_FISHEYE},
        {"SIMPLE_FISHEYE", VKN_LENS_FISHEYE},
        {"EQUIRECTANGULAR", VKN_LENS_EQUIRECTANGULAR},
    };
    const char *model = NULL;
    BASE_TRY(base_json_string(object, "camera_model", where, false, &model));
    bool known = model == NULL;
    for (size_t i = 0; i < BASE_COUNT(models) && !known; i++) {
        known = strcmp(model, models[i].name) == 0;
        lens->kind = known ? models[i].kind : lens->kind;
    }
    if (!known)
        return base_json_fail(where, "camera_model",
                              "%s is not supported (PINHOLE, SIMPLE_RADIAL, RADIAL, OPENCV, "
                              "OPENCV_FISHEYE and EQUIRECTANGULAR are); undistort the images first",
                              model);
    const cJSON *fisheye = cJSON_GetObjectItemCaseSensitive(object, "is_fisheye");
    if (fisheye != NULL && !cJSON_IsBool(fisheye))
        return base_json_fail(where, "is_fisheye", "neither true nor false");
    if (fisheye != NULL && model != NULL &&
        cJSON_IsTrue(fisheye) != (lens->kind == VKN_LENS_FISHEYE))
        return base_json_fail(where, "is_fisheye", "does not agree with camera_model %s", model);
    if (fisheye != NULL && model == NULL)
        lens->kind = cJSON_IsTrue(fisheye) ? VKN_LENS_FISHEYE : VKN_LENS_PERSPECTIVE;
    return VKN_OK;
}

/* instant-ngp's name for a panorama all around. */
static vkn_status read_panorama(const cJSON *object, const char *where,
                                struct transforms_lens *lens)
{
    bool latlong = false;
    BASE_TRY(base_json_bool(object, "latlong", where, false, &latlong));
    if (latlong) {
        lens->kind = VKN_LENS_EQUIRECTANGULAR;
        lens->whole = true;
    }
    return VKN_OK;
}

/* nerfstudio trains on the pixels of a fisheye that are nearer to the image's middle. */
static vkn_status refuse_crop(const cJSON *object, const char *where,
                              const struct transforms_lens *lens)
{
    double radius = INFINITY;
    BASE_TRY(base_json_number(object, "fisheye_crop_radius", where, false, 0, 1e9, &radius));
    double corner = 0.5 * hypot(lens->size[0], lens->size[1]);
    if (lens->kind != VKN_LENS_FISHEYE || isinf(radius) || (corner > 0 && radius >= corner))
        return VKN_OK;
    return base_json_fail(where, "fisheye_crop_radius",
                          "not supported; hide what is farther from the middle by masks "
                          "(mask_path)");
}

/* nerfstudio's list in the order k1 k2 k3 k4 p1 p2, which replaces the single keys. */
static vkn_status read_params(const cJSON *object, const char *where, double values[8])
{
    static const unsigned order[] = {0, 1, 4, 5, 2, 3};
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, "distortion_params");
    if (list == NULL || cJSON_IsNull(list))
        return VKN_OK;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != (int)BASE_COUNT(order))
        return base_json_fail(where, "distortion_params", "not the 6 numbers k1 k2 k3 k4 p1 p2");
    const cJSON *item = list->child;
    for (size_t i = 0; i < BASE_COUNT(order); i++, item = item->next) {
        char element[32];
        snprintf(element, sizeof(element), "distortion_params[%zu]", i);
        BASE_TRY(base_json_value(item, element, where, -1e3, 1e3, &values[order[i]]));
    }
    return VKN_OK;
}

static vkn_status read_distortion(const cJSON *object, const char *where,
                                  struct transforms_lens *lens)
{
    /* OpenCV's k4 k5 k6 of a perspective lens make its model rational. */
    static const char *const names[] = {"k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"};
    double values[8] = {0};
    memcpy(values, lens->distortion, sizeof(lens->distortion));
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        BASE_TRY(base_json_number(object, names[i], where, false, -1e3, 1e3, &values[i]));
    BASE_TRY(read_params(object, where, values));
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        bool fisheye = lens->kind == VKN_LENS_FISHEYE, tangential = i == 2 || i == 3;
        if (values[i] != 0 && lens->kind == VKN_LENS_EQUIRECTANGULAR)
            return base_json_fail(where, names[i], "a panorama has no distortion");
        if (values[i] != 0 && (i > 5 || (fisheye ? tangential : i == 5)))
            return base_json_fail(where, names[i], "not supported unless 0 (%s are)",
                                  fisheye ? "of a fisheye lens k1, k2, k3 and k4"
                                          : "k1, k2, k3, p1 and p2");
    }
    memcpy(lens->distortion, values, sizeof(lens->distortion));
    return VKN_OK;
}

/* One axis. A focal length and an angle in the same object agree or nearly so, and the focal length
 * is the better measured; an angle alone replaces a focal length from further up. x_fov, in
 * degrees, comes before both, as in instant-ngp. *given: any of them is there. */
static vkn_status read_focal(const cJSON *object, const char *where, int axis,
                             struct transforms_lens *lens, bool *given)
{
    static const char *const focal_names[2] = {"fl_x", "fl_y"};
    static const char *const angle_names[2] = {"camera_angle_x", "camera_angle_y"};
    static const char *const degree_names[2] = {"x_fov", "y_fov"};
    double angle = 0, focal = 0, degrees = 0;
    BASE_TRY(base_json_number(object, angle_names[axis], where, false, 1e-4, 3.1415, &angle));
    BASE_TRY(
        base_json_number(object, focal_names[axis], where, false, 1e-3, LARGEST_PIXELS, &focal));
    BASE_TRY(base_json_number(object, degree_names[axis], where, false, 0.01, 179.99, &degrees));
    if (degrees > 0) {
        angle = degrees * PI / 180;
        focal = 0;
    }
    if (angle > 0) {
        lens->angle[axis] = angle;
        lens->focal[axis] = 0;
    }
    if (focal > 0)
        lens->focal[axis] = focal;
    *given = angle > 0 || focal > 0;
    return VKN_OK;
}

/* An angle for one axis alone makes pixels square, whatever the other axis has from further up. */
static vkn_status read_focals(const cJSON *object, const char *where, struct transforms_lens *lens)
{
    bool given[2];
    for (int axis = 0; axis < 2; axis++)
        BASE_TRY(read_focal(object, where, axis, lens, &given[axis]));
    for (int axis = 0; axis < 2; axis++)
        if (given[axis] && !given[1 - axis] && lens->focal[axis] == 0)
            lens->focal[1 - axis] = lens->angle[1 - axis] = 0;
    return VKN_OK;
}

static vkn_status read_axis(const cJSON *object, const char *where, int axis,
                            struct transforms_lens *lens)
{
    static const char *const center_names[2] = {"cx", "cy"};
    static const char *const size_names[2] = {"w", "h"};
    BASE_TRY(base_json_number(object, center_names[axis], where, false, -LARGEST_PIXELS,
                              LARGEST_PIXELS, &lens->center[axis]));
    return base_json_number(object, size_names[axis], where, false, 1, LARGEST_PIXELS,
                            &lens->size[axis]);
}

vkn_status lens_read(const struct cJSON *object, const char *where, struct transforms_lens *lens)
{
    BASE_TRY(read_kind(object, where, lens));
    BASE_TRY(read_panorama(object, where, lens));
    BASE_TRY(read_focals(object, where, lens));
    for (int axis = 0; axis < 2; axis++)
        BASE_TRY(read_axis(object, where, axis, lens));
    if ((lens->size[0] > 0) != (lens->size[1] > 0))
        return base_json_fail(where, lens->size[0] > 0 ? "h" : "w", "missing");
    BASE_TRY(refuse_crop(object, where, lens));
    return read_distortion(object, where, lens);
}

bool lens_has_focal(const struct transforms_lens *lens)
{
    return lens->focal[0] > 0 || lens->focal[1] > 0 || lens->angle[0] > 0 || lens->angle[1] > 0 ||
           lens->kind == VKN_LENS_EQUIRECTANGULAR;
}

static double focal_of_axis(const struct transforms_lens *lens, int axis, double size)
{
    if (lens->focal[axis] > 0)
        return lens->focal[axis];
    return lens->angle[axis] > 0 ? 0.5 * size / tan(0.5 * lens->angle[axis]) : 0;
}

/* Of a panorama, pixels to a radian. nerfstudio's u is (x - cx) / fl_x and the longitude pi u, v
 * likewise, so that both are fl / pi (nerfstudio, cameras.py); where no focal length is given it is
 * all around. */
static void panorama_focal(const struct transforms_lens *lens, const double given[2],
                           double focal[2])
{
    bool all_around = lens->whole || (focal[0] == 0 && focal[1] == 0);
    for (int axis = 0; axis < 2; axis++)
        focal[axis] =
            all_around ? given[axis] / (2 - axis) / PI : focal[axis] / (lens->per_radian ? 1 : PI);
}

void lens_apply(const struct transforms_lens *lens, uint32_t width, uint32_t height, uint32_t k,
                struct scene_camera *camera)
{
    const double actual[2] = {width, height};
    bool panorama = lens->kind == VKN_LENS_EQUIRECTANGULAR;
    double given[2], focal[2], center[2];
    for (int axis = 0; axis < 2; axis++) {
        given[axis] = lens->size[axis] > 0 ? lens->size[axis] : actual[axis];
        focal[axis] = focal_of_axis(lens, axis, given[axis]);
        bool middle = isnan(lens->center[axis]) || (panorama && lens->whole);
        center[axis] = middle ? 0.5 * given[axis] : lens->center[axis];
    }
    if (panorama)
        panorama_focal(lens, given, focal);
    for (int axis = 0; axis < 2; axis++) /* one axis alone: pixels are square */
        focal[axis] = focal[axis] > 0 ? focal[axis] : focal[1 - axis];
    for (int axis = 0; axis < 2; axis++) {
        double ratio = actual[axis] / given[axis] / k;
        focal[axis] *= ratio;
        center[axis] *= ratio;
    }
    camera->width = width / k;
    camera->height = height / k;
    camera->focal_x = (float)focal[0];
    camera->focal_y = (float)focal[1];
    camera->center_x = (float)center[0];
    camera->center_y = (float)center[1];
    camera->lens = lens->kind;
    camera->k1 = (float)lens->distortion[0];
    camera->k2 = (float)lens->distortion[1];
    camera->p1 = (float)lens->distortion[2];
    camera->p2 = (float)lens->distortion[3];
    camera->k3 = (float)lens->distortion[4];
    camera->k4 = (float)lens->distortion[5];
}

bool lens_fits_size(const struct transforms_lens *lens, uint32_t width, uint32_t height)
{
    double w = lens->size[0], h = lens->size[1];
    return fabs(width * h / w - height) < 1 || fabs(height * w / h - width) < 1;
}
