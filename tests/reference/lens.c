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

void reference_project(const struct scene_camera *camera, const double point[3], double pixel[2])
{
    double local[3], image[2];
    to_camera(camera, point, local);
    if (camera->lens == VKN_LENS_FISHEYE)
        fisheye(camera, local, image);
    else if (camera->lens == VKN_LENS_EQUIRECTANGULAR)
        panorama(local, image);
    else if (camera->lens == VKN_LENS_THIN_PRISM_FISHEYE)
        thin_prism(camera, local, image);
    else
        perspective(camera, local, image);
    pixel[0] = camera->focal_x * image[0] + camera->center_x;
    pixel[1] = camera->focal_y * image[1] + camera->center_y;
}
