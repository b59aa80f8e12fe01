/* Reference projection by the formulas of COLMAP and OpenCV, in camera axes: x right, y down, z
 * forward. */
#include "reference/reference.h"

#include <math.h>

/* World to camera: the pose's columns are right, up and back. */
static void to_camera(const struct scene_camera *camera, const double point[3], double local[3])
{
    for (int axis = 0; axis < 3; axis++) {
        double along = 0;
        for (int i = 0; i < 3; i++)
            along +=
                (double)camera->pose[4 * i + axis] * (point[i] - (double)camera->pose[4 * i + 3]);
        local[axis] = axis == 0 ? along : -along;
    }
}

/* OpenCV, "Camera Calibration and 3D Reconstruction" (without the rational terms). */
static void perspective(const struct scene_camera *c, const double p[3], double image[2])
{
    double x = p[0] / p[2], y = p[1] / p[2], r = sqrt(x * x + y * y);
    double radial = 1 + c->k1 * pow(r, 2) + c->k2 * pow(r, 4) + c->k3 * pow(r, 6);
    image[0] = x * radial + 2 * c->p1 * x * y + c->p2 * (r * r + 2 * x * x);
    image[1] = y * radial + c->p1 * (r * r + 2 * y * y) + 2 * c->p2 * x * y;
}

/* OpenCV, "Fisheye camera model", with the angle to the axis instead of atan(r), which ends at 90
 * degrees. */
static void fisheye(const struct scene_camera *c, const double p[3], double image[2])
{
    double across = sqrt(p[0] * p[0] + p[1] * p[1]);
    double theta = acos(p[2] / sqrt(across * across + p[2] * p[2]));
    double bent = theta + c->k1 * pow(theta, 3) + c->k2 * pow(theta, 5) + c->k3 * pow(theta, 7) +
                  c->k4 * pow(theta, 9);
    for (int i = 0; i < 2; i++)
        image[i] = bent * p[i] / across;
}

/* Longitude and latitude on the sphere, y down. */
static void panorama(const double p[3], double image[2])
{
    image[0] = atan2(p[0], p[2]);
    image[1] = asin(p[1] / sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]));
}

/* COLMAP, src/colmap/sensor/models.h: the point's direction at a radius equal to its angle, to
 * which the distortion of each axis is added. */
static void thin_prism(const struct scene_camera *c, const double p[3], double image[2])
{
    double across = sqrt(p[0] * p[0] + p[1] * p[1]);
    double theta = acos(p[2] / sqrt(across * across + p[2] * p[2]));
    double u = theta * p[0] / across, v = theta * p[1] / across;
    double radial = c->k1 * pow(theta, 2) + c->k2 * pow(theta, 4) + c->k3 * pow(theta, 6) +
                    c->k4 * pow(theta, 8);
    image[0] = u + u * radial + 2 * c->p1 * u * v + c->p2 * (theta * theta + 2 * u * u) +
               c->sx1 * theta * theta;
    image[1] = v + v * radial + 2 * c->p2 * u * v + c->p1 * (theta * theta + 2 * v * v) +
               c->sy1 * theta * theta;
}

/* Computes the distorted image position, in focal lengths, of a direction in camera axes. */
static void distort(const struct scene_camera *camera, const double local[3], double image[2])
{
    if (camera->lens == VKN_LENS_FISHEYE)
        fisheye(camera, local, image);
    else if (camera->lens == VKN_LENS_EQUIRECTANGULAR)
        panorama(local, image);
    else if (camera->lens == VKN_LENS_THIN_PRISM_FISHEYE)
        thin_prism(camera, local, image);
    else
        perspective(camera, local, image);
}

void reference_project(const struct scene_camera *camera, const double point[3], double pixel[2])
{
    double local[3], image[2];
    to_camera(camera, point, local);
    distort(camera, local, image);
    pixel[0] = camera->focal_x * image[0] + camera->center_x;
    pixel[1] = camera->focal_y * image[1] + camera->center_y;
}

/* Like `distort`, after k1, k2, p1 and p2 have changed, on which the position depends linearly. */
static void distort_changed(const struct scene_camera *camera, const double change[8],
                            const double local[3], double image[2])
{
    distort(camera, local, image);
    for (int k = 0; k < 4; k++) {
        struct scene_camera changed = *camera;
        double low[2], high[2];
        changed.distortion[k] = -1;
        distort(&changed, local, low);
        changed.distortion[k] = 1;
        distort(&changed, local, high);
        for (int i = 0; i < 2; i++)
            image[i] += change[4 + k] * (high[i] - low[i]) / 2;
    }
}

/* Moves a direction by multiples of two directions that are perpendicular to it. */
static void move(const double local[3], const double by[2], double moved[3])
{
    double length = sqrt(local[0] * local[0] + local[1] * local[1] + local[2] * local[2]);
    double axis = fabs(local[0]) < 0.6 * length, first[3], second[3];
    const double any[3] = {axis, 1 - axis, 0};
    for (int i = 0; i < 3; i++) {
        int a = (i + 1) % 3, b = (i + 2) % 3;
        first[i] = (local[a] * any[b] - local[b] * any[a]) / length;
    }
    for (int i = 0; i < 3; i++) {
        int a = (i + 1) % 3, b = (i + 2) % 3;
        second[i] = (local[a] * first[b] - local[b] * first[a]) / length;
        moved[i] = local[i] + by[0] * first[i] + by[1] * second[i];
    }
}

/* Finds the direction with Newton's method, whose Jacobian is made of central differences. */
void reference_change_lens(const struct scene_camera *camera, const double change[8],
                           const double before[3], double after[3])
{
    const double step = 1e-5;
    double local[3], target[2], point[3], length = 0;
    for (int i = 0; i < 3; i++)
        point[i] = (double)camera->pose[4 * i + 3] + before[i];
    to_camera(camera, point, local);
    distort(camera, local, target);
    for (int i = 0; i < 2; i++)
        target[i] = (target[i] - change[2 + i]) * exp(-change[i]);
    for (int round = 0; round < 12; round++) {
        double image[2], slopes[2][2], moved[3];
        distort_changed(camera, change, local, image);
        for (int k = 0; k < 2; k++) {
            const double low[2] = {k ? 0 : -step, k ? -step : 0}, high[2] = {-low[0], -low[1]};
            double below[2], above[2];
            move(local, low, moved);
            distort_changed(camera, change, moved, below);
            move(local, high, moved);
            distort_changed(camera, change, moved, above);
            for (int i = 0; i < 2; i++)
                slopes[i][k] = (above[i] - below[i]) / (2 * step);
        }
        double x = target[0] - image[0], y = target[1] - image[1];
        double determinant = slopes[0][0] * slopes[1][1] - slopes[0][1] * slopes[1][0];
        const double by[2] = {(slopes[1][1] * x - slopes[0][1] * y) / determinant,
                              (slopes[0][0] * y - slopes[1][0] * x) / determinant};
        move(local, by, moved);
        for (int i = 0; i < 3; i++)
            local[i] = moved[i];
    }
    for (int i = 0; i < 3; i++) {
        after[i] = (double)camera->pose[4 * i] * local[0] -
                   (double)camera->pose[4 * i + 1] * local[1] -
                   (double)camera->pose[4 * i + 2] * local[2];
        length += after[i] * after[i];
    }
    for (int i = 0; i < 3; i++)
        after[i] /= sqrt(length);
}
