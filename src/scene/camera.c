/* The camera model in double precision: the definition that shaders are tested against.
 *
 * Image positions have y down and the camera looks down -z with y up, so the ideal coordinates
 * (u, v) = ((x - center_x) / focal_x, (y - center_y) / focal_y) of a perspective lens belong to the
 * camera-space direction (u, -v, -1). OpenCV's distortion is defined on exactly these y-down
 * coordinates (its camera has y down and z forward), so k1 k2 p1 p2 k3 of instant-ngp and
 * nerfstudio files apply without sign changes. A fisheye's (u, v) have the direction of that vector
 * and as their length the (distorted) angle to the axis; those of a panorama are its longitude and
 * its latitude below the horizontal plane.
 */
#include <math.h>

#include "scene/transforms.h"

#define PI 3.14159265358979323846

/* ---- the range of a lens --------------------------------------------------------------------- */

static bool is_undistorted(const struct scene_camera *c)
{
    return c->k1 == 0 && c->k2 == 0 && c->p1 == 0 && c->p2 == 0 && c->k3 == 0 && c->k4 == 0;
}

static bool is_pinhole(const struct scene_camera *c)
{
    return c->lens == VKN_LENS_PERSPECTIVE && is_undistorted(c);
}

/* Of the radial distortion r (1 + k1 r2 + k2 r4 + k3 r6 + k4 r8): its derivative by r. */
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

/* The angle in ideal coordinates. */
static double radius_of(const struct scene_camera *c, double angle)
{
    return c->lens == VKN_LENS_FISHEYE ? angle : tan(angle);
}

/* The first angle at which the slope is not positive, by steps and bisection: polynomials of
 * measured lenses turn slowly. */
double scene_camera_limit(const struct scene_camera *camera)
{
    enum { STEPS = 256, ROUNDS = 50 };
    const double end = camera->lens == VKN_LENS_PERSPECTIVE ? 0.5 * PI - 1e-4 : PI;
    const double none = camera->lens == VKN_LENS_PERSPECTIVE ? SCENE_NO_LIMIT : PI;
    if (is_undistorted(camera))
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

/* Undistorted to distorted ideal coordinates, and the Jacobian (OpenCV, "Camera Calibration and 3D
 * Reconstruction": x'' = x (1 + k1 r2 + k2 r4 + k3 r6) + 2 p1 x y + p2 (r2 + 2 x2), y'' likewise).
 */
static void distort(const struct scene_camera *c, const double u[2], double d[2], double j[4])
{
    double x = u[0], y = u[1], k1 = c->k1, k2 = c->k2, k3 = c->k3, p1 = c->p1, p2 = c->p2;
    double r2 = x * x + y * y;
    double radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3));
    /* of radial: slope * x along x, slope * y along y */
    double slope = 2 * (k1 + r2 * (2 * k2 + r2 * 3 * k3));
    d[0] = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x);
    d[1] = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y;
    j[0] = radial + x * x * slope + 2 * p1 * y + 6 * p2 * x;
    j[1] = x * y * slope + 2 * p1 * x + 2 * p2 * y;
    j[2] = j[1];
    j[3] = radial + y * y * slope + 6 * p1 * y + 2 * p2 * x;
}

/* Inverts distort by Newton's method, each step halved until it helps. Returns the distance that
 * remains in distorted coordinates (about 1e-16 where the model can be inverted). */
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
    if (!is_pinhole(camera))
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
    return is_pinhole(camera) || hypot(u[0], u[1]) <= limit;
}

/* ---- fisheye --------------------------------------------------------------------------------- */

/* Inverts radial_value on 0..limit, where it grows, by bisection until Newton's step stays inside
 * the bracket. */
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

static bool fisheye_ray(const struct scene_camera *camera, const double d[2], double local[3])
{
    double limit = scene_camera_limit(camera), distorted = hypot(d[0], d[1]);
    bool reached = distorted <= radial_value(camera, limit);
    double angle = reached ? fisheye_angle(camera, distorted, limit) : limit;
    double ratio = distorted > 0 ? sin(angle) / distorted : 1;
    local[0] = d[0] * ratio;
    local[1] = -d[1] * ratio;
    local[2] = -cos(angle);
    return reached;
}

static bool fisheye_project(const struct scene_camera *camera, double limit, const double local[3],
                            double d[2])
{
    double across = hypot(local[0], local[1]), angle = atan2(across, -local[2]);
    if (!(angle <= limit) || (across == 0 && !(local[2] < 0)))
        return false;
    double ratio = across > 0 ? radial_value(camera, angle) / across : 0;
    d[0] = local[0] * ratio;
    d[1] = -local[1] * ratio;
    return true;
}

/* ---- equirectangular ------------------------------------------------------------------------- */

/* Focal lengths are rounded: what is this much beyond the ends belongs to the picture. */
#define ENDS (1 + 1e-6)

static bool equirectangular_ray(const double d[2], double local[3])
{
    local[0] = sin(d[0]) * cos(d[1]);
    local[1] = -sin(d[1]);
    local[2] = -cos(d[0]) * cos(d[1]);
    return fabs(d[0]) <= PI * ENDS && fabs(d[1]) <= 0.5 * PI * ENDS;
}

/* What is right behind the camera is at the picture's edges, inside of them. */
static bool equirectangular_project(const double local[3], double d[2])
{
    double around = hypot(local[0], local[2]), end = PI * (1 - 2e-7);
    d[0] = around > 0 ? fmin(fmax(atan2(local[0], -local[2]), -end), end) : 0;
    d[1] = atan2(-local[1], around);
    return around > 0 || local[1] != 0;
}

/* ---- any of them ----------------------------------------------------------------------------- */

static bool lens_ray(const struct scene_camera *camera, const double d[2], double local[3])
{
    if (camera->lens == VKN_LENS_EQUIRECTANGULAR)
        return equirectangular_ray(d, local);
    return camera->lens == VKN_LENS_FISHEYE ? fisheye_ray(camera, d, local)
                                            : perspective_ray(camera, d, local);
}

static bool lens_project(const struct scene_camera *camera, double limit, const double local[3],
                         double d[2])
{
    if (camera->lens == VKN_LENS_EQUIRECTANGULAR)
        return equirectangular_project(local, d);
    return camera->lens == VKN_LENS_FISHEYE ? fisheye_project(camera, limit, local, d)
                                            : perspective_project(camera, limit, local, d);
}

bool scene_camera_ray(const struct scene_camera *camera, double x, double y, double origin[3],
                      double direction[3])
{
    const double d[2] = {(x - camera->center_x) / camera->focal_x,
                         (y - camera->center_y) / camera->focal_y};
    double local[3], squared = 0;
    bool reached = lens_ray(camera, d, local);
    for (int i = 0; i < 3; i++) {
        const float *row = camera->pose + (ptrdiff_t)4 * i;
        direction[i] = row[0] * local[0] + row[1] * local[1] + row[2] * local[2];
        origin[i] = row[3];
        squared += direction[i] * direction[i];
    }
    for (int i = 0; i < 3; i++)
        direction[i] /= sqrt(squared);
    return reached;
}

bool scene_camera_project_within(const struct scene_camera *camera, double limit,
                                 const double point[3], double *x, double *y)
{
    double local[3] = {0}, d[2];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            local[i] += camera->pose[4 * j + i] * (point[j] - camera->pose[4 * j + 3]);
    if (!lens_project(camera, limit, local, d))
        return false;
    *x = d[0] * camera->focal_x + camera->center_x;
    *y = d[1] * camera->focal_y + camera->center_y;
    return true;
}

bool scene_camera_project(const struct scene_camera *camera, const double point[3], double *x,
                          double *y)
{
    return scene_camera_project_within(camera, scene_camera_limit(camera), point, x, y);
}

double scene_camera_depth_scale(const struct scene_camera *camera, const double direction[3])
{
    double forward = 0;
    for (int i = 0; i < 3; i++)
        forward -= direction[i] * (double)camera->pose[4 * i + 2];
    return camera->lens == VKN_LENS_PERSPECTIVE ? forward : 1;
}

bool scene_camera_invertible(const struct scene_camera *camera)
{
    if (is_pinhole(camera))
        return true;
    for (unsigned corner = 0; corner < 4; corner++) {
        double origin[3], direction[3];
        if (!scene_camera_ray(camera, (corner & 1) * (double)camera->width,
                              (corner >> 1) * (double)camera->height, origin, direction))
            return false;
    }
    return true;
}
