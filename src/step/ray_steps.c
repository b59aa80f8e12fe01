/* Counts the marching steps of training rays in fully occupied space, a baseline for sampling. */
#include <math.h>

#include "step/step.h"
#include "rays/rays.h"

/* Approximate number of rays over all views; each view has at least one. */
#define RAYS 8192.0

/* Returns the average steps of rays through the centres of `edge` x `edge` tiles of the picture. */
static double steps_of_view(const struct setup *setup, const struct scene_camera *camera,
                            uint32_t edge)
{
    double sum = 0.0, origin[3], direction[3];
    for (uint32_t i = 0; i < edge * edge; i++) {
        uint32_t column = i % edge, row = i / edge;
        double x = (column + 0.5) / edge * camera->width;
        double y = (row + 0.5) / edge * camera->height;
        if (scene_camera_ray(camera, x, y, origin, direction))
            sum += rays_count_steps(&setup->config, &setup->constants, origin, direction);
    }
    return sum / (edge * edge);
}

double setup_ray_steps(const struct setup *setup, const struct vkn_scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    uint32_t edge = (uint32_t)ceil(sqrt(RAYS / (double)train->camera_count));
    double sum = 0.0;
    for (size_t i = 0; i < train->camera_count; i++)
        sum += steps_of_view(setup, &train->cameras[i], edge);
    return sum / (double)train->camera_count;
}
