/* Surface normals from a depth map. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/views.h"

struct surface {
    const struct scene_camera *camera;
    const struct vkn_picture *picture;
    double *points; /* where each pixel's ray ended, from the camera; 3 per pixel */
};

static bool solid(const struct surface *surface, int64_t x, int64_t y)
{
    const struct vkn_picture *picture = surface->picture;
    if (x < 0 || y < 0 || x >= picture->width || y >= picture->height)
        return false;
    size_t at = (size_t)y * picture->width + (size_t)x;
    return picture->opacity[at] >= RENDER_SOLID_OPACITY && picture->depth[at] > 0.0F;
}

static const double *point(const struct surface *surface, int64_t x, int64_t y)
{
    return surface->points + 3 * ((size_t)y * surface->picture->width + (size_t)x);
}

/* Work of base_parallel: one row of points. */
static vkn_status place_row(void *context, size_t y)
{
    const struct surface *surface = context;
    for (size_t x = 0; x < surface->picture->width; x++) {
        size_t at = y * surface->picture->width + x;
        double origin[3], direction[3];
        scene_camera_ray(surface->camera, (double)x + 0.5, (double)y + 0.5, origin, direction);
        double along = scene_camera_depth_scale(surface->camera, direction);
        for (size_t i = 0; i < 3; i++)
            surface->points[3 * at + i] =
                along > 0.0 ? direction[i] / along * (double)surface->picture->depth[at] : 0.0;
    }
    return VKN_OK;
}

/* The step along (dx, dy) over the surface: to the side that is nearer in depth, which is most
 * likely the same surface. False when neither side is solid. */
static bool tangent(const struct surface *surface, int64_t x, int64_t y, int dx, int dy,
                    double step[3])
{
    const double *here = point(surface, x, y);
    double shortest = HUGE_VAL;
    for (int side = -1; side <= 1; side += 2) {
        int64_t to_x = x + (int64_t)side * dx, to_y = y + (int64_t)side * dy;
        if (!solid(surface, to_x, to_y))
            continue;
        const double *there = point(surface, to_x, to_y);
        double difference[3], length = 0.0;
        for (int i = 0; i < 3; i++) {
            difference[i] = side * (there[i] - here[i]);
            length += difference[i] * difference[i];
        }
        if (length < shortest)
            memcpy(step, difference, sizeof(difference));
        shortest = fmin(shortest, length);
    }
    return shortest < HUGE_VAL;
}

/* Towards the camera, unit length; false where there is no surface. */
static bool normal_at(const struct surface *surface, int64_t x, int64_t y, double normal[3])
{
    double right[3] = {0}, down[3] = {0};
    if (!solid(surface, x, y) || !tangent(surface, x, y, 1, 0, right) ||
        !tangent(surface, x, y, 0, 1, down))
        return false;
    normal[0] = down[1] * right[2] - down[2] * right[1];
    normal[1] = down[2] * right[0] - down[0] * right[2];
    normal[2] = down[0] * right[1] - down[1] * right[0];
    double length = sqrt(normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]);
    for (int i = 0; i < 3; i++)
        normal[i] /= length;
    return length > 0.0;
}

vkn_status render_normals(const struct scene_camera *camera, const struct vkn_picture *picture,
                          float *rgb)
{
    struct surface surface = {camera, picture, NULL};
    surface.points = base_alloc((size_t)picture->width * picture->height, 3 * sizeof(double));
    if (!surface.points)
        return VKN_ERROR;
    vkn_status status = base_parallel(picture->height, place_row, &surface, NULL);
    for (uint32_t y = 0; y < picture->height && status == VKN_OK; y++) {
        for (uint32_t x = 0; x < picture->width; x++) {
            double normal[3] = {-1.0, -1.0, -1.0}; /* shown as black */
            if (!normal_at(&surface, x, y, normal))
                normal[0] = normal[1] = normal[2] = -1.0;
            for (size_t i = 0; i < 3; i++)
                rgb[3 * ((size_t)y * picture->width + x) + i] = (float)(0.5 * normal[i] + 0.5);
        }
    }
    free(surface.points);
    return status;
}
