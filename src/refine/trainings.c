/* Runs the trainings of a refinement, and reads their results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "refine/internal.h"

const char *const refine_set_names[REFINE_SETS] = {"original", "refined"};

/* ---- one training ---------------------------------------------------------------------------- */

/* Trains, or continues a training that was interrupted. */
static vkn_status run(struct refinement *r, const char *folder, const char *scene,
                      const struct vkn_config *config, const struct vkn_run_state *state)
{
    struct vkn_config recorded = {0};
    const struct vkn_config defaults = {0};
    struct vkn_train_params params = r->train;
    params.job = &r->job;
    params.scene = scene;
    params.out = folder;
    params.config = config;
    params.given = &defaults;
    params.overwrite = true; /* a training that was ended before its first checkpoint */
    if (state->exists) {
        BASE_TRY(vkn_run_config(folder, &recorded));
        params.config = &recorded;
        params.resume = folder;
    }
    struct vkn_train_result *result = NULL;
    vkn_status status = vkn_run_train(&params, &result);
    vkn_train_result_free(&result);
    if (status == VKN_INTERRUPTED)
        base_fail(status, "%s: interrupted and saved; the same command continues", r->out);
    return status;
}

vkn_status refine_train(struct refinement *r, const char *name, const char *scene,
                        const struct vkn_config *config, char **folder)
{
    struct vkn_run_state state = {.size = sizeof state};
    *folder = base_path_join(r->work, name);
    if (*folder == NULL)
        return VKN_ERROR;
    BASE_TRY(vkn_run_inspect(*folder, &state));
    if (!state.finished) {
        base_log(BASE_LOG_INFO, "%s: training: %s", r->out, name);
        BASE_TRY(run(r, *folder, scene, config, &state));
        BASE_TRY(vkn_run_inspect(*folder, &state));
    }
    if (r->steps == 0)
        r->steps = state.step;
    return VKN_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Reads `name`, psnr or ssim, of all views, in fresh memory; NaN for a view without pixels that
 * count. */
static vkn_status read_views(const struct cJSON *json, const char *file, const char *name,
                             size_t count, double **views)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "per_view"), *item;
    size_t i = 0;
    if ((size_t)cJSON_GetArraySize(list) != count)
        return base_json_fail(file, "per_view", "not as many as the scene's %zu views", count);
    *views = base_alloc(count, sizeof **views);
    if (*views == NULL)
        return VKN_ERROR;
    cJSON_ArrayForEach (item, list) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, name);
        (*views)[i++] = cJSON_IsNumber(value) ? value->valuedouble : (double)NAN;
    }
    return VKN_OK;
}

static vkn_status keep_text(const struct cJSON *json, const char *name, const char *file,
                            char **text)
{
    const char *found = NULL;
    BASE_TRY(base_json_string(json, name, file, true, &found));
    if (*text == NULL)
        *text = base_format("%s", found);
    return *text != NULL ? VKN_OK : VKN_ERROR;
}

static vkn_status read_run(struct refinement *r, struct refine_run *run)
{
    char *file = base_path_join(run->folder, "summary.json");
    cJSON *json = NULL;
    vkn_status status = file ? base_json_read(file, REFINE_JSON_LIMIT, &json) : VKN_ERROR;
    if (status == VKN_OK)
        status = base_json_number(json, "psnr", file, true, -1e3, 1e3, &run->psnr);
    if (status == VKN_OK)
        status = base_json_number(json, "ssim", file, true, -1, 1, &run->ssim);
    if (status == VKN_OK)
        status = keep_text(json, "device", file, &r->device);
    if (status == VKN_OK)
        status = keep_text(json, "driver", file, &r->driver);
    if (status == VKN_OK)
        status =
            read_views(json, file, "psnr", r->split->splits[SCENE_TEST].camera_count, &run->views);
    cJSON_Delete(json);
    free(file);
    return status;
}

/* ---- how views fit --------------------------------------------------------------------------- */

/* Evaluates the views, and writes the result, so that the next call need not. */
static vkn_status evaluate(const struct refinement *r, const char *run, const char *file)
{
    const struct vkn_eval_params params = {.job = &r->job, .run = run, .split = VKN_SPLIT_TRAIN};
    struct vkn_evaluation *evaluation = NULL;
    vkn_status status = vkn_run_eval(&params, &evaluation);
    if (status == VKN_INTERRUPTED)
        base_fail(status, "%s: interrupted; the same command continues", r->out);
    char *text = status == VKN_OK ? vkn_evaluation_json(evaluation) : NULL;
    if (status == VKN_OK)
        status = text ? base_file_replace(file, text, strlen(text)) : VKN_ERROR;
    free(text);
    vkn_evaluation_free(&evaluation);
    return status;
}

static vkn_status set_views(struct refinement *r, const char *file)
{
    double *psnr = NULL, *ssim = NULL;
    cJSON *json = NULL;
    BASE_TRY(base_json_read(file, REFINE_JSON_LIMIT, &json));
    vkn_status status = read_views(json, file, "psnr", r->result.views, &psnr);
    if (status == VKN_OK)
        status = read_views(json, file, "ssim", r->result.views, &ssim);
    for (size_t i = 0; status == VKN_OK && i < r->result.views; i++) {
        r->views[i].psnr = psnr[i];
        r->views[i].ssim = ssim[i];
    }
    free(psnr);
    free(ssim);
    cJSON_Delete(json);
    return status;
}

vkn_status refine_measure_views(struct refinement *r, const char *folder)
{
    char *file = base_path_join(r->work, "views.json");
    vkn_status status = file ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && !base_file_exists(file))
        status = evaluate(r, folder, file);
    if (status == VKN_OK)
        status = set_views(r, file);
    free(file);
    return status;
}

/* ---- all trainings that are compared --------------------------------------------------------- */

static vkn_status train_seed(struct refinement *r, enum refine_cameras set, uint32_t index)
{
    struct vkn_config config = r->config;
    config.scene.refine = VKN_REFINEMENT_OFF;
    config.seed += index;
    if (r->steps > 0) { /* all trainings take as many steps as the first one */
        config.steps = (uint32_t)r->steps;
        config.seconds = 0;
    }
    struct refine_run *run = &r->runs[set][index];
    char *name = base_format("%s_%llu", refine_set_names[set], (unsigned long long)config.seed);
    vkn_status status =
        name ? refine_train(r, name, r->paths[set], &config, &run->folder) : VKN_ERROR;
    free(name);
    return status == VKN_OK ? read_run(r, run) : status;
}

vkn_status refine_compare(struct refinement *r)
{
    for (uint32_t i = 0; i < r->seeds; i++)
        for (unsigned set = 0; set < REFINE_SETS; set++)
            BASE_TRY(train_seed(r, set, i));
    return VKN_OK;
}

void refine_free_runs(struct refinement *r)
{
    for (unsigned set = 0; set < REFINE_SETS; set++) {
        for (uint32_t i = 0; r->runs[set] && i < r->seeds; i++) {
            free(r->runs[set][i].folder);
            free(r->runs[set][i].views);
        }
        free(r->runs[set]);
    }
}
