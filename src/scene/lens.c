/* Reads intrinsics from JSON, applies them to images, and makes pinholes for camera paths. */
#include <math.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/transforms.h"

#define PI 3.14159265358979323846

const struct transforms_lens lens_none = {.center = {NAN, NAN}};

static bool is_fisheye(enum vkn_lens kind)
{
    return !lens_kinds[kind].perspective && !lens_kinds[kind].panoramic;
}

/* Reads the kind of lens from camera_model (COLMAP's names, as nerfstudio writes them) or from
 * instant-ngp's is_fisheye. Without either key the kind stays. */
static vkn_status read_kind(const cJSON *object, const char *where, struct transforms_lens *lens)
{
    const char *name = NULL;
    BASE_TRY(base_json_string(object, "camera_model", where, false, &name));
    const struct lens_model *model = name != NULL ? lens_model_by_name(name, strlen(name)) : NULL;
    if (name != NULL && (model == NULL || model->parameters == NULL))
        return base_json_fail(where, "camera_model",
                              "%s is not supported (%s are); undistort the images first", name,
                              lens_models_supported);
    lens->kind = model != NULL ? model->kind : lens->kind;
    const cJSON *fisheye = cJSON_GetObjectItemCaseSensitive(object, "is_fisheye");
    if (fisheye != NULL && !cJSON_IsBool(fisheye))
        return base_json_fail(where, "is_fisheye", "neither true nor false");
    if (fisheye != NULL && model != NULL && cJSON_IsTrue(fisheye) != is_fisheye(lens->kind))
        return base_json_fail(where, "is_fisheye", "does not agree with camera_model %s", name);
    if (fisheye != NULL && model == NULL)
        lens->kind = cJSON_IsTrue(fisheye) ? VKN_LENS_FISHEYE : VKN_LENS_PERSPECTIVE;
    return VKN_OK;
}

/* Reads instant-ngp's flag for a full panorama. */
static vkn_status read_panorama(const cJSON *object, const char *where,
                                struct transforms_lens *lens)
{
    bool latlong = false;
    BASE_TRY(base_json_bool(object, "latlong", where, false, &latlong));
    if (latlong) {
        lens->kind = VKN_LENS_EQUIRECTANGULAR;
        lens->is_full = true;
    }
    return VKN_OK;
}

/* Refuses fisheye_crop_radius, beyond which nerfstudio ignores the pixels of a fisheye. */
static vkn_status refuse_crop(const cJSON *object, const char *where,
                              const struct transforms_lens *lens)
{
    double radius = INFINITY;
    BASE_TRY(base_json_number(object, "fisheye_crop_radius", where, false, 0, 1e9, &radius));
    double corner = 0.5 * hypot(lens->size[0], lens->size[1]);
    if (!is_fisheye(lens->kind) || isinf(radius) || (corner > 0 && radius >= corner))
        return VKN_OK;
    return base_json_fail(where, "fisheye_crop_radius",
                          "not supported; hide what is farther from the middle by masks "
                          "(mask_path)");
}

/* Reads nerfstudio's list k1 k2 k3 k4 p1 p2, which overrides the single keys. */
static vkn_status read_params(const cJSON *object, const char *where, double *values)
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
        BASE_TRY(base_json_value(item, element, where, -LENS_MAX_COEFFICIENT, LENS_MAX_COEFFICIENT,
                                 &values[order[i]]));
    }
    return VKN_OK;
}

static vkn_status read_distortion(const cJSON *object, const char *where,
                                  struct transforms_lens *lens)
{
    /* k4 k5 k6 of OpenCV's perspective model make it rational. */
    static const char *const names[] = {SCENE_COEFFICIENTS(LENS_NAME)
                                            SCENE_OTHER_COEFFICIENTS(LENS_NAME)};
    const char *supported = lens_kinds[lens->kind].distortion;
    double values[BASE_COUNT(names)] = {0};
    memcpy(values, lens->distortion, sizeof(lens->distortion));
    for (size_t i = 0; i < BASE_COUNT(names); i++)
        BASE_TRY(base_json_number(object, names[i], where, false, -LENS_MAX_COEFFICIENT,
                                  LENS_MAX_COEFFICIENT, &values[i]));
    BASE_TRY(read_params(object, where, values));
    for (size_t i = 0; i < BASE_COUNT(names); i++) {
        if (values[i] == 0 || strstr(supported, names[i]) != NULL)
            continue;
        if (supported[0] == '\0')
            return base_json_fail(where, names[i], "a panorama has no distortion");
        return base_json_fail(where, names[i], "not supported unless 0 (%s are)", supported);
    }
    memcpy(lens->distortion, values, sizeof(lens->distortion));
    return VKN_OK;
}

/* Reads the focal length of one axis. A focal length and an angle in the same object agree roughly,
 * and the focal length is more accurate; an angle without focal length overrides a focal length
 * from the top level. x_fov, in degrees, overrides both, as in instant-ngp. Sets *given to whether
 * the object has any of the three. */
static vkn_status read_focal(const cJSON *object, const char *where, int axis,
                             struct transforms_lens *lens, bool *given)
{
    static const char *const focal_names[2] = {"fl_x", "fl_y"};
    static const char *const angle_names[2] = {"camera_angle_x", "camera_angle_y"};
    static const char *const degree_names[2] = {"x_fov", "y_fov"};
    double angle = 0, focal = 0, degrees = 0;
    BASE_TRY(base_json_number(object, angle_names[axis], where, false, 1e-4, 3.1415, &angle));
    BASE_TRY(
        base_json_number(object, focal_names[axis], where, false, 1e-3, LENS_MAX_PIXELS, &focal));
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

/* Reads the focal lengths. An angle for only one axis resets the other axis: square pixels. */
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
    BASE_TRY(base_json_number(object, center_names[axis], where, false, -LENS_MAX_PIXELS,
                              LENS_MAX_PIXELS, &lens->center[axis]));
    return base_json_number(object, size_names[axis], where, false, 1, LENS_MAX_PIXELS,
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
           lens_kinds[lens->kind].panoramic;
}

static double focal_of_axis(const struct transforms_lens *lens, int axis, double size)
{
    if (lens->focal[axis] > 0)
        return lens->focal[axis];
    return lens->angle[axis] > 0 ? 0.5 * size / tan(0.5 * lens->angle[axis]) : 0;
}

/* Converts a panorama's focal lengths to pixels per radian. nerfstudio's u is (x - cx) / fl_x and
 * its longitude pi u, and v likewise, so the result is fl / pi (nerfstudio, cameras.py). Without
 * focal lengths the panorama is full. */
static void panorama_focal(const struct transforms_lens *lens, const double size[2],
                           double focal[2])
{
    bool all_around = lens->is_full || (focal[0] == 0 && focal[1] == 0);
    for (int axis = 0; axis < 2; axis++)
        focal[axis] = all_around ? lens_focal_panorama(size[axis], axis)
                                 : focal[axis] / (lens->per_radian ? 1 : PI);
}

void lens_apply(const struct transforms_lens *lens, uint32_t width, uint32_t height, uint32_t k,
                struct scene_camera *camera)
{
    const double actual[2] = {width, height};
    bool panorama = lens_kinds[lens->kind].panoramic;
    double size[2], focal[2], center[2];
    for (int axis = 0; axis < 2; axis++) {
        size[axis] = lens->size[axis] > 0 ? lens->size[axis] : actual[axis];
        focal[axis] = focal_of_axis(lens, axis, size[axis]);
        bool is_centred = isnan(lens->center[axis]) || (panorama && lens->is_full);
        center[axis] = is_centred ? 0.5 * size[axis] : lens->center[axis];
    }
    if (panorama)
        panorama_focal(lens, size, focal);
    for (int axis = 0; axis < 2; axis++) /* only one axis is given: pixels are square */
        focal[axis] = focal[axis] > 0 ? focal[axis] : focal[1 - axis];
    for (int axis = 0; axis < 2; axis++) {
        double ratio = actual[axis] / size[axis] / k;
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
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        camera->distortion[i] = (float)lens->distortion[i];
}

bool lens_fits_size(const struct transforms_lens *lens, uint32_t width, uint32_t height)
{
    double w = lens->size[0], h = lens->size[1];
    return fabs(width * h / w - height) < 1 || fabs(height * w / h - width) < 1;
}

/* ---- new lenses ------------------------------------------------------------------------------ */

static const char *const axis_names[2][2] = {{"fl_x", "fl_y"}, {"cx", "cy"}};

static vkn_status check_value(double value, double least, double most, const char *name,
                              const char *where)
{
    if (value >= least && value <= most)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: %s: %g is out of range (%g to %g)", where, name, value,
                     least, most);
}

vkn_status lens_check(const struct transforms_lens *lens, const char *where)
{
    const struct lens_kind *kind = &lens_kinds[lens->kind];
    if (kind->panoramic)
        return base_fail(VKN_BAD_INPUT, "%s: a panorama has no lens", where);
    for (int axis = 0; axis < 2; axis++) {
        BASE_TRY(check_value(lens->focal[axis], 1e-3, LENS_MAX_PIXELS, axis_names[0][axis], where));
        BASE_TRY(check_value(lens->center[axis], -LENS_MAX_PIXELS, LENS_MAX_PIXELS,
                             axis_names[1][axis], where));
    }
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++) {
        bool supported = strstr(kind->distortion, lens_coefficient_names[i]) != NULL;
        double most = supported ? LENS_MAX_COEFFICIENT : 0;
        BASE_TRY(check_value(lens->distortion[i], -most, most, lens_coefficient_names[i], where));
    }
    return VKN_OK;
}

void lens_resize(struct transforms_lens *lens, const double size[2])
{
    for (int axis = 0; axis < 2; axis++) {
        double ratio = size[axis] / lens->size[axis];
        lens->focal[axis] *= ratio;
        lens->center[axis] *= ratio;
        lens->size[axis] = size[axis];
    }
}

/* Returns whether lengths in pixels differ by more than ROUNDING of a third length. */
#define ROUNDING 1e-6
static bool differs(double a, double b, double length)
{
    return !(fabs(a - b) <= ROUNDING * length);
}

static double center_of(const struct transforms_lens *lens, int axis)
{
    return isnan(lens->center[axis]) ? 0.5 * lens->size[axis] : lens->center[axis];
}

const char *lens_difference(const struct transforms_lens *a, const struct transforms_lens *b,
                            unsigned parts)
{
    for (int axis = 0; axis < 2; axis++) {
        double length = fmax(a->focal[axis], a->size[axis]);
        if ((parts & LENS_FOCAL) != 0 && differs(a->focal[axis], b->focal[axis], a->focal[axis]))
            return axis_names[0][axis];
        if ((parts & LENS_CENTER) != 0 && differs(center_of(a, axis), center_of(b, axis), length))
            return axis_names[1][axis];
        if ((parts & LENS_SIZE) != 0 && a->size[axis] != b->size[axis])
            return axis == 0 ? "w" : "h";
    }
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        if ((parts & LENS_DISTORTION) != 0 && differs(a->distortion[i], b->distortion[i], 1))
            return lens_coefficient_names[i];
    return NULL;
}

/* ---- pinholes -------------------------------------------------------------------------------- */

struct scene_camera camera_path_camera(const struct scene_camera *like, const uint32_t size[2],
                                       double angle)
{
    uint32_t width = size[0], height = size[1];
    double aspect = (double)like->width / like->height;
    if (height == 0)
        height = width == 0 ? like->height : (uint32_t)fmax(1.0, round(width / aspect));
    if (width == 0)
        width = size[1] == 0 ? like->width : (uint32_t)fmax(1.0, round(height * aspect));
    float focal = (float)(0.5 * height / tan(0.5 * angle));
    return (struct scene_camera){.width = width,
                                 .height = height,
                                 .focal_x = focal,
                                 .focal_y = focal,
                                 .center_x = 0.5F * (float)width,
                                 .center_y = 0.5F * (float)height};
}

struct scene_camera camera_path_undistorted(const struct scene_camera *like)
{
    struct scene_camera pinhole = {.width = like->width,
                                   .height = like->height,
                                   .focal_x = like->focal_x,
                                   .focal_y = like->focal_y,
                                   .center_x = like->center_x,
                                   .center_y = like->center_y};
    if (lens_kinds[like->lens].perspective)
        return pinhole;
    float edge = fmaxf(0.5F * (float)like->width / like->focal_x,
                       0.5F * (float)like->height / like->focal_y);
    /* The tangent at the end of the longer side becomes at most 1: 45 degrees. */
    float factor = fmaxf(1.0F, edge);
    pinhole.focal_x *= factor;
    pinhole.focal_y *= factor;
    pinhole.center_x = 0.5F * (float)like->width;
    pinhole.center_y = 0.5F * (float)like->height;
    return pinhole;
}

double camera_path_angle(const struct scene_camera *camera)
{
    return 2.0 * atan(0.5 * camera->height / (double)camera->focal_y);
}
