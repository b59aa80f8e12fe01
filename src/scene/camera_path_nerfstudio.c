/* Camera paths that nerfstudio's viewer writes (nerfstudio/cameras/camera_paths.py,
 * get_path_from_json), and the way from its space back to the dataset's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "scene/camera_path.h"

#define PI            3.14159265358979323846
#define MAX_JSON_SIZE ((size_t)64 << 20)

const struct camera_path_space camera_path_same_space = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, 1};

bool camera_path_is_nerfstudio(const struct cJSON *json)
{
    return cJSON_IsObject(json) && cJSON_HasObjectItem(json, "camera_path");
}

/* ---- spaces -------------------------------------------------------------------------------- */

/* result = a * b, both rotation and translation. */
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

/* What was done to the captured cameras before they became the scene's transforms.json. */
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

/* nerfstudio (nerfstudio_dataparser.py) brings a position x of the transforms.json to
 * own scale * (own transform * x). The file has the product of own and applied transform, and that
 * of the scales. */
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
    char *beside = folder != NULL ? base_path_join(folder, "dataparser_transforms.json") : NULL;
    vkn_status status = beside != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && base_file_exists(beside))
        status = read_dataparser(scene, beside, space);
    else if (status == VKN_OK)
        base_log(BASE_LOG_WARNING,
                 "%s: without a dataparser_transforms.json its cameras are taken to be in the "
                 "dataset's coordinates",
                 file);
    free(beside);
    free(folder);
    return status;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* What all cameras of a file share. */
struct export
{
    const struct vkn_scene *scene;
    const char *file;
    const struct camera_path_space *space;
    struct scene_camera like; /* size and lens */
};

static vkn_status read_common(const cJSON *json, struct export *export, double *fps)
{
    double width = 0, height = 0;
    const char *type = "perspective", *file = export->file;
    BASE_TRY(base_json_number(json, "render_width", file, true, 1, SCENE_MAX_IMAGE_SIZE, &width));
    BASE_TRY(base_json_number(json, "render_height", file, true, 1, SCENE_MAX_IMAGE_SIZE, &height));
    BASE_TRY(base_json_number(json, "fps", file, false, 0.01, 1000, fps));
    BASE_TRY(base_json_string(json, "camera_type", file, false, &type));
    bool fisheye = strcmp(type, "fisheye") == 0, panorama = strcmp(type, "equirectangular") == 0;
    if (!fisheye && !panorama && strcmp(type, "perspective") != 0)
        return base_json_fail(file, "camera_type",
                              "%.40s is none of perspective, fisheye and equirectangular", type);
    export->like.width = (uint32_t)width;
    export->like.height = (uint32_t)height;
    export->like.lens = fisheye    ? VKN_LENS_FISHEYE
                        : panorama ? VKN_LENS_EQUIRECTANGULAR
                                   : VKN_LENS_PERSPECTIVE;
    return VKN_OK;
}

/* The focal length of either lens is that of a perspective with this fov; a panorama is all around. */
static vkn_status read_camera(const struct export *export, const cJSON *json, const char *where,
                              struct scene_camera *camera)
{
    static const uint32_t same_size[2] = {0, 0};
    double fov = 0, time = 0, pose[12] = {0}, placed[12];
    if (!cJSON_IsObject(json))
        return base_json_fail(where, "(camera)", "not an object");
    const cJSON *matrix = cJSON_GetObjectItemCaseSensitive(json, "camera_to_world");
    if (matrix == NULL)
        return base_json_fail(where, "camera_to_world", "missing");
    BASE_TRY(pose_read_flat(matrix, "camera_to_world", where, pose));
    BASE_TRY(base_json_number(json, "fov", where, true, 0.01, 179.0, &fov));
    BASE_TRY(base_json_number(json, "render_time", where, false, 0, 1, &time));
    for (int i = 3; i < 12; i += 4)
        pose[i] *= export->space->factor;
    pose_multiply(export->space->pose, pose, placed);
    *camera = camera_path_camera(&export->like, same_size, fov * PI / 180);
    camera->lens = export->like.lens;
    camera->time = (float)time;
    camera_path_place(export->scene, placed, camera);
    if (camera->lens == VKN_LENS_EQUIRECTANGULAR)
        *camera = scene_panorama(camera, camera->width, camera->height, NULL);
    return VKN_OK;
}

static vkn_status read_cameras(const struct export *export, const cJSON *list,
                               struct scene_camera_path *camera_path)
{
    size_t length = strlen(export->file) + 48;
    char *where = base_alloc(length, 1);
    camera_path->count = (size_t)cJSON_GetArraySize(list);
    camera_path->cameras = base_alloc(camera_path->count, sizeof(*camera_path->cameras));
    vkn_status status = where != NULL && camera_path->cameras != NULL ? VKN_OK : VKN_ERROR;
    const cJSON *item = list->child;
    for (size_t i = 0; i < camera_path->count && status == VKN_OK; i++, item = item->next) {
        snprintf(where, length, "%s: camera_path[%zu].", export->file, i);
        status = read_camera(export, item, where, &camera_path->cameras[i]);
    }
    free(where);
    return status;
}

vkn_status camera_path_parse_nerfstudio(const struct vkn_scene *scene, const char *file,
                                        const struct cJSON *json,
                                        const struct camera_path_space *space,
                                        struct scene_camera_path *camera_path)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "camera_path");
    struct export export = {.scene = scene, .file = file, .space = space};
    BASE_TRY(read_common(json, &export, &camera_path->fps));
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) < 1)
        return base_json_fail(file, "camera_path", "no cameras");
    vkn_status status = read_cameras(&export, list, camera_path);
    if (status != VKN_OK) {
        free(camera_path->cameras);
        *camera_path = (struct scene_camera_path){0};
    }
    return status;
}
