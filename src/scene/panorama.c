/* Makes cameras of full equirectangular panoramas. */
#include <math.h>
#include <string.h>

#include "scene/camera_path.h"

/* Removes the pitch and roll of a pose, unless the camera looks along `up`. */
static void make_level(const double up[3], float pose[12])
{
    double position[3], back[3], level[12], along = 0;
    for (int i = 0; i < 3; i++)
        along += (double)pose[4 * i + 2] * up[i];
    for (int i = 0; i < 3; i++) {
        position[i] = (double)pose[4 * i + 3];
        back[i] = (double)pose[4 * i + 2] - along * up[i];
    }
    if (vector_normalize(back) < 1e-3)
        return;
    look_along(position, back, up, level);
    for (int i = 0; i < 12; i++)
        pose[i] = (float)level[i];
}

struct scene_camera scene_panorama(const struct scene_camera *camera, uint32_t width,
                                   uint32_t height, const double *up)
{
    if (height == 0)
        height = width > 0 ? (width + 1) / 2 : camera->height;
    if (width == 0)
        width = 2 * height;
    struct scene_camera panorama = {.width = width,
                                    .height = height,
                                    .focal_x = (float)lens_focal_panorama(width, 0),
                                    .focal_y = (float)lens_focal_panorama(height, 1),
                                    .center_x = 0.5F * (float)width,
                                    .center_y = 0.5F * (float)height,
                                    .lens = VKN_LENS_EQUIRECTANGULAR,
                                    .time = camera->time};
    memcpy(panorama.pose, camera->pose, sizeof panorama.pose);
    if (up != NULL)
        make_level(up, panorama.pose);
    return panorama;
}
