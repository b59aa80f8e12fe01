/* Reads camera paths of nerfstudio's viewer (nerfstudio/cameras/camera_paths.py,
 * get_path_from_json), and the transform from nerfstudio's space to the dataset's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cjson/cJSON.h>

#include "scene/camera_path.h"

#define PI            3.14159265358979323846
#define MAX_JSON_SIZE ((size_t)64 << 20)

const struct camera_path_space camera_path_same_space = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, 1};

/* Keyframes with a matrix are nerfstudio's; vknerf's own have a position. */
bool camera_path_is_nerfstudio(const struct cJSON *json)
{
    const cJSON *keys = cJSON_GetObjectItemCaseSensitive(json, "keyframes");
    return cJSON_IsObject(json) && (cJSON_HasObjectItem(json, "camera_path") ||
                                    cJSON_HasObjectItem(cJSON_GetArrayItem(keys, 0), "matrix"));
}

/* ---- spaces ---------------------------------------------------------------------------------- */

/* result = a * b for poses (rotation and translation). */
static void pose_multiply(const double a[12], const double b[12], double result[12])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) {
            double sum = j == 3 ? a[4 * i + 3] : 0;
            for (int k = 0; k < 3; k++)
                sum += a[4 * i + k] * b[4 * k + j];
            result[4 * i + j] = sum;
        }
}

static void pose_invert(const double a[12], double result[12])
{
    for (int i = 0; i < 3; i++) {
        result[4 * i + 3] = 0;
        for (int j = 0; j < 3; j++) {
            result[4 * i + j] = a[4 * j + i];
            result[4 * i + 3] -= a[4 * j + i] * a[4 * j + 3];
        }
    }
}

/* Reads the transform from the captured cameras to those of nerfstudio's transforms.json. */
static vkn_status read_applied(const struct vkn_scene *scene, double pose[12], double *scale)
{
    char *file = base_is_folder(scene->path) ? base_path_join(scene->path, "transforms.json")
                                             : base_format("%s", scene->path);
    cJSON *json = NULL;
    vkn_status status = file != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && base_file_exists(file))
        status = base_json_read(file, MAX_JSON_SIZE, &json);
    const cJSON *matrix = cJSON_GetObjectItemCaseSensitive(json, "applied_transform");
    if (status == VKN_OK && matrix != NULL)
        status = pose_read(matrix, "applied_transform", file, pose);
    if (status == VKN_OK && json != NULL)
        status = base_json_number(json, "applied_scale", file, false, 1e-9, 1e9, scale);
    cJSON_Delete(json);
    free(file);
    return status;
}

/* Reads a dataparser_transforms.json. nerfstudio (nerfstudio_dataparser.py) maps a position x of
 * the transforms.json to s (T x). The file holds `transform`, T times applied_transform, and
 * `scale`, s times applied_scale. */
static vkn_status read_dataparser(const struct vkn_scene *scene, const char *file,
                                  struct camera_path_space *space)
{
    double transform[12] = {0}, scale = 1, applied[12], applied_scale = 1, inverse[12];
    memcpy(applied, camera_path_same_space.pose, sizeof(applied));
    cJSON *json = NULL;
    BASE_TRY(base_json_read(file, MAX_JSON_SIZE, &json));
    const cJSON *matrix = cJSON_GetObjectItemCaseSensitive(json, "transform");
    vkn_status status = matrix != NULL ? pose_read(matrix, "transform", file, transform)
                                       : base_json_fail(file, "transform", "missing");
    if (status == VKN_OK)
        status = base_json_number(json, "scale", file, true, 1e-9, 1e9, &scale);
    cJSON_Delete(json);
    BASE_TRY(status);
    BASE_TRY(read_applied(scene, applied, &applied_scale));
    pose_invert(transform, inverse);
    pose_multiply(applied, inverse, space->pose);
    space->factor = applied_scale / scale;
    return VKN_OK;
}

vkn_status camera_path_read_space(const struct vkn_scene *scene, const char *file,
                                  const char *dataparser, struct camera_path_space *space)
{
    if (dataparser != NULL)
        return read_dataparser(scene, dataparser, space);
    char *folder = base_path_folder(file);
    char *default_file =
        folder != NULL ? base_path_join(folder, "dataparser_transforms.json") : NULL;
    vkn_status status = default_file != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && base_file_exists(default_file))
        status = read_dataparser(scene, default_file, space);
    else if (status == VKN_OK)
        base_log(BASE_LOG_WARNING,
                 "%s: no dataparser_transforms.json: its cameras are assumed to be in the "
                 "dataset's coordinates",
                 file);
    free(default_file);
    free(folder);
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Properties that all cameras of a file share. */
struct export
{
    const struct vkn_scene *scene;
    const char *file;
    const struct camera_path_space *space;
    struct scene_camera like; /* size and lens */
    bool has_times;           /* all cameras have a render_time; else times are ignored */
    double fov, fps, seconds; /* fov: default in degrees; 0: not given */
};

/* Reads the camera type. Unknown types become perspective, as in nerfstudio. */
static vkn_status read_lens(const cJSON *json, const char *file, enum vkn_lens *lens)
{
    const char *type = "perspective";
    BASE_TRY(base_json_string(json, "camera_type", file, false, &type));
    if (strcasecmp(type, "omnidirectional") == 0 || strcasecmp(type, "vr180") == 0)
        return base_json_fail(file, "camera_type",
                              "%s (an image for each eye) is not supported; use equirectangular",
                              type);
    for (unsigned kind = 0; kind < SCENE_LENSES; kind++)
        if (strcasecmp(type, lens_kinds[kind].camera_type) == 0) {
            *lens = (enum vkn_lens)kind;
            return VKN_OK;
        }
    *lens = VKN_LENS_PERSPECTIVE;
    base_log(BASE_LOG_WARNING,
             "%s: camera_type: %.40s is unknown and read as perspective, as in nerfstudio", file,
             type);
    return VKN_OK;
}

static vkn_status read_common(const cJSON *json, struct export *export)
{
    double width = 0, height = 0;
    const char *file = export->file;
    BASE_TRY(base_json_number(json, "render_width", file, true, 1, SCENE_MAX_IMAGE_SIZE, &width));
    BASE_TRY(base_json_number(json, "render_height", file, true, 1, SCENE_MAX_IMAGE_SIZE, &height));
    BASE_TRY(base_json_number(json, "fps", file, false, 0, 1000, &export->fps));
    BASE_TRY(base_json_number(json, "seconds", file, false, 0, 1e6, &export->seconds));
    BASE_TRY(base_json_number(json, "default_fov", file, false, 0, 360, &export->fov));
    export->like.width = (uint32_t)width;
    export->like.height = (uint32_t)height;
    return read_lens(json, file, &export->like.lens);
}

static bool is_panorama(const struct export *export)
{
    return lens_kinds[export->like.lens].panoramic;
}

/* Reads the matrix of the old viewer's keyframes: JSON in a string, column by column. */
static vkn_status read_text_matrix(const char *text, const char *name, const char *where,
                                   double pose[12])
{
    cJSON *columns = NULL, *rows = cJSON_CreateArray();
    if (base_json_parse(where, text, strlen(text), &columns) == VKN_ERROR || rows == NULL) {
        cJSON_Delete(rows);
        return VKN_ERROR;
    }
    bool is_4x4 = cJSON_IsArray(columns) && cJSON_GetArraySize(columns) == 16;
    for (int i = 0; i < 16 && is_4x4; i++)
        cJSON_AddItemToArray(rows,
                             cJSON_Duplicate(cJSON_GetArrayItem(columns, i % 4 * 4 + i / 4), true));
    vkn_status status = pose_read_flat(rows, name, where, pose);
    cJSON_Delete(rows);
    cJSON_Delete(columns);
    return status;
}

/* Reads 16 numbers in one list or in rows. */
static vkn_status read_matrix(const cJSON *json, const char *name, const char *where,
                              double pose[12])
{
    const cJSON *matrix = cJSON_GetObjectItemCaseSensitive(json, name);
    if (matrix == NULL)
        return base_json_fail(where, name, "missing");
    if (cJSON_IsString(matrix))
        return read_text_matrix(matrix->valuestring, name, where, pose);
    return (cJSON_IsArray(matrix->child) ? pose_read : pose_read_flat)(matrix, name, where, pose);
}

/* A camera of the path or a keyframe. */
struct view {
    double pose[12];  /* camera to world, in the dataset's space */
    double fov, time; /* vertical, degrees; 0 to 1 */
};

static vkn_status read_view(const struct export *export, const cJSON *json, const char *matrix,
                            const char *where, struct view *view)
{
    double pose[12] = {0};
    bool needs_fov = !is_panorama(export) && !(export->fov > 0);
    *view = (struct view){.fov = export->fov};
    if (!cJSON_IsObject(json))
        return base_json_fail(where, "(camera)", "not an object");
    BASE_TRY(read_matrix(json, matrix, where, pose));
    if (!is_panorama(export))
        BASE_TRY(base_json_number(json, "fov", where, needs_fov, 0.01, 179.0, &view->fov));
    if (export->has_times)
        BASE_TRY(base_json_number(json, "render_time", where, true, -1, 2, &view->time));
    for (int i = 3; i < 12; i += 4)
        pose[i] *= export->space->factor;
    pose_multiply(export->space->pose, pose, view->pose);
    return VKN_OK;
}

/* Makes a camera. A fisheye has the focal length of a perspective lens with the same fov; a
 * panorama is always full. Times are clamped because splines overshoot 0 and 1 a little. */
static struct scene_camera make_camera(const struct export *export, const struct view *view)
{
    static const uint32_t same_size[2] = {0, 0};
    double angle = is_panorama(export) ? 0.5 * PI : view->fov * PI / 180;
    struct scene_camera camera = camera_path_camera(&export->like, same_size, angle);
    camera.lens = export->like.lens;
    camera.time = (float)fmin(fmax(view->time, 0), 1);
    camera_set_pose(export->scene, view->pose, &camera);
    return is_panorama(export) ? scene_panorama(&camera, camera.width, camera.height, NULL)
                               : camera;
}

static bool all_have(const cJSON *list, const char *name)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach (item, list)
        if (!cJSON_HasObjectItem(item, name))
            return false;
    return true;
}

static vkn_status read_views(struct export *export, const cJSON *list, const char *name,
                             const char *matrix, struct view *views)
{
    size_t length = strlen(export->file) + 48, i = 0;
    char *where = base_alloc(length, 1);
    vkn_status status = where != NULL ? VKN_OK : VKN_ERROR;
    export->has_times = all_have(list, "render_time");
    for (const cJSON *item = list->child; item != NULL && status == VKN_OK;
         item = item->next, i++) {
        snprintf(where, length, "%s: %s[%zu].", export->file, name, i);
        status = read_view(export, item, matrix, where, &views[i]);
    }
    free(where);
    return status;
}

/* ---- keyframes without a camera_path --------------------------------------------------------- */

static void add_vector(cJSON *json, const char *name, const double v[3])
{
    cJSON_AddItemToObject(json, name, cJSON_CreateDoubleArray(v, 3));
}

/* Converts the keyframes to vknerf's kind of path, which is a spline through keyframes too. */
static cJSON *keyframe_path(const struct export *export, const struct view *views, size_t count,
                            bool loop)
{
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "keyframes");
    for (size_t i = 0; i < count; i++) {
        cJSON *key = cJSON_CreateObject();
        const double *pose = views[i].pose;
        const double position[3] = {pose[3], pose[7], pose[11]},
                     up[3] = {pose[1], pose[5], pose[9]};
        const double look_at[3] = {pose[3] - pose[2], pose[7] - pose[6], pose[11] - pose[10]};
        add_vector(key, "position", position);
        add_vector(key, "look_at", look_at);
        add_vector(key, "up", up);
        cJSON_AddNumberToObject(key, "fov", is_panorama(export) ? 90 : views[i].fov);
        cJSON_AddNumberToObject(key, "time", fmin(fmax(views[i].time, 0), 1));
        cJSON_AddItemToArray(list, key);
    }
    cJSON_AddNumberToObject(json, "seconds", export->seconds > 0 ? export->seconds : 1);
    cJSON_AddNumberToObject(json, "fps", export->fps > 0 ? export->fps : 24);
    cJSON_AddBoolToObject(json, "loop", loop);
    cJSON_AddNumberToObject(json, "width", export->like.width);
    cJSON_AddNumberToObject(json, "height", export->like.height);
    return json;
}

static vkn_status interpolate(const struct export *export, const struct view *views, size_t count,
                              bool loop, struct scene_camera_path *camera_path)
{
    cJSON *json = keyframe_path(export, views, count, loop);
    char *text = base_json_print_unformatted(json); /* fails if an earlier call ran out of memory */
    vkn_status status = VKN_ERROR;
    if (text != NULL)
        status = camera_path_parse_keyframes(export->scene, export->file, json, &export->like,
                                             camera_path);
    for (size_t i = 0; i < camera_path->count && status == VKN_OK; i++) {
        struct scene_camera *camera = &camera_path->cameras[i];
        camera->lens = export->like.lens;
        if (is_panorama(export))
            *camera = scene_panorama(camera, camera->width, camera->height, NULL);
    }
    free(text);
    cJSON_Delete(json);
    return status;
}

/* ---- the whole path -------------------------------------------------------------------------- */

/* nerfstudio chooses the frame rate so that the video lasts for `seconds`. */
static double frame_rate(const struct export *export, size_t count)
{
    double fps = export->seconds > 0 ? (double)count / export->seconds : export->fps;
    return fps >= 0.01 && fps <= 1000 ? fps : export->fps;
}

static vkn_status make_path(const struct export *export, const struct view *views, size_t count,
                            bool interpolated, bool loop, struct scene_camera_path *camera_path)
{
    if (interpolated && count > 1)
        return interpolate(export, views, count, loop, camera_path);
    camera_path->cameras = base_alloc(count, sizeof(*camera_path->cameras));
    if (camera_path->cameras == NULL)
        return VKN_ERROR;
    camera_path->count = count;
    camera_path->fps = frame_rate(export, count);
    for (size_t i = 0; i < count; i++)
        camera_path->cameras[i] = make_camera(export, &views[i]);
    return VKN_OK;
}

vkn_status camera_path_parse_nerfstudio(const struct vkn_scene *scene, const char *file,
                                        const struct cJSON *json,
                                        const struct camera_path_space *space,
                                        struct scene_camera_path *camera_path)
{
    struct export export = {.scene = scene, .file = file, .space = space};
    bool loop = false, has_keyframes = false;
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "camera_path");
    BASE_TRY(read_common(json, &export));
    BASE_TRY(base_json_bool(json, "is_cycle", file, false, &loop));
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) < 1) {
        list = cJSON_GetObjectItemCaseSensitive(json, "keyframes");
        has_keyframes = true;
    }
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) < 1)
        return base_json_fail(file, "camera_path", "no cameras");
    size_t count = (size_t)cJSON_GetArraySize(list);
    struct view *views = base_alloc(count, sizeof(*views));
    if (views == NULL)
        return VKN_ERROR;
    vkn_status status = read_views(&export, list, has_keyframes ? "keyframes" : "camera_path",
                                   has_keyframes ? "matrix" : "camera_to_world", views);
    if (status == VKN_OK)
        status = camera_path_read_crop(file, json, space, camera_path);
    if (status == VKN_OK)
        status = make_path(&export, views, count, has_keyframes, loop, camera_path);
    free(views);
    if (status != VKN_OK) {
        free(camera_path->cameras);
        *camera_path = (struct scene_camera_path){0};
    }
    return status;
}
