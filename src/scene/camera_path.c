/* Reads camera paths from files of all kinds, and makes cameras from paths like transforms.json. */
#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "scene/camera_path.h"

#define MAX_JSON_SIZE ((size_t)64 << 20)

/* Sets `size` to the frame's w and h or, without them, to the size of `like`. */
static vkn_status frame_size(const struct transforms *transforms,
                             const struct transforms_frame *frame, const struct scene_camera *like,
                             uint32_t size[2])
{
    const double *given = frame->lens.size;
    size[0] = given[0] > 0 ? (uint32_t)llround(given[0]) : like->width;
    size[1] = given[1] > 0 ? (uint32_t)llround(given[1]) : like->height;
    if (size[0] > SCENE_MAX_IMAGE_SIZE || size[1] > SCENE_MAX_IMAGE_SIZE)
        return base_fail(VKN_BAD_INPUT, "%s: frames[%zu]: w and h: %ux%u is more than %ux%u",
                         transforms->file, frame->index, size[0], size[1], SCENE_MAX_IMAGE_SIZE,
                         SCENE_MAX_IMAGE_SIZE);
    return VKN_OK;
}

/* Sets the intrinsics of the pinhole *like, resized without changing its vertical field of view. */
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

vkn_status camera_path_cameras(const struct vkn_scene *scene, const struct transforms *transforms,
                               const struct scene_camera *like, struct scene_camera **cameras,
                               size_t *count)
{
    if (transforms->count == 0)
        return base_fail(VKN_BAD_INPUT, "%s: frames: no frames", transforms->file);
    struct scene_camera *made = base_alloc(transforms->count, sizeof(*made));
    if (made == NULL)
        return VKN_ERROR;
    for (size_t i = 0; i < transforms->count; i++) {
        const struct transforms_frame *frame = &transforms->frames[i];
        uint32_t size[2];
        vkn_status status = frame_size(transforms, frame, like, size);
        if (status != VKN_OK) {
            free(made);
            return status;
        }
        if (lens_has_focal(&frame->lens))
            lens_apply(&frame->lens, size[0], size[1], 1, &made[i]);
        else
            lens_like(like, size, &made[i]);
        camera_set_frame(scene, frame, &made[i]);
    }
    *cameras = made;
    *count = transforms->count;
    return VKN_OK;
}

static vkn_status parse_frames(const struct vkn_scene *scene, const char *file, const cJSON *json,
                               const struct scene_camera *like,
                               struct scene_camera_path *camera_path)
{
    struct transforms transforms;
    vkn_status status = transforms_parse(file, json, false, &transforms);
    if (status == VKN_OK)
        status = camera_path_cameras(scene, &transforms, like, &camera_path->cameras,
                                     &camera_path->count);
    transforms_free(&transforms);
    return status;
}

vkn_status camera_path_parse(const struct vkn_scene *scene, const char *file,
                             const struct cJSON *json, const struct camera_path_space *space,
                             const struct scene_camera *like, struct scene_camera_path *camera_path)
{
    *camera_path = (struct scene_camera_path){0};
    if (camera_path_is_nerfstudio(json))
        return camera_path_parse_nerfstudio(scene, file, json, space, camera_path);
    if (camera_path_is_ngp(json))
        return camera_path_parse_ngp(scene, file, json, like, camera_path);
    if (camera_path_is_keyframes(json))
        return camera_path_parse_keyframes(scene, file, json, like, camera_path);
    if (cJSON_IsObject(json) && !cJSON_HasObjectItem(json, "frames"))
        return base_fail(
            VKN_BAD_INPUT,
            "%s: no camera path: it has none of the keys camera_path, keyframes, path and frames",
            file);
    return parse_frames(scene, file, json, like, camera_path);
}

vkn_status scene_read_camera_path(const struct vkn_scene *scene, const char *file,
                                  const char *dataparser, const struct scene_camera *like,
                                  struct scene_camera_path *camera_path)
{
    *camera_path = (struct scene_camera_path){0};
    struct camera_path_space space = camera_path_same_space;
    cJSON *json = NULL;
    struct scene_camera pinhole =
        camera_path_undistorted(like != NULL ? like : &scene->splits[SCENE_TRAIN].cameras[0]);
    char *text = NULL;
    size_t size = 0;
    BASE_TRY(base_text_read_any(file, MAX_JSON_SIZE, &text, &size));
    vkn_status status = base_json_parse(file, text, size, &json);
    free(text);
    if (status == VKN_OK && camera_path_is_nerfstudio(json))
        status = camera_path_read_space(scene, file, dataparser, &space);
    if (status == VKN_OK)
        status = camera_path_parse(scene, file, json, &space, &pinhole, camera_path);
    cJSON_Delete(json);
    return status;
}

vkn_status vkn_scene_read_path(const struct vkn_scene *scene, const char *file,
                               const char *dataparser, struct vkn_camera_path *path)
{
    BASE_C_LOCALE;
    BASE_NEED(scene);
    BASE_NEED(file);
    BASE_NEED(path);
    struct scene_camera_path read;
    struct vkn_camera_path made = {0}, *filled = &made;
    BASE_TRY(scene_read_camera_path(scene, file, dataparser, NULL, &read));
    made.cameras = base_alloc(read.count, sizeof *made.cameras);
    made.count = read.count;
    made.fps = read.fps;
    for (size_t i = 0; i < read.count && made.cameras; i++) {
        made.cameras[i] = scene_camera_to_public(&read.cameras[i], scene->scale, scene->offset);
        made.cameras[i].size = sizeof made.cameras[i];
    }
    free(read.cameras);
    vkn_status status = made.cameras ? BASE_FILL(vkn_camera_path, filled, path, fps) : VKN_ERROR;
    if (status != VKN_OK)
        free(made.cameras);
    return status;
}

vkn_status vkn_scene_check_path(const struct vkn_scene *scene, const char *file)
{
    BASE_C_LOCALE;
    BASE_NEED(scene);
    BASE_NEED(file);
    struct scene_camera_path path;
    BASE_TRY(scene_read_camera_path(scene, file, NULL, NULL, &path));
    free(path.cameras);
    return VKN_OK;
}
