/* Computes rays through image positions and projects points, in double precision. */
#include <math.h>

#include "scene/transforms.h"

bool scene_is_perspective(enum vkn_lens lens)
{
    return lens_kinds[lens].perspective;
}

bool scene_is_panoramic(enum vkn_lens lens)
{
    return lens_kinds[lens].panoramic;
}

bool scene_camera_ray(const struct scene_camera *camera, double x, double y, double origin[3],
                      double direction[3])
{
    const double d[2] = {(x - camera->center_x) / camera->focal_x,
                         (y - camera->center_y) / camera->focal_y};
    double local[3], squared = 0;
    bool reached = lens_kinds[camera->lens].ray(camera, d, local);
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
    if (!lens_kinds[camera->lens].project(camera, limit, local, d))
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
    return lens_kinds[camera->lens].perspective ? forward : 1;
}

bool scene_camera_invertible(const struct scene_camera *camera)
{
    if (camera->lens == VKN_LENS_PERSPECTIVE && !lens_is_distorted(camera))
        return true;
    for (unsigned corner = 0; corner < 4; corner++) {
        double origin[3], direction[3];
        if (!scene_camera_ray(camera, (corner & 1) * (double)camera->width,
                              (corner >> 1) * (double)camera->height, origin, direction))
            return false;
    }
    return true;
}
