/* Completes the parameters of jobs with defaults, and creates and frees their results. */
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "config/config.h"
#include "run/internal.h"

/* ---- parameters ------------------------------------------------------------------------------ */

vkn_status run_read_job(const struct vkn_job **job, struct vkn_job *copy)
{
    BASE_TRY(BASE_READ("vkn_job", vkn_job, *job, copy, stop));
    *job = copy;
    return VKN_OK;
}

vkn_status run_read_train(const struct vkn_train_params *given, struct vkn_train_params *copy,
                          struct vkn_job *job)
{
    BASE_TRY(BASE_READ("vkn_train_params", vkn_train_params, given, copy, command_count));
    for (size_t i = 0; i < copy->command_count; i++)
        if (!copy->command || !copy->command[i])
            return base_fail(VKN_BAD_INPUT,
                             "vkn_train_params: command_count: word %zu of command is NULL", i);
    copy->config = config_or_default(copy->config);
    copy->given = config_or_default(copy->given);
    return run_read_job(&copy->job, job);
}

/* ---- results --------------------------------------------------------------------------------- */

vkn_status run_create_result(struct vkn_train_result **result)
{
    struct vkn_train_result *made = *result = base_alloc(1, sizeof *made);
    if (made) {
        made->images = base_alloc(1, sizeof *made->images);
        made->buffers = base_alloc(VKN_MAX_BUFFERS, sizeof *made->buffers);
        made->passes = base_alloc(TRAIN_MAX_PASSES, sizeof *made->passes);
    }
    if (made && made->images && made->buffers && made->passes)
        return VKN_OK;
    vkn_train_result_free(result);
    return VKN_ERROR;
}

void vkn_train_result_free(struct vkn_train_result **result)
{
    if (!result || !*result)
        return;
    vkn_evaluation_free(&(*result)->evaluation);
    vkn_profile_free(&(*result)->profile);
    free((*result)->images);
    free((*result)->buffers);
    free((*result)->passes);
    free((*result)->folder);
    free(*result);
    *result = NULL;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static bool add_path(cJSON *json, const char *name, const char *folder, const char *file)
{
    char *path = base_path_join(folder, file);
    bool added = path && cJSON_AddStringToObject(json, name, path);
    free(path);
    return added;
}

char *vkn_train_result_json(const struct vkn_train_result *result)
{
    if (!result || !result->folder)
        return NULL;
    char *summary = base_path_join(result->folder, RUN_SUMMARY);
    cJSON *json = NULL;
    vkn_status status = summary ? base_json_read(summary, RUN_JSON_LIMIT, &json) : VKN_ERROR;
    free(summary);
    if (status != VKN_OK)
        return NULL;
    bool complete = cJSON_AddStringToObject(json, "run", result->folder) &&
                    add_path(json, "checkpoint", result->folder, RUN_CHECKPOINT) &&
                    add_path(json, "report", result->folder, RUN_REPORT) &&
                    add_path(json, "pictures", result->folder, RUN_VIEWS);
    char *text = complete ? base_json_print(json) : NULL;
    cJSON_Delete(json);
    if (!complete)
        base_fail(VKN_ERROR, "out of memory");
    return text;
}
