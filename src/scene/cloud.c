/* Reads a nerfstudio capture's point cloud (ply_file_path); finds the points that frames see. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/ply.h"
#include "scene/space.h"

#define LEAST_POINTS 100u /* visible points below which scene_nearest_point returns 0 */

#define MAX_FILE_SIZE ((size_t)16 << 30)
/* Largest number of points that are tested for each frame: a sufficient sample. */
#define MOST_TESTED   16384u

/* ---- visible points -------------------------------------------------------------------------- */

/* A frame's view of the cloud. */
struct view {
    struct scene_camera camera; /* in the dataset's axes and units, at the position 0 0 0 */
    double limit;               /* scene_camera_limit(&camera) */
    double least_cosine;        /* smallest cosine between the viewing axis and a corner's ray */
};

static struct view view_of(const struct transforms_frame *frame)
{
    const struct vkn_scene dataset = {.scale = 1};
    struct view view = {.least_cosine = lens_kinds[frame->lens.kind].panoramic ? -1 : 1};
    lens_apply(&frame->lens, frame->width, frame->height, 1, &view.camera);
    view.limit = scene_camera_limit(&view.camera);
    camera_set_frame(&dataset, frame, &view.camera);
    for (int i = 0; i < 3; i++)
        view.camera.pose[4 * i + 3] = 0;
    for (unsigned corner = 0; corner < 4; corner++) {
        double origin[3], direction[3], along = 0;
        scene_camera_ray(&view.camera, (corner & 1) * (double)frame->width,
                         (corner >> 1) * (double)frame->height, origin, direction);
        for (int i = 0; i < 3; i++)
            along -= direction[i] * frame->pose[4 * i + 2];
        view.least_cosine = fmin(view.least_cosine, along);
    }
    return view;
}

/* Returns the distance from the camera to a point that is in the image; 0 when the point is
 * outside. The cheap test for the cone around the image comes first. */
static double distance_in_view(const struct view *view, const struct transforms_frame *frame,
                               const double point[3])
{
    double squared = 0, along = 0, x = 0, y = 0, from[3];
    for (int i = 0; i < 3; i++) {
        from[i] = point[i] - frame->pose[4 * i + 3];
        squared += from[i] * from[i];
        along -= from[i] * frame->pose[4 * i + 2];
    }
    double distance = sqrt(squared);
    if (!(along >= view->least_cosine * distance) ||
        !scene_camera_project_within(&view->camera, view->limit, from, &x, &y))
        return 0;
    bool inside = x >= 0 && y >= 0 && x <= frame->width && y <= frame->height;
    return inside ? distance : 0;
}

struct bounding {
    const struct transforms *transforms;
    size_t stride; /* every `stride`-th point is tested */
};

static vkn_status bound_frame(void *context, size_t index)
{
    const struct bounding *bounding = context;
    const struct transforms *transforms = bounding->transforms;
    struct transforms_frame *frame = &transforms->frames[index];
    if (!lens_has_focal(&frame->lens))
        return VKN_OK; /* scene_assemble refuses the frame */
    double *depths = base_alloc(transforms->point_count / bounding->stride + 1, sizeof(*depths));
    if (depths == NULL)
        return VKN_ERROR;
    const struct view view = view_of(frame);
    size_t seen = 0;
    for (size_t i = 0; i < transforms->point_count; i += bounding->stride) {
        depths[seen] = distance_in_view(&view, frame, transforms->points[i].position);
        seen += depths[seen] > 0 ? 1 : 0;
    }
    space_set_bounds(frame, depths, seen);
    free(depths);
    return VKN_OK;
}

vkn_status cloud_set_bounds(struct transforms *transforms)
{
    struct bounding bounding = {transforms, transforms->point_count / MOST_TESTED + 1};
    return base_parallel(transforms->count, bound_frame, &bounding, NULL);
}

/* ---- the file -------------------------------------------------------------------------------- */

static vkn_status read_points(const char *file, struct transforms *transforms)
{
    char *data = NULL;
    size_t size = 0;
    struct ply cloud = {0};
    BASE_TRY(base_file_read(file, MAX_FILE_SIZE, &data, &size));
    vkn_status status = ply_parse(file, data, size, &cloud);
    free(data);
    if (status != VKN_OK) {
        ply_free(&cloud);
        return status;
    }
    transforms->points = cloud.points;
    transforms->point_count = cloud.count;
    transforms->left_out = cloud.left_out;
    return cloud_set_bounds(transforms);
}

vkn_status cloud_read(struct transforms *transforms)
{
    if (transforms->cloud_name == NULL)
        return VKN_OK;
    char *folder = base_path_folder(transforms->file);
    char *file = folder != NULL ? base_path_join(folder, transforms->cloud_name) : NULL;
    vkn_status status = file != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && base_file_exists(file))
        status = read_points(file, transforms);
    else if (status == VKN_OK)
        base_log(BASE_LOG_WARNING,
                 "%s: ply_file_path: there is no file %s; the scene has no points",
                 transforms->file, file);
    free(file);
    free(folder);
    return status;
}

double scene_nearest_point(const struct vkn_scene *scene, const struct scene_camera *camera)
{
    double limit = scene_camera_limit(camera), nearest = 0;
    double *distances = base_alloc(scene->point_count + 1, sizeof *distances);
    size_t seen = 0;
    for (size_t i = 0; i < scene->point_count && distances; i++) {
        double point[3], squared = 0, x, y;
        for (int axis = 0; axis < 3; axis++) {
            point[axis] = (double)scene->points[i].position[axis];
            double difference = point[axis] - (double)camera->pose[4 * axis + 3];
            squared += difference * difference;
        }
        if (scene_camera_project_within(camera, limit, point, &x, &y) && x >= 0 && y >= 0 &&
            x < camera->width && y < camera->height)
            distances[seen++] = sqrt(squared);
    }
    if (seen >= LEAST_POINTS)
        nearest = space_quantile(distances, seen, 0.01);
    free(distances);
    return nearest;
}
