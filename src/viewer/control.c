/* Answers /api/control: pauses, resumes, saves and stops a training. */
#include "viewer/internal.h"

#include <string.h>

#include <cjson/cJSON.h>

/* Least time between requested checkpoints: the training waits while one is written. */
#define SAVE_SECONDS 10.0

/* Requests a checkpoint. Returns an error, or NULL. */
static const char *request_save(struct viewer *viewer, unsigned *code)
{
    double now = viewer_now();
    if (viewer->saved_at > 0 && now - viewer->saved_at < SAVE_SECONDS) {
        *code = 429;
        return "the last checkpoint was saved less than 10 s ago";
    }
    viewer->saved_at = now;
    viewer->save_requested = true;
    return NULL;
}

static const char *run_action(struct viewer *viewer, const char *action, unsigned *code)
{
    bool pause = strcmp(action, "pause") == 0, stop = strcmp(action, "stop") == 0;
    if (!stop && !allowance_take(&viewer->commands, viewer_now())) {
        *code = 429;
        return "too many requests that change something: wait a second";
    }
    if (strcmp(action, "save") == 0)
        return request_save(viewer, code);
    if (pause && !viewer->can_pause)
        return "a training with several ranks cannot be paused: the other ranks would wait";
    if (pause)
        viewer->pause_requested = true;
    else if (strcmp(action, "resume") == 0)
        viewer->pause_requested = false;
    else if (stop)
        __atomic_store_n(viewer->stop, 1, __ATOMIC_RELAXED); /* the training's thread reads it */
    else
        return "action: is not one of pause, resume, save, stop";
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
        problem = run_action(viewer, action->valuestring, &code);
    }
    cJSON_Delete(json);
    if (problem)
        return answer_error(code, problem);
    pthread_cond_signal(&viewer->wake_renderer);
    return answer_text(200, "application/json", strdup("{\"ok\": true}"));
}
