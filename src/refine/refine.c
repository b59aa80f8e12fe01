/* Implements vkn_refine: refines cameras, compares them with the original ones, and judges. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "refine/internal.h"

#define LEAST_SEEDS 2u /* for a noise */
#define MOST_SEEDS  100u

/* ---- parameters ------------------------------------------------------------------------------ */

static vkn_status read_params(const struct vkn_refine_params *given, struct refinement *r,
                              struct vkn_refine_params *params)
{
    BASE_TRY(BASE_READ("vkn_refine", vkn_refine_params, given, params, seeds));
    BASE_TRY(
        BASE_READ("vkn_train_params", vkn_train_params, params->train, &r->train, command_count));
    BASE_TRY(BASE_READ("vkn_job", vkn_job, r->train.job, &r->job, stop));
    if (!r->train.scene || !r->train.scene[0])
        return base_fail(VKN_BAD_INPUT, "no scene is given");
    if (!r->train.out || !r->train.out[0])
        return base_fail(VKN_BAD_INPUT, "no folder is given for the result");
    if (r->train.resume || r->train.init)
        return base_fail(VKN_BAD_INPUT, "a refinement begins with untrained fields: %s is not used",
                         r->train.resume ? "resume" : "init");
    r->seeds = params->seeds > 0 ? params->seeds : LEAST_SEEDS;
    r->config = *config_or_default(r->train.config);
    if (r->config.scene.refine == VKN_REFINEMENT_OFF)
        return base_fail(VKN_BAD_INPUT, "scene.refine: off: there is nothing to refine");
    if (r->config.scene.refine == VKN_REFINEMENT_DEFAULT)
        r->config.scene.refine = VKN_REFINEMENT_POSES;
    return VKN_OK;
}

/* Returns what a path adds to that of its folder; "" for the folder itself. */
static const char *part_of(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    return strncmp(path, folder, size) == 0 ? path + size + strspn(path + size, "/") : "";
}

/* Finds the path in `out` of what a scene's path names: a file, a model of a capture such as
 * sparse/1, or the whole folder. The caller frees *path. */
static vkn_status find_refined(const char *scene, const char *out, char **path)
{
    char *absolute = realpath(scene, NULL), *capture = NULL, *folder = NULL;
    if (absolute == NULL)
        return base_fail(base_status_of_errno(errno), "%s: %s", scene, strerror(errno));
    if (!base_is_folder(scene))
        folder = base_path_folder(absolute);
    else if (scene_capture_folder(scene, &capture) == VKN_OK)
        folder = realpath(capture, NULL);
    if (folder != NULL)
        *path = base_path_join(out, part_of(absolute, folder));
    free(folder);
    free(capture);
    free(absolute);
    return *path != NULL ? VKN_OK : VKN_ERROR;
}

static vkn_status set_paths(struct refinement *r)
{
    r->out = r->train.out;
    r->work = base_path_join(r->out, "refine");
    r->paths[REFINE_ORIGINAL] = base_format("%s", r->train.scene);
    for (int set = 0; set < REFINE_SETS; set++)
        r->runs[set] = base_alloc(r->seeds, sizeof *r->runs[set]);
    if (!r->work || !r->paths[REFINE_ORIGINAL] || !r->runs[0] || !r->runs[1])
        return VKN_ERROR;
    if (!r->params->cameras)
        return find_refined(r->train.scene, r->out, &r->paths[REFINE_OTHER]);
    r->paths[REFINE_OTHER] = base_format("%s", r->params->cameras);
    return r->paths[REFINE_OTHER] ? VKN_OK : VKN_ERROR;
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* Fails if a new refinement's folder has content. */
static vkn_status check_empty(const struct refinement *r)
{
    static const char *const own[] = {"refine", NULL};
    return base_refuse_foreign(r->out, own, "refine");
}

/* Adds the name and size of a view's image, and the view's camera. */
static bool describe_view(cJSON *list, const struct scene_camera *camera)
{
    struct base_text text = {0};
    uint64_t size = 0;
    size_t none;
    char byte;
    if (base_file_read_beginning(camera->image_path, &byte, 1, &none, &size) != VKN_OK)
        return false;
    base_text_add(&text, "%s, %llu bytes: %.9g %.9g %.9g %.9g,", base_path_name(camera->image_path),
                  (unsigned long long)size, (double)camera->focal_x, (double)camera->focal_y,
                  (double)camera->center_x, (double)camera->center_y);
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        base_text_add(&text, " %.9g", (double)camera->distortion[i]);
    for (int i = 0; i < 12; i++)
        base_text_add(&text, "%s %.9g", i > 0 ? "" : ",", (double)camera->pose[i]);
    cJSON *item = text.data ? cJSON_CreateString(text.data) : NULL;
    bool added = item && cJSON_AddItemToArray(list, item);
    free(text.data);
    return added;
}

/* Adds the views of the given scenes, so that scenes that change are noticed. */
static bool describe_views(cJSON *json, const struct refinement *r)
{
    cJSON *list = cJSON_AddArrayToObject(json, "views");
    bool added = list != NULL;
    for (int set = 0; set < REFINE_SETS; set++)
        for (size_t i = 0; r->scenes[set] && i < r->result.views && added; i++)
            added = describe_view(list, &r->scenes[set]->splits[SCENE_TRAIN].cameras[i]);
    return added;
}

/* Returns what the results depend on, as JSON: the scenes and the settings. */
static char *describe_settings(const struct refinement *r)
{
    cJSON *json = cJSON_CreateObject();
    char *config = vkn_config_write_json(&r->config);
    char *scene = realpath(r->train.scene, NULL);
    char *other = r->params->cameras ? realpath(r->params->cameras, NULL) : NULL;
    bool added = config && cJSON_AddStringToObject(json, "scene", scene ? scene : r->train.scene) &&
                 (!other || cJSON_AddStringToObject(json, "cameras", other)) &&
                 cJSON_AddRawToObject(json, "config", config) && describe_views(json, r);
    char *text = added ? base_json_print(json) : NULL;
    free(other);
    free(scene);
    free(config);
    cJSON_Delete(json);
    return text;
}

/* Compares the settings with those of an earlier call; writes them in a new folder. */
static vkn_status check_settings(const struct refinement *r, const char *path, const char *settings)
{
    char *earlier = NULL;
    size_t size = 0;
    if (!base_file_exists(path))
        return base_file_replace(path, settings, strlen(settings));
    BASE_TRY(base_file_read(path, REFINE_JSON_LIMIT, &earlier, &size));
    bool same = strcmp(earlier, settings) == 0;
    free(earlier);
    return same ? VKN_OK
                : base_fail(VKN_BAD_INPUT,
                            "%s: holds the refinement of another scene, or with other settings, "
                            "or the scene has changed (refine/settings.json); name another folder "
                            "with --out",
                            r->out);
}

/* Makes the folder, or continues in the folder of an earlier call with the same settings. */
static vkn_status open_folder(struct refinement *r)
{
    BASE_TRY(base_make_last_folder(r->out));
    if (!base_is_folder(r->work))
        BASE_TRY(check_empty(r));
    BASE_TRY(base_make_folder(r->work));
    char *lock = base_path_join(r->work, ".lock"), *path = base_path_join(r->work, "settings.json");
    char *settings = describe_settings(r);
    vkn_status status = lock && path && settings ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        status = base_lock_take(lock, r->out, "refining cameras into this folder", &r->lock);
    if (status == VKN_OK)
        status = check_settings(r, path, settings);
    free(settings);
    free(path);
    free(lock);
    return status;
}

/* ---- the stages ------------------------------------------------------------------------------ */

/* Trains on all views while their cameras are refined, and writes the scene. */
static vkn_status refine(struct refinement *r)
{
    struct vkn_config config = r->config;
    config.scene.test_views = VKN_TEST_VIEWS_NONE;
    char *folder = NULL;
    vkn_status status =
        refine_train(r, "refined_cameras", r->paths[REFINE_ORIGINAL], &config, &folder);
    if (status == VKN_OK)
        status = vkn_run_config(folder, &config);
    r->limit = (double)config.refine.limit;
    if (status == VKN_OK)
        status = refine_measure_views(r, folder);
    if (status == VKN_OK)
        status = refine_find_misfits(r->views, r->result.views, &r->result.misfits);
    if (status == VKN_OK)
        status = refine_write_scene(r, folder);
    free(folder);
    return status;
}

static vkn_status run(struct refinement *r)
{
    BASE_TRY(set_paths(r));
    BASE_TRY(refine_open_original(r));
    r->result.views = r->scenes[REFINE_ORIGINAL]->splits[SCENE_TRAIN].camera_count;
    if (r->params->cameras)
        BASE_TRY(refine_open_other(r));
    BASE_TRY(open_folder(r));
    if (r->params->cameras == NULL) {
        BASE_TRY(refine(r));
        BASE_TRY(refine_open_other(r));
    }
    BASE_TRY(refine_compare(r));
    r->result.steps = r->steps;
    r->result.seconds = base_seconds() - r->began;
    return refine_write_verdict(r);
}

static void end(struct refinement *r)
{
    BASE_KEEP_ERROR;
    refine_free_runs(r);
    for (int set = 0; set < REFINE_SETS; set++) {
        scene_close(&r->scenes[set]);
        free(r->paths[set]);
    }
    scene_close(&r->split);
    free(r->views);
    free(r->work);
    free(r->device);
    free(r->driver);
    if (r->lock >= 0)
        close(r->lock);
}

vkn_status vkn_refine(const struct vkn_refine_params *given, struct vkn_refine_result *result)
{
    BASE_C_LOCALE;
    struct vkn_refine_params params;
    struct refinement r = {
        .params = &params, .lock = -1, .began = base_seconds(), .limit = (double)NAN};
    BASE_NEED(result);
    struct vkn_refine_result *made = &r.result;
    made->pixels = (double)NAN;
    BASE_TRY(BASE_FILL(vkn_refine_result, made, result, seconds));
    BASE_TRY(read_params(given, &r, &params));
    if (params.seeds > 0)
        BASE_RANGE(&params, seeds, LEAST_SEEDS, MOST_SEEDS);
    vkn_status status = run(&r);
    end(&r);
    vkn_status filled = BASE_FILL(vkn_refine_result, made, result, seconds);
    return status != VKN_OK ? status : filled;
}
