/* Reads vknerf's own camera paths: keyframes with a spline through them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/camera_path.h"

#define PI 3.14159265358979323846

#define DEFAULT_FPS   24.0
#define LEAST_ANGLE   1.0 /* degrees */
#define LARGEST_ANGLE 175.0

/* Indices of a keyframe's values. */
enum { POSITION = 0, LOOK_AT = 3, UP = 6, ANGLE = 9, TIME = 10, CHANNELS = 11 };

struct keyframes {
    const char *file;
    size_t count, frames;
    double fps;
    bool loop;
    uint32_t size[2]; /* 0: not given */
    double *values;   /* [count][CHANNELS] */
    double *times;    /* [count + 1] */
};

bool camera_path_is_keyframes(const struct cJSON *json)
{
    return cJSON_IsObject(json) && cJSON_HasObjectItem(json, "keyframes");
}

/* ---- reading --------------------------------------------------------------------------------- */

static vkn_status read_keyframe(const cJSON *json, const char *where, double values[CHANNELS])
{
    static const char *const names[] = {"position", "look_at", "up", "fov", "time"};
    if (!cJSON_IsObject(json))
        return base_json_fail(where, "(keyframe)", "not an object");
    BASE_TRY(base_json_only_keys(json, where, names, BASE_COUNT(names)));
    BASE_TRY(camera_path_numbers(json, "position", where, true, 3, values + POSITION));
    BASE_TRY(camera_path_numbers(json, "look_at", where, true, 3, values + LOOK_AT));
    BASE_TRY(camera_path_numbers(json, "up", where, false, 3, values + UP));
    BASE_TRY(
        base_json_number(json, "fov", where, false, LEAST_ANGLE, LARGEST_ANGLE, &values[ANGLE]));
    BASE_TRY(base_json_number(json, "time", where, false, 0, 1, &values[TIME]));
    double back[3], up[3];
    for (int i = 0; i < 3; i++) {
        back[i] = values[POSITION + i] - values[LOOK_AT + i];
        up[i] = values[UP + i];
    }
    if (!(vector_normalize(back) > 0))
        return base_json_fail(where, "look_at", "equals the camera's position");
    if (!(vector_normalize(up) > 0))
        return base_json_fail(where, "up", "is 0 0 0");
    memcpy(values + UP, up, sizeof(up));
    return VKN_OK;
}

/* Reads all keyframes. Absent up, fov and time are copied from the previous keyframe. */
static vkn_status read_all(const cJSON *list, const double defaults[CHANNELS],
                           struct keyframes *keys)
{
    size_t length = strlen(keys->file) + 48;
    char *where = base_alloc(length, 1);
    keys->values = base_alloc(keys->count, CHANNELS * sizeof(*keys->values));
    keys->times = base_alloc(keys->count + 1, sizeof(*keys->times));
    vkn_status status = where && keys->values && keys->times ? VKN_OK : VKN_ERROR;
    const double *previous = defaults;
    const cJSON *item = list->child;
    for (size_t i = 0; i < keys->count && status == VKN_OK; i++, item = item->next) {
        double *values = keys->values + i * CHANNELS;
        memcpy(values, previous, CHANNELS * sizeof(*values));
        snprintf(where, length, "%s: keyframes[%zu].", keys->file, i);
        status = read_keyframe(item, where, values);
        previous = values;
    }
    for (size_t i = 0; i <= keys->count && status == VKN_OK; i++)
        keys->times[i] = (double)i;
    free(where);
    return status;
}

/* Reads the number of frames, from `frames` or from `seconds` times fps. */
static vkn_status read_length(const cJSON *json, struct keyframes *keys)
{
    double frames = 0, seconds = 0;
    BASE_TRY(base_json_number(json, "fps", keys->file, false, 0.01, 1000, &keys->fps));
    BASE_TRY(base_json_number(json, "frames", keys->file, false, 1, SCENE_MAX_FRAMES, &frames));
    BASE_TRY(base_json_number(json, "seconds", keys->file, false, 1e-3, 1e6, &seconds));
    if ((frames > 0) == (seconds > 0))
        return base_json_fail(keys->file, "frames", "%s",
                              frames > 0 ? "given besides seconds; give only one of them"
                                         : "missing");
    if (frames != floor(frames))
        return base_json_fail(keys->file, "frames", "%g is not a whole number", frames);
    if (seconds > 0)
        frames = fmax(1, round(seconds * (keys->fps > 0 ? keys->fps : DEFAULT_FPS)));
    if (frames > SCENE_MAX_FRAMES)
        return base_json_fail(keys->file, "seconds", "more than %d frames", SCENE_MAX_FRAMES);
    keys->frames = (size_t)frames;
    return VKN_OK;
}

static vkn_status read_size(const cJSON *json, struct keyframes *keys)
{
    static const char *const names[2] = {"width", "height"};
    for (int i = 0; i < 2; i++) {
        double value = 0;
        BASE_TRY(
            base_json_number(json, names[i], keys->file, false, 1, SCENE_MAX_IMAGE_SIZE, &value));
        keys->size[i] = (uint32_t)value;
    }
    return VKN_OK;
}

static vkn_status read_file(const struct vkn_scene *scene, const cJSON *json,
                            const struct scene_camera *like, struct keyframes *keys)
{
    static const char *const names[] = {"keyframes", "frames", "seconds", "fps",
                                        "loop",      "width",  "height"};
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "keyframes");
    double defaults[CHANNELS] = {0};
    scene_up(&scene->splits[SCENE_TRAIN], defaults + UP);
    defaults[ANGLE] = fmin(fmax(camera_path_angle(like) * 180 / PI, LEAST_ANGLE), LARGEST_ANGLE);
    BASE_TRY(base_json_only_keys(json, keys->file, names, BASE_COUNT(names)));
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) < 1)
        return base_json_fail(keys->file, "keyframes", "no keyframes");
    keys->count = (size_t)cJSON_GetArraySize(list);
    BASE_TRY(read_length(json, keys));
    BASE_TRY(base_json_bool(json, "loop", keys->file, false, &keys->loop));
    BASE_TRY(read_size(json, keys));
    return read_all(list, defaults, keys);
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Sets a camera's pose from the spline's values. Where position and target coincide, the camera
 * keeps its previous direction (`back`). */
static void set_pose(const struct vkn_scene *scene, const double values[CHANNELS], double back[3],
                     struct scene_camera *camera)
{
    double backwards[3], pose[12];
    for (int i = 0; i < 3; i++)
        backwards[i] = values[POSITION + i] - values[LOOK_AT + i];
    if (vector_dot(backwards, backwards) > 0)
        memcpy(back, backwards, sizeof(backwards));
    look_along(values + POSITION, back, values + UP, pose);
    camera_set_pose(scene, pose, camera);
}

static vkn_status make_frames(const struct vkn_scene *scene, const struct keyframes *keys,
                              const struct scene_camera *like,
                              struct scene_camera_path *camera_path)
{
    const struct spline spline = {keys->count, CHANNELS, keys->values, keys->times,
                                  keys->loop && keys->count > 1};
    double back[3] = {0, 0, 1};
    camera_path->cameras = base_alloc(keys->frames, sizeof(*camera_path->cameras));
    if (camera_path->cameras == NULL)
        return VKN_ERROR;
    camera_path->count = keys->frames;
    camera_path->fps = keys->fps;
    for (size_t i = 0; i < keys->frames; i++) {
        double values[SPLINE_CHANNELS];
        /* The last frame of a loop is one step before the first keyframe. */
        double segments = (double)(spline.loop ? keys->count : keys->count - 1);
        double steps = (double)(spline.loop || keys->frames == 1 ? keys->frames : keys->frames - 1);
        spline_at(&spline, (double)i / steps * segments, values);
        double angle = fmin(fmax(values[ANGLE], LEAST_ANGLE), LARGEST_ANGLE);
        camera_path->cameras[i] = camera_path_camera(like, keys->size, angle * PI / 180);
        camera_path->cameras[i].time = (float)fmin(fmax(values[TIME], 0), 1);
        set_pose(scene, values, back, &camera_path->cameras[i]);
    }
    return VKN_OK;
}

vkn_status camera_path_parse_keyframes(const struct vkn_scene *scene, const char *file,
                                       const struct cJSON *json, const struct scene_camera *like,
                                       struct scene_camera_path *camera_path)
{
    struct keyframes keys = {.file = file};
    vkn_status status = read_file(scene, json, like, &keys);
    if (status == VKN_OK)
        status = make_frames(scene, &keys, like, camera_path);
    free(keys.values);
    free(keys.times);
    return status;
}
