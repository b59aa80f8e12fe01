/* Writes and describes the cameras that a training has refined. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "run/internal.h"
#include "run/training.h"
#include "step/step.h"

#define NAMED_VIEWS 5 /* most views that a warning names */

/* Adds the pose, camera to world in the dataset's units, as a matrix of four rows. */
static bool add_pose(cJSON *json, const struct vkn_scene *scene, const struct scene_camera *camera)
{
    cJSON *matrix = cJSON_AddArrayToObject(json, "transform_matrix");
    for (int i = 0; matrix && i < 4; i++) {
        double row[4] = {0, 0, 0, 1};
        for (int j = 0; i < 3 && j < 4; j++)
            row[j] = (double)camera->pose[4 * i + j];
        if (i < 3)
            row[3] = (row[3] - scene->offset[i]) / scene->scale;
        if (!cJSON_AddItemToArray(matrix, cJSON_CreateDoubleArray(row, 4)))
            return false;
    }
    return matrix != NULL;
}

/* Adds the intrinsics, in pixels of the images before scene.downscale. Panoramas have none. */
static bool add_lens(cJSON *json, const struct vkn_scene *scene, const struct scene_camera *camera)
{
    const double factor = scene->downscale;
    if (scene_is_panoramic(camera->lens))
        return true;
    bool added = cJSON_AddNumberToObject(json, "fl_x", factor * (double)camera->focal_x) &&
                 cJSON_AddNumberToObject(json, "fl_y", factor * (double)camera->focal_y) &&
                 cJSON_AddNumberToObject(json, "cx", factor * (double)camera->center_x) &&
                 cJSON_AddNumberToObject(json, "cy", factor * (double)camera->center_y);
#define ADD(name) added = added && cJSON_AddNumberToObject(json, #name, (double)camera->name);
    SCENE_COEFFICIENTS(ADD)
    return added;
}

static bool add_camera(cJSON *list, const struct vkn_scene *scene,
                       const struct step_camera *refined)
{
    cJSON *json = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, json) &&
           cJSON_AddStringToObject(json, "image", refined->camera.image_path) &&
           add_pose(json, scene, &refined->camera) && add_lens(json, scene, &refined->camera) &&
           cJSON_AddNumberToObject(json, "pixels", refined->pixels) &&
           cJSON_AddNumberToObject(json, "degrees", refined->degrees) &&
           cJSON_AddNumberToObject(json, "distance", refined->distance / scene->scale) &&
           cJSON_AddBoolToObject(json, "at_limit", refined->at_limit);
}

static vkn_status write_cameras(const char *path, const struct vkn_scene *scene,
                                const struct step_camera *cameras, size_t count)
{
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "views");
    bool added = list != NULL;
    for (size_t i = 0; i < count && added; i++)
        added = add_camera(list, scene, &cameras[i]);
    char *text = added ? base_json_print(json) : NULL;
    vkn_status status =
        text ? base_file_replace(path, text, strlen(text)) : base_fail(VKN_ERROR, "out of memory");
    free(text);
    cJSON_Delete(json);
    return status;
}

/* Names the first views that would move further than the limit. */
static void warn_of_limit(const char *folder, const struct step_camera *cameras, size_t count)
{
    struct base_text names = {0};
    size_t limited = 0;
    for (size_t i = 0; i < count; i++) {
        if (!cameras[i].at_limit)
            continue;
        if (limited < NAMED_VIEWS)
            base_text_add(&names, "%s%zu (%s)", limited > 0 ? ", " : "", i,
                          cameras[i].camera.image_path);
        limited++;
    }
    if (limited > 0)
        base_log(BASE_LOG_WARNING,
                 "%s: %zu of %zu views have moved by refine.limit and may still not fit: "
                 "take them out, or raise the limit: view %s%s",
                 folder, limited, count, names.failed ? "" : names.data,
                 limited > NAMED_VIEWS ? ", ..." : "");
    free(names.data);
}

static void log_movement(const char *folder, const struct step_camera *cameras, size_t count)
{
    size_t most = 0;
    double mean = 0;
    for (size_t i = 0; i < count; i++) {
        mean += cameras[i].pixels / (double)count;
        most = cameras[i].pixels > cameras[most].pixels ? i : most;
    }
    base_log(BASE_LOG_INFO,
             "%s: refined cameras have moved by %.2f pixels in the mean, at most by %.2f pixels "
             "(%.2f degrees): view %zu (%s)",
             folder, mean, cameras[most].pixels, cameras[most].degrees, most,
             cameras[most].camera.image_path);
    warn_of_limit(folder, cameras, count);
}

/* Logs the focal length of the view whose focal length has changed most. */
static void log_focal(const char *folder, const struct vkn_scene *scene,
                      const struct step_camera *cameras, size_t count)
{
    const struct scene_camera *given = scene->splits[SCENE_TRAIN].cameras;
    size_t most = 0;
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        double change = (double)cameras[i].camera.focal_x / (double)given[i].focal_x - 1;
        most = fabs(change) > fabs(largest) ? i : most;
        largest = fabs(change) > fabs(largest) ? change : largest;
    }
    base_log(BASE_LOG_INFO,
             "%s: refined focal length of view %zu (%s): %.6g pixels instead of %.6g (%+.2f %%)",
             folder, most, cameras[most].camera.image_path,
             scene->downscale * (double)cameras[most].camera.focal_x,
             scene->downscale * (double)given[most].focal_x, 100 * largest);
}

static vkn_status write_refined(const char *folder, const struct step *step,
                                const struct vkn_scene *scene)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    size_t count = train->camera_count;
    char *path = base_path_join(folder, RUN_CAMERAS);
    if (path && step->setup.config.scene.refine <= VKN_REFINEMENT_OFF) {
        (void)remove(path); /* of an earlier training; mostly there is none */
        free(path);
        return VKN_OK;
    }
    struct step_camera *cameras = base_alloc(count, sizeof *cameras);
    vkn_status status = path && cameras ? step_read_cameras(step, train, cameras) : VKN_ERROR;
    if (status == VKN_OK)
        status = write_cameras(path, scene, cameras, count);
    if (status == VKN_OK)
        log_movement(folder, cameras, count);
    if (status == VKN_OK && step->setup.config.scene.refine > VKN_REFINEMENT_POSES)
        log_focal(folder, scene, cameras, count);
    free(cameras);
    free(path);
    return status;
}

vkn_status run_write_views(const char *folder, const struct step *step,
                           const struct vkn_scene *scene)
{
    BASE_TRY(write_refined(folder, step, scene));
    return run_write_appearance(folder, step, scene);
}
