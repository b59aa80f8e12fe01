/* Answers /api/control: pauses, resumes, saves and stops a training, sets the share of its time for
 * rendering, and ends the viewer. */
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

static const char *request_pause(struct viewer *viewer)
{
    if (!viewer->can_pause)
        return "a training with several ranks cannot be paused: the other ranks would wait";
    viewer->pause_requested = true;
    return NULL;
}

/* Sets the share of a training's time for rendering. */
static const char *set_share(struct viewer *viewer, const cJSON *json)
{
    const cJSON *share = cJSON_GetObjectItemCaseSensitive(json, "share");
    if (!cJSON_IsNumber(share) ||
        !(share->valuedouble >= VIEWER_LEAST_SHARE && share->valuedouble <= 1))
        return "share: is not a number from 0.02 to 1";
    viewer->time_share = share->valuedouble;
    return NULL;
}

/* Does what `json` asks for. Returns an error, or NULL. */
static const char *run_action(struct viewer *viewer, const cJSON *json, unsigned *code)
{
    const char *action = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "action"));
    if (!action)
        return "the body is not {\"action\": ...}";
    bool end = strcmp(action, "end") == 0, stop = strcmp(action, "stop") == 0;
    if (end ? viewer->state <= STATE_ENDING : !state_trains(viewer)) {
        *code = 409;
        return end ? "the program has other work; stop the training first"
                   : "nothing is being trained here";
    }
    if (!stop && !end && !allowance_take(&viewer->commands, viewer_now())) {
        *code = 429;
        return "too many requests that change something: wait a second";
    }
    if (strcmp(action, "save") == 0)
        return request_save(viewer, code);
    if (strcmp(action, "pause") == 0)
        return request_pause(viewer);
    if (strcmp(action, "share") == 0)
        return set_share(viewer, json);
    if (strcmp(action, "resume") == 0)
        viewer->pause_requested = false;
    else if (stop || end)
        __atomic_store_n(viewer->stop, 1, __ATOMIC_RELAXED); /* the renderer's thread reads it */
    else
        return "action: is not one of pause, resume, save, stop, share, end";
    return NULL;
}

struct answer control_answer(struct viewer *viewer, const char *body)
{
    cJSON *json = body ? cJSON_Parse(body) : NULL;
    unsigned code = 400;
    const char *problem = run_action(viewer, json, &code);
    cJSON_Delete(json);
    if (problem)
        return answer_error(code, problem);
    pthread_cond_signal(&viewer->wake_renderer);
    return answer_text(200, "application/json", strdup("{\"ok\": true}"));
}
