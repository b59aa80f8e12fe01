/* What somebody who looks asks of a training. */
#include "viewer/internal.h"

#include <string.h>

#include <cjson/cJSON.h>

static const char *act(struct viewer *viewer, const char *action)
{
    bool pause = strcmp(action, "pause") == 0;
    if (pause && !viewer->can_pause)
        return "several ranks train together, who would wait for each other";
    if (pause)
        viewer->pause = true;
    else if (strcmp(action, "resume") == 0)
        viewer->pause = false;
    else if (strcmp(action, "save") == 0)
        viewer->save = true;
    else if (strcmp(action, "stop") == 0)
        __atomic_store_n(viewer->stop, 1, __ATOMIC_RELAXED); /* the training's thread reads it */
    else
        return "action: is none of pause, resume, save, stop";
    return NULL;
}

struct answer control_answer(struct viewer *viewer, const char *body)
{
    cJSON *json = body ? cJSON_Parse(body) : NULL;
    const cJSON *action = cJSON_GetObjectItemCaseSensitive(json, "action");
    const char *problem = "the body is not {\"action\": ...}";
    unsigned code = 400;
    if (viewer->state > STATE_SAVING || !viewer->facts) {
        problem = "nothing is being trained here";
        code = 409;
    } else if (cJSON_IsString(action)) {
        problem = act(viewer, action->valuestring);
    }
    cJSON_Delete(json);
    if (problem)
        return answer_error(code, problem);
    pthread_cond_signal(&viewer->renders);
    return answer_text(200, "application/json", strdup("{\"ok\": true}"));
}
