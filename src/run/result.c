/* The result of a training, and the same as JSON. */
#include "run/internal.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

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
