/* Makes cameras on a circle around the focus point; finds a scene's focus point and up vector. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/camera_path.h"

#define PI 3.14159265358979323846

/* A circle around the axis through `center` along `up`, `height` above the centre. */
struct circle {
    double center[3], up[3], start[3], side[3]; /* start, side and up are orthonormal */
    double radius, height;
};

void scene_up(const struct scene_split *train, double up[3])
{
    memset(up, 0, 3 * sizeof(double));
    for (size_t n = 0; n < train->camera_count; n++)
        for (int i = 0; i < 3; i++)
            up[i] += train->cameras[n].pose[4 * i + 1];
    if (!(vector_normalize(up) > 1e-6 * (double)train->camera_count)) {
        up[0] = up[1] = 0;
        up[2] = 1;
        return;
    }
    for (int axis = 0; axis < 3; axis++) {
        if (fabs(up[axis]) < cos(PI / 6))
            continue;
        for (int i = 0; i < 3; i++)
            up[i] = i == axis ? copysign(1, up[axis]) : 0;
        return;
    }
}

vkn_status scene_find_focus(const struct scene_split *train, bool *found, double point[3])
{
    double(*views)[6] = base_alloc(train->camera_count, sizeof(*views));
    if (views == NULL)
        return VKN_ERROR;
    size_t view_count = 0;
    for (size_t n = 0; n < train->camera_count; n++) {
        if (lens_kinds[train->cameras[n].lens].panoramic)
            continue; /* a panorama has no viewing direction */
        for (int i = 0; i < 3; i++) {
            views[view_count][i] = train->cameras[n].pose[4 * i + 3];
            views[view_count][3 + i] = -train->cameras[n].pose[4 * i + 2];
        }
        vector_normalize(views[view_count++] + 3);
    }
    *found = scene_focus_point((const double(*)[6])views, view_count, point);
    free(views);
    return VKN_OK;
}

/* Returns the cameras' focus point or, without one, the middle of the reconstructed region. */
static vkn_status find_center(const struct scene_split *train, double center[3])
{
    bool found = false;
    BASE_TRY(scene_find_focus(train, &found, center));
    if (!found)
        center[0] = center[1] = center[2] = 0.5;
    return VKN_OK;
}

double scene_mean_distance(const struct scene_split *train, const double point[3])
{
    double distance = 0;
    for (size_t n = 0; n < train->camera_count; n++) {
        double from[3];
        for (int i = 0; i < 3; i++)
            from[i] = train->cameras[n].pose[4 * i + 3] - point[i];
        distance += sqrt(vector_dot(from, from)) / (double)train->camera_count;
    }
    return distance;
}

vkn_status vkn_scene_find_look(const vkn_scene *scene, struct vkn_scene_look *look)
{
    BASE_NEED(scene);
    BASE_NEED(look);
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    struct vkn_scene_look computed, *found = &computed;
    BASE_TRY(find_center(train, computed.point));
    scene_up(train, computed.up);
    computed.unit_length = scene->unit_length;
    computed.distance = scene_mean_distance(train, computed.point) / scene->scale;
    for (int i = 0; i < 3; i++) {
        computed.point[i] = (computed.point[i] - scene->offset[i]) / scene->scale;
        computed.cube[i] = (0.5 - 0.5 * scene->aabb_scale - scene->offset[i]) / scene->scale;
        computed.cube[3 + i] = (0.5 + 0.5 * scene->aabb_scale - scene->offset[i]) / scene->scale;
    }
    return BASE_FILL(vkn_scene_look, found, look, cube);
}

vkn_status vkn_scene_look_at(const vkn_scene *scene, double *point, double *up)
{
    struct vkn_scene_look look = {.size = sizeof look};
    BASE_NEED(scene);
    BASE_NEED(point);
    BASE_TRY(vkn_scene_find_look(scene, &look));
    memcpy(point, look.point, sizeof look.point);
    if (up)
        memcpy(up, look.up, sizeof look.up);
    return VKN_OK;
}

/* Computes the circle from the mean height and distance of the training cameras. The circle starts
 * at the first camera's side. */
static vkn_status find_circle(const struct scene_split *train, struct circle *circle)
{
    BASE_TRY(find_center(train, circle->center));
    scene_up(train, circle->up);
    double height = 0;
    for (size_t n = 0; n < train->camera_count; n++) {
        double from[3];
        for (int i = 0; i < 3; i++)
            from[i] = train->cameras[n].pose[4 * i + 3] - circle->center[i];
        height += vector_dot(from, circle->up) / (double)train->camera_count;
        if (n == 0)
            memcpy(circle->start, from, sizeof(from));
    }
    double distance = fmax(scene_mean_distance(train, circle->center), 1e-3);
    circle->height = height;
    circle->radius = sqrt(fmax(distance * distance - height * height, 0.01 * distance * distance));

    double along = vector_dot(circle->start, circle->up);
    for (int i = 0; i < 3; i++)
        circle->start[i] -= along * circle->up[i];
    if (vector_normalize(circle->start) < 1e-6) { /* camera on the axis: any direction */
        const double other[3] = {fabs(circle->up[0]) < 0.5 ? 1.0 : 0.0,
                                 fabs(circle->up[0]) < 0.5 ? 0.0 : 1.0, 0};
        vector_cross(circle->up, other, circle->start);
        vector_normalize(circle->start);
    }
    vector_cross(circle->up, circle->start, circle->side);
    return VKN_OK;
}

static void set_pose(const struct circle *circle, double angle, float pose[12])
{
    double position[3], back[3], exact[12];
    for (int i = 0; i < 3; i++) {
        back[i] = circle->radius * (cos(angle) * circle->start[i] + sin(angle) * circle->side[i]) +
                  circle->height * circle->up[i];
        position[i] = circle->center[i] + back[i];
    }
    look_along(position, back, circle->up, exact);
    for (int i = 0; i < 12; i++)
        pose[i] = (float)exact[i];
}

vkn_status scene_orbit(const struct vkn_scene *scene, uint32_t count, struct scene_camera **cameras)
{
    *cameras = NULL;
    if (count == 0)
        return base_fail(VKN_BAD_INPUT, "orbit: the number of views is 0");
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    struct circle circle;
    BASE_TRY(find_circle(train, &circle));
    struct scene_camera *made = base_alloc(count, sizeof(*made));
    if (made == NULL)
        return VKN_ERROR;
    for (uint32_t i = 0; i < count; i++) {
        const struct scene_camera *first = &train->cameras[0];
        made[i] = camera_path_undistorted(first);
        made[i].time = scene->dynamic && count > 1 ? (float)i / (float)(count - 1) : first->time;
        set_pose(&circle, 2 * PI * i / count, made[i].pose);
    }
    *cameras = made;
    return VKN_OK;
}
