/* Writes and describes the appearance of training views that a training has estimated. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "run/internal.h"
#include "run/training.h"
#include "report/report.h"
#include "step/step.h"

#define SEEN 0.02 /* stops: a smaller spread of exposures is noise */

static bool add_numbers(cJSON *object, const char *name, const float *values, int count)
{
    cJSON *list = cJSON_AddArrayToObject(object, name);
    bool added = list != NULL;
    for (int i = 0; i < count && added; i++)
        added = cJSON_AddItemToArray(list, cJSON_CreateNumber((double)values[i]));
    return added;
}

static bool add_view(cJSON *list, const struct scene_camera *camera,
                     const struct Appearance *appearance, bool is_full)
{
    const float *values = appearance->values;
    cJSON *view = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(list, view))
        return false;
    return cJSON_AddStringToObject(view, "image", camera->image_path) &&
           cJSON_AddNumberToObject(view, "exposure", (double)values[0]) &&
           (!camera->has_exposure ||
            cJSON_AddNumberToObject(view, "exposure_in_file", (double)appearance->given)) &&
           (!is_full || (add_numbers(view, "white_balance", values + 1, 2) &&
                         add_numbers(view, "primaries", values + 3, APPEARANCE_IMAGE - 3) &&
                         cJSON_AddNumberToObject(view, "camera", appearance->group)));
}

/* Adds the parameters of a camera, whose first view is `first`. */
static bool add_camera(cJSON *list, size_t first, const struct Appearance *appearance)
{
    static const char *const channels[] = {"red", "green", "blue"};
    cJSON *camera = cJSON_CreateObject();
    bool added = cJSON_AddItemToArray(list, camera) &&
                 cJSON_AddNumberToObject(camera, "first_view", (double)first);
    for (int c = 0; c < 3 && added; c++) {
        cJSON *channel = cJSON_AddObjectToObject(camera, channels[c]);
        added = channel &&
                add_numbers(channel, "vignetting",
                            appearance->values + APPEARANCE_VIGNETTING + (ptrdiff_t)5 * c, 5) &&
                add_numbers(channel, "curve",
                            appearance->values + APPEARANCE_CURVE + (ptrdiff_t)4 * c, 4);
    }
    return added;
}

static cJSON *describe(const struct vkn_scene *scene, const struct Appearance *appearances,
                       bool is_full)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "views");
    bool added = list != NULL;
    for (size_t i = 0; i < train->camera_count && added; i++)
        added = add_view(list, &train->cameras[i], &appearances[i], is_full);
    list = added && is_full ? cJSON_AddArrayToObject(json, "cameras") : NULL;
    for (size_t i = 0; i < train->camera_count && added && is_full; i++)
        added = list && (appearances[i].group != i || add_camera(list, i, &appearances[i]));
    if (added)
        return json;
    cJSON_Delete(json);
    return NULL;
}

/* Returns the root mean square of a parameter over the views. */
static double spread_of(const struct Appearance *appearances, size_t count, size_t parameter)
{
    double square = 0;
    for (size_t i = 0; i < count; i++)
        square += pow((double)appearances[i].values[parameter], 2) / (double)count;
    return sqrt(square);
}

static void log_appearance(const char *folder, const struct vkn_scene *scene,
                           const struct Appearance *appearances, bool is_full)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    size_t least = 0, most = 0, count = train->camera_count;
    double spread = spread_of(appearances, count, 0);
    for (size_t i = 0; i < count; i++) {
        least = appearances[i].values[0] < appearances[least].values[0] ? i : least;
        most = appearances[i].values[0] > appearances[most].values[0] ? i : most;
    }
    if (spread < SEEN)
        base_log(BASE_LOG_INFO, "%s: estimated exposures differ by less than %.2f stops", folder,
                 SEEN);
    else
        base_log(BASE_LOG_INFO,
                 "%s: estimated exposures differ by %.2f stops in the mean: from %+.2f (%s) to "
                 "%+.2f (%s)",
                 folder, spread, (double)appearances[least].values[0],
                 train->cameras[least].image_path, (double)appearances[most].values[0],
                 train->cameras[most].image_path);
    if (is_full)
        base_log(BASE_LOG_INFO,
                 "%s: estimated gains of red and blue differ by %.2f and %.2f stops in the mean",
                 folder, spread_of(appearances, count, 1), spread_of(appearances, count, 2));
}

static vkn_status write_file(const char *path, const struct vkn_scene *scene,
                             const struct Appearance *appearances, bool is_full)
{
    cJSON *json = describe(scene, appearances, is_full);
    char *text = json ? base_json_print(json) : NULL;
    vkn_status status =
        text ? base_file_replace(path, text, strlen(text)) : base_fail(VKN_ERROR, "out of memory");
    free(text);
    cJSON_Delete(json);
    return status;
}

vkn_status run_write_appearance(const char *folder, const struct step *step,
                                const struct vkn_scene *scene)
{
    const enum vkn_appearance kind = step->setup.config.scene.appearance;
    size_t count = scene->splits[SCENE_TRAIN].camera_count;
    char *path = base_path_join(folder, REPORT_APPEARANCE);
    if (path && kind <= VKN_APPEARANCE_OFF) {
        (void)remove(path); /* of an earlier training; mostly there is none */
        free(path);
        return VKN_OK;
    }
    struct Appearance *appearances = base_alloc(count, sizeof *appearances);
    vkn_status status =
        path && appearances ? step_read_appearances(step, 0, count, appearances) : VKN_ERROR;
    if (status == VKN_OK)
        status = write_file(path, scene, appearances, kind == VKN_APPEARANCE_FULL);
    if (status == VKN_OK)
        log_appearance(folder, scene, appearances, kind == VKN_APPEARANCE_FULL);
    free(appearances);
    free(path);
    return status;
}
