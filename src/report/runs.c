/* Reads and names the runs of a page, and writes them as the JSON of the page. */
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "report/page.h"

/* ---- names ---------------------------------------------------------------------------------- */

char *page_last_part(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    return end > begin ? base_format("%.*s", (int)(end - begin), path + begin)
                       : base_format("%s", path);
}

static char *run_name(const char *folder)
{
    char *absolute = realpath(folder, NULL), *name = page_last_part(absolute ? absolute : folder);
    free(absolute);
    return name;
}

/* Returns the scene's path, from summary.json, else from config.json; NULL when unknown. */
static const char *scene_path(const struct run *run)
{
    if (run->summary.scene)
        return run->summary.scene;
    const cJSON *scene = cJSON_GetObjectItemCaseSensitive(run->config, "scene");
    if (cJSON_IsObject(scene))
        scene = cJSON_GetObjectItemCaseSensitive(scene, "path");
    return cJSON_GetStringValue(scene);
}

/* Replaces equal names by the folders' paths. */
static vkn_status separate_names(struct page_run *runs, size_t count)
{
    bool shared[PAGE_RUNS] = {false};
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            shared[i] |= i != j && strcmp(runs[i].name, runs[j].name) == 0;
    for (size_t i = 0; i < count; i++) {
        if (!shared[i])
            continue;
        free(runs[i].name);
        runs[i].name = base_format("%s", runs[i].run.folder);
        if (runs[i].name == NULL)
            return VKN_ERROR;
    }
    return VKN_OK;
}

vkn_status page_read_runs(const char *const *folders, size_t count, struct page_run *runs)
{
    for (size_t i = 0; i < count; i++) {
        BASE_TRY(run_read(folders[i], &runs[i].run));
        const char *path = scene_path(&runs[i].run);
        runs[i].name = run_name(folders[i]);
        runs[i].scene = page_last_part(path ? path : "");
        if (!runs[i].name || !runs[i].scene)
            return VKN_ERROR;
    }
    return separate_names(runs, count);
}

void page_free_runs(struct page_run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        run_free(&runs[i].run);
        free(runs[i].name);
        free(runs[i].scene);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* Adds a file's JSON without a copy; nothing for a file that is missing. */
static bool add_file(cJSON *json, const char *name, cJSON *file)
{
    return !file || cJSON_AddItemReferenceToObject(json, name, file);
}

static bool add_metrics(cJSON *json, const struct run *run)
{
    struct base_text text = {0};
    run_metrics_json(&run->metrics, &text);
    bool added = !text.failed && cJSON_AddRawToObject(json, "metrics", text.data);
    free(text.data);
    return added;
}

static bool add_run(cJSON *list, const struct page_run *run)
{
    cJSON *json = cJSON_CreateObject();
    return cJSON_AddItemToArray(list, json) && cJSON_AddStringToObject(json, "name", run->name) &&
           cJSON_AddStringToObject(json, "scene", run->scene) &&
           add_file(json, "config", run->run.config) &&
           add_file(json, "summary", run->run.summary_json) &&
           add_file(json, "appearance", run->run.appearance) && add_metrics(json, &run->run);
}

cJSON *page_runs_json(const struct page_run *runs, size_t count)
{
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "runs");
    bool complete = list != NULL;
    for (size_t i = 0; i < count && complete; i++)
        complete = add_run(list, &runs[i]);
    if (complete)
        return json;
    cJSON_Delete(json);
    return NULL;
}
