/* Reads and interpolates camera paths of instant-ngp (base_cam.json) as its run.py
 * --video_camera_path does (src/camera_path.cu and
 * include/neural-graphics-primitives/camera_path.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/camera_path.h"

#define PI              3.14159265358979323846
#define LARGEST         1e9
#define DEFAULT_FPS     60.0 /* defaults of run.py's --video_fps and --video_n_seconds */
#define DEFAULT_SECONDS 1.0
#define MAX_JSON_SIZE   ((size_t)64 << 20)

/* Indices of a keyframe's values: rotation (quaternion x y z w) and position, camera to world in
 * instant-ngp's space with the camera's axes right, down and forwards; vertical fov, degrees. */
enum { ROTATION = 0, POSITION = 4, ANGLE = 7, VALUES = 8 };

struct keyframe {
    double values[VALUES];
    double timestamp; /* end of this keyframe's interval; above 0 and increasing */
};

struct path {
    const char *file;
    struct keyframe *keys;
    size_t count;
    bool loop;
    unsigned order;          /* order of the spline, 0 to 3 */
    double seconds;          /* 0: not given */
    bool has_blur, has_glow; /* depth of field; glow */
};

/* instant-ngp's transform of the dataset into its unit cube. */
struct ngp_space {
    double scale, offset[3];
    bool mitsuba; /* Mitsuba's convention: axes are not permuted */
};

bool camera_path_is_ngp(const struct cJSON *json)
{
    return cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "path"));
}

/* ---- reading --------------------------------------------------------------------------------- */

static double rotation_length(const double rotation[4])
{
    double squared = 0;
    for (int i = 0; i < 4; i++)
        squared += rotation[i] * rotation[i];
    return sqrt(squared);
}

static vkn_status read_keyframe(const cJSON *json, const char *where, struct path *path,
                                struct keyframe *key)
{
    double aperture = 0, glow = 0;
    if (!cJSON_IsObject(json))
        return base_json_fail(where, "(keyframe)", "not an object");
    BASE_TRY(camera_path_numbers(json, "R", where, true, 4, key->values + ROTATION));
    BASE_TRY(camera_path_numbers(json, "T", where, true, 3, key->values + POSITION));
    BASE_TRY(base_json_number(json, "fov", where, true, 0.01, 179, &key->values[ANGLE]));
    BASE_TRY(base_json_number(json, "timestamp", where, false, -LARGEST, LARGEST, &key->timestamp));
    BASE_TRY(base_json_number(json, cJSON_HasObjectItem(json, "dof") ? "dof" : "aperture_size",
                              where, false, -LARGEST, LARGEST, &aperture));
    BASE_TRY(base_json_number(json, "glow_mode", where, false, -LARGEST, LARGEST, &glow));
    path->has_blur = path->has_blur || aperture != 0;
    path->has_glow = path->has_glow || glow != 0;
    return rotation_length(key->values + ROTATION) > 1e-6
               ? VKN_OK
               : base_json_fail(where, "R", "its quaternion is no rotation");
}

/* Spaces the keyframes evenly unless all timestamps increase and are above 0. */
static void check_timestamps(struct path *path)
{
    double previous = 0;
    bool valid = true;
    for (size_t i = 0; i < path->count; i++) {
        valid = valid && path->keys[i].timestamp > previous;
        previous = path->keys[i].timestamp;
    }
    for (size_t i = 0; i < path->count && !valid; i++)
        path->keys[i].timestamp = (double)(i + 1) / (double)path->count;
}

static vkn_status read_keyframes(const cJSON *list, struct path *path)
{
    size_t length = strlen(path->file) + 48;
    char *where = base_alloc(length, 1);
    path->count = (size_t)cJSON_GetArraySize(list);
    path->keys = base_alloc(path->count, sizeof(*path->keys));
    vkn_status status = where != NULL && path->keys != NULL ? VKN_OK : VKN_ERROR;
    const cJSON *item = list->child;
    for (size_t i = 0; i < path->count && status == VKN_OK; i++, item = item->next) {
        snprintf(where, length, "%s: path[%zu].", path->file, i);
        status = read_keyframe(item, where, path, &path->keys[i]);
    }
    free(where);
    if (status == VKN_OK)
        check_timestamps(path);
    return status;
}

static vkn_status read_path(const cJSON *json, struct path *path)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "path");
    double order = 3;
    if (cJSON_GetArraySize(list) < 1)
        return base_json_fail(path->file, "path", "no keyframes");
    BASE_TRY(base_json_bool(json, "loop", path->file, false, &path->loop));
    BASE_TRY(base_json_number(json, "spline_order", path->file, false, 0, 3, &order));
    BASE_TRY(base_json_number(json, "duration_seconds", path->file, false, 0, 1e6, &path->seconds));
    path->order = (unsigned)order;
    if (path->order != order)
        return base_json_fail(path->file, "spline_order", "%g is not a whole number", order);
    BASE_TRY(read_keyframes(list, path));
    if (path->has_blur || path->has_glow)
        base_log(BASE_LOG_WARNING, "%s: path: %s not rendered", path->file,
                 path->has_blur && path->has_glow
                     ? "its depth of field (aperture_size) and glow are"
                 : path->has_blur ? "its depth of field (aperture_size) is"
                                  : "its glow (glow_mode) is");
    return VKN_OK;
}

/* ---- interpolation --------------------------------------------------------------------------- */

static const double *key_at(const struct path *path, ptrdiff_t index)
{
    ptrdiff_t count = (ptrdiff_t)path->count;
    if (path->loop)
        index = (index % count + count) % count;
    else
        index = index < 0 ? 0 : index < count ? index : count - 1;
    return path->keys[index].values;
}

/* Finds the keyframe before a playback time (0..1), and the fraction of the way to the next one. An
 * open path ends at its last keyframe, whose own interval is not played. */
static size_t find_keyframe(const struct path *path, double time, double *fraction)
{
    size_t index = 0, last = path->count - (path->loop ? 1 : 2);
    if (path->count == 1) {
        *fraction = time;
        return 0;
    }
    time *= path->keys[path->count - (path->loop ? 1 : 2)].timestamp;
    while (index < last && path->keys[index].timestamp <= time)
        index++;
    double previous = index > 0 ? path->keys[index - 1].timestamp : 0;
    *fraction = (time - previous) / (path->keys[index].timestamp - previous);
    return index;
}

/* Adds a weighted keyframe. Of the two signs of its quaternion, uses the one nearer to the sum. */
static void add_weighted(const double *key, double weight, double sum[VALUES])
{
    double dot = 0;
    for (int i = 0; i < 4; i++)
        dot += sum[ROTATION + i] * key[ROTATION + i] * weight;
    for (int i = 0; i < VALUES; i++)
        sum[i] += (i < POSITION && dot < 0 ? -weight : weight) * key[i];
}

/* Evaluates a uniform B-spline; only splines of order 0 and 1 pass through the keyframes. */
static void evaluate(const struct path *path, double time, double values[VALUES])
{
    double t = 0, weights[4] = {0};
    ptrdiff_t index = (ptrdiff_t)find_keyframe(path, time, &t), first = index;
    switch (path->order) {
    case 0:
        first = index + lround(t);
        weights[0] = 1;
        break;
    case 1:
        weights[0] = 1 - t;
        weights[1] = t;
        break;
    case 2:
        first = index - 1;
        weights[0] = 0.5 * (1 - t) * (1 - t);
        weights[1] = 0.5 * (1 + 2 * t - 2 * t * t);
        weights[2] = 0.5 * t * t;
        break;
    default:
        first = index - 1;
        weights[0] = (1 - t) * (1 - t) * (1 - t) / 6;
        weights[1] = (4 - 6 * t * t + 3 * t * t * t) / 6;
        weights[2] = (1 + 3 * t + 3 * t * t - 3 * t * t * t) / 6;
        weights[3] = t * t * t / 6;
    }
    memset(values, 0, VALUES * sizeof(*values));
    for (int i = 0; i < 4; i++)
        if (weights[i] != 0)
            add_weighted(key_at(path, first + i), weights[i], values);
}

/* ---- spaces ---------------------------------------------------------------------------------- */

/* Reads the scene's transforms.json, as instant-ngp does; *json is NULL when there is none. */
static vkn_status read_scene_file(const struct vkn_scene *scene, char **file, struct cJSON **json)
{
    static const char *const names[] = {"transforms.json", "transforms_train.json"};
    bool is_folder = scene->path != NULL && base_is_folder(scene->path);
    bool has_file = scene->path != NULL && scene->format == VKN_SCENE_TRANSFORMS;
    *json = NULL;
    *file = NULL;
    for (size_t i = 0; has_file && i < (is_folder ? BASE_COUNT(names) : 1); i++) {
        free(*file);
        *file = is_folder ? base_path_join(scene->path, names[i]) : base_format("%s", scene->path);
        if (*file == NULL)
            return VKN_ERROR;
        if (base_file_exists(*file))
            return base_json_read(*file, MAX_JSON_SIZE, json);
    }
    return VKN_OK;
}

static vkn_status read_space(const struct vkn_scene *scene, const char *path,
                             struct ngp_space *space)
{
    char *file = NULL;
    cJSON *json = NULL;
    struct transforms transforms = {0};
    vkn_status status = read_scene_file(scene, &file, &json);
    *space = (struct ngp_space){.scale = 0.33, .offset = {0.5, 0.5, 0.5}};
    if (status == VKN_OK && json != NULL)
        status = transforms_parse(file, json, false, &transforms);
    else if (status == VKN_OK)
        base_log(
            BASE_LOG_WARNING,
            "%s: no transforms.json: its space is assumed to be the dataset's times 0.33, plus 0.5",
            path);
    space->mitsuba = transforms.mitsuba;
    if (transforms.has_scale)
        space->scale = transforms.scale;
    if (transforms.has_offset)
        memcpy(space->offset, transforms.offset, sizeof(space->offset));
    transforms_free(&transforms);
    cJSON_Delete(json);
    free(file);
    return status;
}

/* Computes the matrix of a rotation (quaternion x y z w). The columns are the camera's axes. */
static void rotation_matrix(const double q[4], double r[3][3])
{
    double length = rotation_length(q), x = q[0] / length, y = q[1] / length, z = q[2] / length,
           w = q[3] / length;
    const double made[3][3] = {
        {1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
        {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
        {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)},
    };
    memcpy(r, made, sizeof(made));
}

/* Converts a pose to the dataset's space and to a camera with y up that looks along -z.
 * instant-ngp's x y z are the dataset's y z x. With from_mitsuba axes are not permuted, and x and z
 * of the camera are reversed. */
static void to_dataset(const struct ngp_space *space, const double values[VALUES], double pose[12])
{
    double r[3][3];
    rotation_matrix(values + ROTATION, r);
    for (int i = 0; i < 3; i++) {
        int from = space->mitsuba ? i : (i + 2) % 3;
        double sign = space->mitsuba ? -1 : 1;
        pose[4 * i] = sign * r[from][0];
        pose[4 * i + 1] = -r[from][1];
        pose[4 * i + 2] = sign * -r[from][2];
        pose[4 * i + 3] = (values[POSITION + from] - space->offset[i]) / space->scale;
    }
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Makes the path's frames; a path with one keyframe has one frame. */
static vkn_status make_frames(const struct vkn_scene *scene, const struct path *path,
                              const struct ngp_space *space, const struct scene_camera *like,
                              struct scene_camera_path *camera_path)
{
    static const uint32_t same_size[2] = {0, 0};
    double seconds = path->seconds > 0 ? path->seconds : DEFAULT_SECONDS;
    double frames = path->count > 1 ? fmax(1, floor(seconds * DEFAULT_FPS)) : 1;
    if (frames > SCENE_MAX_FRAMES)
        return base_json_fail(path->file, "duration_seconds", "more than %d frames",
                              SCENE_MAX_FRAMES);
    camera_path->fps = frames / seconds;
    camera_path->cameras = base_alloc((size_t)frames, sizeof(*camera_path->cameras));
    if (camera_path->cameras == NULL)
        return VKN_ERROR;
    camera_path->count = (size_t)frames;
    for (size_t i = 0; i < camera_path->count; i++) {
        double values[VALUES], pose[12];
        evaluate(path, (double)i / frames, values);
        if (!(rotation_length(values + ROTATION) > 1e-6))
            return base_fail(VKN_BAD_INPUT,
                             "%s: path: frame %zu: opposite rotations cannot be interpolated",
                             path->file, i);
        to_dataset(space, values, pose);
        camera_path->cameras[i] = camera_path_camera(like, same_size, values[ANGLE] * PI / 180);
        camera_set_pose(scene, pose, &camera_path->cameras[i]);
    }
    return VKN_OK;
}

vkn_status camera_path_parse_ngp(const struct vkn_scene *scene, const char *file,
                                 const struct cJSON *json, const struct scene_camera *like,
                                 struct scene_camera_path *camera_path)
{
    struct path path = {.file = file};
    struct ngp_space space = {0};
    vkn_status status = read_path(json, &path);
    if (status == VKN_OK)
        status = read_space(scene, file, &space);
    if (status == VKN_OK)
        status = make_frames(scene, &path, &space, like, camera_path);
    free(path.keys);
    if (status != VKN_OK) {
        free(camera_path->cameras);
        *camera_path = (struct scene_camera_path){0};
    }
    return status;
}
