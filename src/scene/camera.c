/* The camera model in double precision: the definition that shaders are tested against.
 *
 * Image positions have y down and the camera looks down -z with y up, so the ideal coordinates
 * (u, v) = ((x - center_x) / focal_x, (y - center_y) / focal_y) belong to the camera-space
 * direction (u, -v, -1). OpenCV's distortion is defined on exactly these y-down coordinates (its
 * camera has y down and z forward), so k1 k2 p1 p2 of instant-ngp and nerfstudio files apply
 * without sign changes.
 */
#include <math.h>

#include "scene/transforms.h"

/* Undistorted to distorted ideal coordinates, and the Jacobian (OpenCV, "Camera Calibration and 3D
 * Reconstruction": x'' = x (1 + k1 r2 + k2 r4) + 2 p1 x y + p2 (r2 + 2 x2), y'' likewise). */
static void distort(const struct scene_camera *c, const double u[2], double d[2], double j[4])
{
    double x = u[0], y = u[1], k1 = c->k1, k2 = c->k2, p1 = c->p1, p2 = c->p2;
    double r2 = x * x + y * y;
    double radial = 1 + r2 * (k1 + r2 * k2);
    double slope = 2 * (k1 + 2 * r2 * k2); /* of radial: slope * x along x, slope * y along y */
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

static bool is_pinhole(const struct scene_camera *c)
{
    return c->k1 == 0 && c->k2 == 0 && c->p1 == 0 && c->p2 == 0;
}

void scene_camera_ray(const struct scene_camera *camera, double x, double y, double origin[3],
                      double direction[3])
{
    const double d[2] = {(x - camera->center_x) / camera->focal_x,
                         (y - camera->center_y) / camera->focal_y};
    double u[2] = {d[0], d[1]};
    if (!is_pinhole(camera))
        undistort(camera, d, u);
    const double local[3] = {u[0], -u[1], -1};
    double squared = 0;
    for (int i = 0; i < 3; i++) {
        const float *row = camera->pose + (ptrdiff_t)4 * i;
        direction[i] = row[0] * local[0] + row[1] * local[1] + row[2] * local[2];
        origin[i] = row[3];
        squared += direction[i] * direction[i];
    }
    for (int i = 0; i < 3; i++)
        direction[i] /= sqrt(squared);
}

bool scene_camera_project(const struct scene_camera *camera, const double point[3], double *x,
                          double *y)
{
    double local[3] = {0};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            local[i] += camera->pose[4 * j + i] * (point[j] - camera->pose[4 * j + 3]);
    if (!(local[2] < 0))
        return false;
    const double u[2] = {local[0] / -local[2], -local[1] / -local[2]};
    double d[2], j[4];
    distort(camera, u, d, j);
    *x = d[0] * camera->focal_x + camera->center_x;
    *y = d[1] * camera->focal_y + camera->center_y;
    return true;
}

bool scene_camera_invertible(const struct scene_camera *camera)
{
    if (is_pinhole(camera))
        return true;
    for (unsigned corner = 0; corner < 4; corner++) {
        const double d[2] = {
            ((corner & 1) * (double)camera->width - camera->center_x) / camera->focal_x,
            ((corner >> 1) * (double)camera->height - camera->center_y) / camera->focal_y};
        double u[2];
        if (undistort(camera, d, u) > 1e-9)
            return false;
    }
    return true;
}
