/* Implements all kinds of lenses, from rays to ideal coordinates and back, in double precision (the
 * reference that shaders are tested against), and the lens models of files.
 *
 * The camera looks down -z with y up, and ideal coordinates (u, v) have y down. The (u, v) of a
 * perspective lens belong to the camera-space direction (u, -v, -1). OpenCV's distortion is defined
 * on exactly these y-down coordinates (its camera has y down and z forward), so k1 k2 p1 p2 k3 of
 * instant-ngp and nerfstudio files apply without sign changes. The (u, v) of a fisheye have the
 * same direction, and the (distorted) angle to the axis as length. The (u, v) of a panorama are its
 * longitude and its latitude below the horizontal plane. */
#include "scene/lens.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define PI 3.14159265358979323846

/* ---- coefficients ---------------------------------------------------------------------------- */

const char *const lens_coefficient_names[SCENE_COEFFICIENT_COUNT] = {SCENE_COEFFICIENTS(LENS_NAME)};

#define OFFSET(name) offsetof(struct vkn_camera, name),
static const size_t offsets[SCENE_COEFFICIENT_COUNT] = {SCENE_COEFFICIENTS(OFFSET)};

double lens_coefficient(const struct vkn_camera *camera, size_t index)
{
    return *(const double *)((const char *)camera + offsets[index]);
}

void lens_set_coefficient(struct vkn_camera *camera, size_t index, double value)
{
    *(double *)((char *)camera + offsets[index]) = value;
}

bool lens_is_distorted(const struct scene_camera *camera)
{
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        if (camera->distortion[i] != 0)
            return true;
    return false;
}

/* ---- the range of a lens --------------------------------------------------------------------- */

/* Returns the derivative d/dr of the radial distortion r (1 + k1 r2 + k2 r4 + k3 r6 + k4 r8). */
static double radial_slope(const struct scene_camera *c, double r)
{
    double r2 = r * r;
    return 1 + r2 * (3 * c->k1 + r2 * (5 * c->k2 + r2 * (7 * c->k3 + r2 * 9 * c->k4)));
}

static double radial_value(const struct scene_camera *c, double r)
{
    double r2 = r * r;
    return r * (1 + r2 * (c->k1 + r2 * (c->k2 + r2 * (c->k3 + r2 * c->k4))));
}

/* Returns the radius, in undistorted ideal coordinates, of an angle to the axis. */
static double radius_of(const struct scene_camera *c, double angle)
{
    return lens_kinds[c->lens].perspective ? tan(angle) : angle;
}

/* Finds the first angle at which the radial slope is not positive, by steps and bisection. Steps
 * suffice because the slope of measured lenses changes slowly. */
double scene_camera_limit(const struct scene_camera *camera)
{
    enum { STEPS = 256, ROUNDS = 50 };
    bool perspective = lens_kinds[camera->lens].perspective;
    const double end = perspective ? 0.5 * PI - 1e-4 : PI;
    const double none = perspective ? SCENE_NO_LIMIT : PI;
    if (!lens_is_distorted(camera))
        return none;
    int step = 1;
    while (step <= STEPS && radial_slope(camera, radius_of(camera, end * step / STEPS)) > 0)
        step++;
    if (step > STEPS)
        return none;
    double low = end * (step - 1) / STEPS, high = end * step / STEPS;
    for (int round = 0; round < ROUNDS; round++) {
        double middle = 0.5 * (low + high);
        if (radial_slope(camera, radius_of(camera, middle)) > 0)
            low = middle;
        else
            high = middle;
    }
    return radius_of(camera, low);
}

/* ---- perspective ----------------------------------------------------------------------------- */

/* Adds the terms of COLMAP's THIN_PRISM_FISHEYE (src/colmap/sensor/models.h) to OpenCV's model: k4
 * r8 in the radial part, sx1 r2 and sy1 r2. */
static void add_prism(const struct scene_camera *c, const double u[2], double d[2], double j[4])
{
    double x = u[0], y = u[1], r2 = x * x + y * y, r6 = r2 * r2 * r2;
    double radial = c->k4 * r6 * r2, slope = 8 * c->k4 * r6;
    d[0] += x * radial + c->sx1 * r2;
    d[1] += y * radial + c->sy1 * r2;
    j[0] += radial + x * x * slope + 2 * c->sx1 * x;
    j[1] += x * y * slope + 2 * c->sx1 * y;
    j[2] += x * y * slope + 2 * c->sy1 * x;
    j[3] += radial + y * y * slope + 2 * c->sy1 * y;
}

/* Computes distorted ideal coordinates d of u, and the Jacobian j (OpenCV, "Camera Calibration and
 * 3D Reconstruction": x'' = x (1 + k1 r2 + k2 r4 + k3 r6) + 2 p1 x y + p2 (r2 + 2 x2)). */
static void distort(const struct scene_camera *c, const double u[2], double d[2], double j[4])
{
    double x = u[0], y = u[1], k1 = c->k1, k2 = c->k2, k3 = c->k3, p1 = c->p1, p2 = c->p2;
    double r2 = x * x + y * y;
    double radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3));
    /* the gradient of `radial` is (slope * x, slope * y) */
    double slope = 2 * (k1 + r2 * (2 * k2 + r2 * 3 * k3));
    d[0] = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x);
    d[1] = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y;
    j[0] = radial + x * x * slope + 2 * p1 * y + 6 * p2 * x;
    j[1] = x * y * slope + 2 * p1 * x + 2 * p2 * y;
    j[2] = j[1];
    j[3] = radial + y * y * slope + 6 * p1 * y + 2 * p2 * x;
    if (c->lens == VKN_LENS_THIN_PRISM_FISHEYE)
        add_prism(c, u, d, j);
}

/* Inverts `distort` by Newton's method; halves each step until the error decreases. Returns the
 * remaining distance in distorted coordinates (about 1e-16 where the model is invertible). */
static double undistort(const struct scene_camera *c, const double d[2], double u[2])
{
    double at[2], j[4];
    u[0] = d[0];
    u[1] = d[1];
    distort(c, u, at, j);
    double error = hypot(at[0] - d[0], at[1] - d[1]);
    for (int round = 0; round < 50 && error > 1e-14; round++) {
        double determinant = j[0] * j[3] - j[1] * j[2];
        double rx = at[0] - d[0], ry = at[1] - d[1];
        double step[2] = {(j[3] * rx - j[1] * ry) / determinant,
                          (j[0] * ry - j[2] * rx) / determinant};
        double next_error = INFINITY, next[2] = {0};
        for (int halvings = 0; halvings < 10; halvings++) {
            next[0] = u[0] - ldexp(step[0], -halvings);
            next[1] = u[1] - ldexp(step[1], -halvings);
            distort(c, next, at, j);
            next_error = hypot(at[0] - d[0], at[1] - d[1]);
            if (next_error < error)
                break;
        }
        if (!(next_error < error))
            return error;
        u[0] = next[0];
        u[1] = next[1];
        error = next_error;
    }
    return error;
}

static bool perspective_ray(const struct scene_camera *camera, const double d[2], double local[3])
{
    double u[2] = {d[0], d[1]};
    bool reached = true;
    if (lens_is_distorted(camera))
        reached = undistort(camera, d, u) <= 1e-9 &&
                  hypot(u[0], u[1]) <= scene_camera_limit(camera) * (1 + 1e-9);
    double length = hypot(hypot(u[0], u[1]), 1);
    local[0] = u[0] / length;
    local[1] = -u[1] / length;
    local[2] = -1 / length;
    return reached;
}

static bool perspective_project(const struct scene_camera *camera, double limit,
                                const double local[3], double d[2])
{
    if (!(local[2] < 0))
        return false;
    const double u[2] = {local[0] / -local[2], -local[1] / -local[2]};
    double j[4];
    distort(camera, u, d, j);
    return !lens_is_distorted(camera) || hypot(u[0], u[1]) <= limit;
}

/* ---- fisheye --------------------------------------------------------------------------------- */

/* Inverts radial_value on 0..limit, where it increases, by Newton steps; a step that would leave
 * the bracket is replaced by bisection. */
static double fisheye_angle(const struct scene_camera *camera, double distorted, double limit)
{
    double low = 0, high = limit, angle = fmin(distorted, limit);
    for (int round = 0; round < 60; round++) {
        double error = radial_value(camera, angle) - distorted;
        if (fabs(error) < 1e-15)
            break;
        *(error < 0 ? &low : &high) = angle;
        double next = angle - error / radial_slope(camera, angle);
        angle = next > low && next < high ? next : 0.5 * (low + high);
    }
    return angle;
}

/* Computes the direction at an angle to the axis, towards an image position. */
static void direction_at(double angle, const double towards[2], double local[3])
{
    double length = hypot(towards[0], towards[1]), ratio = length > 0 ? sin(angle) / length : 1;
    local[0] = towards[0] * ratio;
    local[1] = -towards[1] * ratio;
    local[2] = -cos(angle);
}

static bool fisheye_ray(const struct scene_camera *camera, const double d[2], double local[3])
{
    double limit = scene_camera_limit(camera), distorted = hypot(d[0], d[1]);
    bool reached = distorted <= radial_value(camera, limit);
    direction_at(reached ? fisheye_angle(camera, distorted, limit) : limit, d, local);
    return reached;
}

/* Projects a direction to d, whose length is the direction's angle to the axis, with or without
 * radial distortion. Returns false beyond `limit`. */
static bool project_angle(const struct scene_camera *camera, double limit, const double local[3],
                          bool distorted, double d[2])
{
    double across = hypot(local[0], local[1]), angle = atan2(across, -local[2]);
    if (!(angle <= limit) || (across == 0 && !(local[2] < 0)))
        return false;
    double ratio = across > 0 ? (distorted ? radial_value(camera, angle) : angle) / across : 0;
    d[0] = local[0] * ratio;
    d[1] = -local[1] * ratio;
    return true;
}

static bool fisheye_project(const struct scene_camera *camera, double limit, const double local[3],
                            double d[2])
{
    return project_angle(camera, limit, local, true, d);
}

/* ---- thin prism fisheye ---------------------------------------------------------------------- */

static bool thin_prism_ray(const struct scene_camera *camera, const double d[2], double local[3])
{
    double limit = scene_camera_limit(camera), u[2];
    bool reached = undistort(camera, d, u) <= 1e-9 && hypot(u[0], u[1]) <= limit * (1 + 1e-9);
    direction_at(fmin(hypot(u[0], u[1]), limit), u, local);
    return reached;
}

static bool thin_prism_project(const struct scene_camera *camera, double limit,
                               const double local[3], double d[2])
{
    double u[2] = {0}, j[4];
    bool seen = project_angle(camera, limit, local, false, u);
    distort(camera, u, d, j);
    return seen;
}

/* ---- equirectangular ------------------------------------------------------------------------- */

/* Tolerance at the ends of the image, because focal lengths are rounded. */
#define ENDS (1 + 1e-6)

static bool equirectangular_ray(const struct scene_camera *camera, const double d[2],
                                double local[3])
{
    (void)camera;
    local[0] = sin(d[0]) * cos(d[1]);
    local[1] = -sin(d[1]);
    local[2] = -cos(d[0]) * cos(d[1]);
    return fabs(d[0]) <= PI * ENDS && fabs(d[1]) <= 0.5 * PI * ENDS;
}

double lens_focal_panorama(double size, int axis)
{
    return size / (2 - axis) / PI;
}

/* Projects a direction. Straight behind the camera the result is just inside of the image. */
static bool equirectangular_project(const struct scene_camera *camera, double limit,
                                    const double local[3], double d[2])
{
    (void)camera;
    (void)limit;
    double horizontal = hypot(local[0], local[2]), end = PI * (1 - 2e-7);
    d[0] = horizontal > 0 ? fmin(fmax(atan2(local[0], -local[2]), -end), end) : 0;
    d[1] = atan2(-local[1], horizontal);
    return horizontal > 0 || local[1] != 0;
}

/* ---- the tables ------------------------------------------------------------------------------ */

const struct lens_kind lens_kinds[SCENE_LENSES] = {
    [VKN_LENS_PERSPECTIVE] = {.name = "opencv",
                              .camera_type = "perspective",
                              .distortion = "k1, k2, k3, p1 and p2",
                              .perspective = true,
                              .ray = perspective_ray,
                              .project = perspective_project},
    [VKN_LENS_FISHEYE] = {.name = "fisheye",
                          .camera_type = "fisheye",
                          .distortion = "of a fisheye lens k1, k2, k3 and k4",
                          .ray = fisheye_ray,
                          .project = fisheye_project},
    [VKN_LENS_EQUIRECTANGULAR] = {.name = "equirectangular",
                                  .camera_type = "equirectangular",
                                  .distortion = "",
                                  .panoramic = true,
                                  .ray = equirectangular_ray,
                                  .project = equirectangular_project},
    [VKN_LENS_THIN_PRISM_FISHEYE] = {.name = "thin_prism_fisheye",
                                     .camera_type = "fisheye",
                                     .distortion = "of a thin prism fisheye k1, k2, k3, k4, p1, "
                                                   "p2, sx1 and sy1",
                                     .ray = thin_prism_ray,
                                     .project = thin_prism_project},
};

/* Lists COLMAP's models (ids and parameters: src/colmap/sensor/models.h of its repository). f is
 * the focal length of both axes; w and h repeat the image size: the panorama is full. Unsupported
 * models are listed so that messages can name them. */
static const struct lens_model models[] = {
    {0, "SIMPLE_PINHOLE", 3, VKN_LENS_PERSPECTIVE, "f cx cy"},
    {1, "PINHOLE", 4, VKN_LENS_PERSPECTIVE, "fx fy cx cy"},
    {2, "SIMPLE_RADIAL", 4, VKN_LENS_PERSPECTIVE, "f cx cy k1"},
    {3, "RADIAL", 5, VKN_LENS_PERSPECTIVE, "f cx cy k1 k2"},
    {4, "OPENCV", 8, VKN_LENS_PERSPECTIVE, "fx fy cx cy k1 k2 p1 p2"},
    {5, "OPENCV_FISHEYE", 8, VKN_LENS_FISHEYE, "fx fy cx cy k1 k2 k3 k4"},
    {6, "FULL_OPENCV", 12, VKN_LENS_PERSPECTIVE, NULL},
    {7, "FOV", 5, VKN_LENS_PERSPECTIVE, NULL},
    {8, "SIMPLE_RADIAL_FISHEYE", 4, VKN_LENS_FISHEYE, "f cx cy k1"},
    {9, "RADIAL_FISHEYE", 5, VKN_LENS_FISHEYE, "f cx cy k1 k2"},
    {10, "THIN_PRISM_FISHEYE", 12, VKN_LENS_THIN_PRISM_FISHEYE,
     "fx fy cx cy k1 k2 p1 p2 k3 k4 sx1 sy1"},
    {11, "RAD_TAN_THIN_PRISM_FISHEYE", 16, VKN_LENS_FISHEYE, NULL},
    {12, "SIMPLE_DIVISION", 4, VKN_LENS_PERSPECTIVE, NULL},
    {13, "DIVISION", 5, VKN_LENS_PERSPECTIVE, NULL},
    {14, "SIMPLE_FISHEYE", 3, VKN_LENS_FISHEYE, "f cx cy"},
    {15, "FISHEYE", 4, VKN_LENS_FISHEYE, "fx fy cx cy"},
    {16, "EUCM", 6, VKN_LENS_PERSPECTIVE, NULL},
    {17, "EQUIRECTANGULAR", 2, VKN_LENS_EQUIRECTANGULAR, "w h"},
};

const char lens_models_supported[] = "PINHOLE, SIMPLE_RADIAL, RADIAL, OPENCV, OPENCV_FISHEYE, "
                                     "THIN_PRISM_FISHEYE and EQUIRECTANGULAR";

const struct lens_model *lens_model_by_id(int id)
{
    for (size_t i = 0; i < BASE_COUNT(models); i++)
        if (models[i].id == id)
            return &models[i];
    return NULL;
}

const struct lens_model *lens_model_by_name(const char *name, size_t length)
{
    for (size_t i = 0; i < BASE_COUNT(models); i++)
        if (strlen(models[i].name) == length && strncmp(models[i].name, name, length) == 0)
            return &models[i];
    return NULL;
}

/* ---- lenses from parameters ------------------------------------------------------------------ */

/* Returns whether the list `names` begins with `name`. */
static bool is_next(const char *names, const char *name)
{
    size_t length = strlen(name);
    return strncmp(names, name, length) == 0 && strchr(" ", names[length]) != NULL;
}

/* Stores the value of the first parameter in `names`. Returns false when it is out of range. */
static bool store(const char *names, double value, struct transforms_lens *lens)
{
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        if (is_next(names, lens_coefficient_names[i])) {
            lens->distortion[i] = value;
            return fabs(value) <= LENS_MAX_COEFFICIENT;
        }
    for (int axis = 0; axis < 2; axis++) {
        if (is_next(names, axis == 0 ? "cx" : "cy")) {
            lens->center[axis] = value;
            return fabs(value) <= LENS_MAX_PIXELS;
        }
        if (is_next(names, axis == 0 ? "w" : "h"))
            return value == lens->size[axis];
        if (is_next(names, "f") || is_next(names, axis == 0 ? "fx" : "fy"))
            lens->focal[axis] = value;
    }
    return value >= 1e-3 && value <= LENS_MAX_PIXELS;
}

vkn_status lens_model_unsupported(const char *where, const char *name)
{
    return base_fail(VKN_BAD_INPUT,
                     "%s: model %s is not supported (%s are); undistort the images first", where,
                     name, lens_models_supported);
}

vkn_status lens_from_model(const struct lens_model *model, const char *where, const double size[2],
                           const double *parameters, struct transforms_lens *lens)
{
    *lens = lens_none;
    if (model->parameters == NULL)
        return lens_model_unsupported(where, model->name);
    for (int axis = 0; axis < 2; axis++) {
        if (!(size[axis] >= 1 && size[axis] <= LENS_MAX_PIXELS))
            return base_fail(VKN_BAD_INPUT, "%s: %s %g is out of range (1 to %g)", where,
                             axis == 0 ? "width" : "height", size[axis], LENS_MAX_PIXELS);
        lens->size[axis] = size[axis];
    }
    lens->kind = model->kind;
    const char *names = model->parameters;
    for (unsigned i = 0; i < model->count; i++, names += strcspn(names, " ") + 1)
        if (!store(names, parameters[i], lens))
            return base_fail(VKN_BAD_INPUT, "%s: parameter %u of %s, %g, is out of range", where,
                             i + 1, model->name, parameters[i]);
    return VKN_OK;
}

/* ---- parameters from lenses ------------------------------------------------------------------ */

/* Returns the value of the first parameter in `names`. */
static double load(const char *names, const struct transforms_lens *lens)
{
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        if (is_next(names, lens_coefficient_names[i]))
            return lens->distortion[i];
    if (names[0] == 'c')
        return lens->center[is_next(names, "cx") ? 0 : 1];
    return lens->focal[is_next(names, "fy") ? 1 : 0];
}

void lens_parameters(const struct lens_model *model, const struct transforms_lens *lens,
                     double parameters[LENS_MAX_PARAMETERS])
{
    const char *names = model->parameters;
    for (unsigned i = 0; i < model->count; i++, names += strcspn(names, " ") + 1)
        parameters[i] = load(names, lens);
}

/* Returns the name of a parameter of the lens that the model does not have; NULL: none. */
static const char *find_excess(const struct lens_model *model, const struct transforms_lens *lens)
{
    struct transforms_lens held = lens_none;
    const char *names = model->parameters;
    for (unsigned i = 0; i < model->count; i++, names += strcspn(names, " ") + 1)
        store(names, load(names, lens), &held);
    return lens_difference(lens, &held, LENS_FOCAL | LENS_CENTER | LENS_DISTORTION);
}

const struct lens_model *lens_model_for(const struct lens_model *model,
                                        const struct transforms_lens *lens, const char **problem)
{
    *problem = NULL;
    if (find_excess(model, lens) == NULL)
        return model;
    model = lens_model_by_id(model->kind == VKN_LENS_PERSPECTIVE ? 4 : 5);
    *problem = find_excess(model, lens);
    return *problem == NULL ? model : NULL;
}
