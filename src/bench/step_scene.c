/* Creates the scene for training steps: a ball in the middle of the unit cube. */
#include <math.h>
#include <stdlib.h>

#include "bench/suites.h"

#define DISTANCE 1.32 /* of the cameras from the centre, as in instant-ngp's Blender scenes */
#define RADIUS   0.28
#define FOCAL    1.39 /* in sides of the image; 40 degrees of view */

static void cross(const double a[3], const double b[3], double c[3])
{
    for (int i = 0; i < 3; i++)
        c[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

/* Places the camera on a spiral around the ball, looking at its centre. */
static void place_camera(struct scene_camera *camera, uint32_t index, uint32_t views, uint32_t size)
{
    double height = 0.9 - 1.2 * (index + 0.5) / views, angle = 2.399963 * index; /* golden angle */
    double flat = sqrt(1 - height * height);
    double back[3] = {flat * cos(angle), flat * sin(angle), height}, right[3], up[3];
    const double above[3] = {0, 0, 1};
    cross(above, back, right);
    for (int i = 0; i < 3; i++)
        right[i] /= flat;
    cross(back, right, up);
    *camera = (struct scene_camera){.width = size,
                                    .height = size,
                                    .focal_x = (float)(FOCAL * size),
                                    .focal_y = (float)(FOCAL * size),
                                    .center_x = 0.5f * (float)size,
                                    .center_y = 0.5f * (float)size,
                                    .first_pixel = (uint64_t)index * size * size};
    for (int i = 0; i < 3; i++) {
        camera->pose[4 * i] = (float)right[i];
        camera->pose[4 * i + 1] = (float)up[i];
        camera->pose[4 * i + 2] = (float)back[i];
        camera->pose[4 * i + 3] = (float)(0.5 + DISTANCE * back[i]);
    }
}

/* Returns the colour of a pixel; transparent outside of the ball. */
static uint32_t shade(const struct scene_camera *camera, uint32_t x, uint32_t y)
{
    double origin[3], direction[3], along = 0, square = 0;
    scene_camera_ray(camera, x + 0.5, y + 0.5, origin, direction);
    for (int i = 0; i < 3; i++) {
        along -= (origin[i] - 0.5) * direction[i];
        square += (origin[i] - 0.5) * (origin[i] - 0.5);
    }
    double discriminant = RADIUS * RADIUS - (square - along * along);
    if (discriminant < 0)
        return 0;
    uint32_t pixel = 0xff000000u;
    for (int i = 0; i < 3; i++) {
        double normal = (origin[i] - 0.5 + (along - sqrt(discriminant)) * direction[i]) / RADIUS;
        double value = 0.5 + 0.3 * normal + 0.2 * sin(20 * normal);
        pixel |= (uint32_t)lrint(255 * fmin(fmax(value, 0), 1)) << (8 * i);
    }
    return pixel;
}

vkn_status step_make_scene(uint32_t views, uint32_t size, struct vkn_scene **made)
{
    struct vkn_scene *scene = *made = base_alloc(1, sizeof *scene);
    if (!scene)
        return VKN_ERROR;
    struct scene_split *train = &scene->splits[SCENE_TRAIN];
    *scene = (struct vkn_scene){.scale = 1, .aabb_scale = 1, .downscale = 1, .load_downscale = 1};
    scene->path = base_format("a ball");
    train->camera_count = views;
    train->pixel_count = (uint64_t)views * size * size;
    train->cameras = base_alloc(views, sizeof *train->cameras);
    train->pixels = base_alloc(train->pixel_count, sizeof *train->pixels);
    train->has_alpha = true;
    if (!scene->path || !train->cameras || !train->pixels) {
        train->camera_count = train->cameras ? views : 0;
        scene_close(made);
        return VKN_ERROR;
    }
    for (uint32_t v = 0; v < views; v++) {
        struct scene_camera *camera = &train->cameras[v];
        place_camera(camera, v, views, size);
        for (uint32_t i = 0; i < size * size; i++)
            train->pixels[camera->first_pixel + i] = shade(camera, i % size, i / size);
    }
    return VKN_OK;
}
