/* Camera paths from a file. */
#include <math.h>
#include <stdlib.h>

#include "scene/transforms.h"

/* Size of a frame's picture: its own w and h, or those of `like`. */
static vkn_status frame_size(const struct transforms *path, const struct transforms_frame *frame,
                             const struct scene_camera *like, uint32_t size[2])
{
    const double *given = frame->lens.size;
    size[0] = given[0] > 0 ? (uint32_t)llround(given[0]) : like->width;
    size[1] = given[1] > 0 ? (uint32_t)llround(given[1]) : like->height;
    if (size[0] > SCENE_MAX_IMAGE_SIZE || size[1] > SCENE_MAX_IMAGE_SIZE)
        return base_fail(VKN_BAD_INPUT, "%s: frames[%zu]: w and h: %ux%u is more than %ux%u",
                         path->file, frame->index, size[0], size[1], SCENE_MAX_IMAGE_SIZE,
                         SCENE_MAX_IMAGE_SIZE);
    return VKN_OK;
}

/* The lens of `like` without its distortion, for another size: the vertical field of view stays. */
static void lens_like(const struct scene_camera *like, const uint32_t size[2],
                      struct scene_camera *camera)
{
    float ratio = (float)size[1] / (float)like->height;
    camera->width = size[0];
    camera->height = size[1];
    camera->focal_x = like->focal_x * ratio;
    camera->focal_y = like->focal_y * ratio;
    camera->center_x = like->center_x / (float)like->width * (float)size[0];
    camera->center_y = like->center_y * ratio;
}

vkn_status scene_path_cameras(const struct scene *scene, const struct transforms *path,
                              const struct scene_camera *like, struct scene_camera **cameras,
                              size_t *count)
{
    if (path->count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: frames: no frames", path->file);
    struct scene_camera *made = base_alloc(path->count, sizeof(*made));
    if (made == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < path->count; i++) {
        const struct transforms_frame *frame = &path->frames[i];
        uint32_t size[2];
        vkn_status status = frame_size(path, frame, like, size);
        if (status != VKN_OK) {
            free(made);
            return status;
        }
        if (lens_has_focal(&frame->lens))
            lens_apply(&frame->lens, size[0], size[1], 1, &made[i]);
        else
            lens_like(like, size, &made[i]);
        scene_place_camera(scene, frame, &made[i]);
    }
    *cameras = made;
    *count = path->count;
    return VKN_OK;
}

vkn_status scene_read_path(const struct scene *scene, const char *file,
                           const struct scene_camera *like, struct scene_camera **cameras,
                           size_t *count)
{
    *cameras = NULL;
    *count = 0;
    if (like == NULL)
        like = &scene->splits[SCENE_TRAIN].cameras[0];
    struct transforms path;
    vkn_status status = transforms_read(file, false, &path);
    if (status == VKN_OK)
        status = scene_path_cameras(scene, &path, like, cameras, count);
    transforms_free(&path);
    return status;
}
