/* Answers /api/state: the run's state and its curves. */
#include "viewer/internal.h"

#include <math.h>

#include <cjson/cJSON.h>

#define MOST_METRICS 20000u /* log lines in one answer; the page asks again for the rest */

const char *state_name(enum viewer_state state)
{
    static const char *const names[] = {"opening",  "training", "paused", "saving", "ending",
                                        "finished", "stopped",  "failed", "viewing"};
    return names[state];
}

static void add_number(cJSON *object, const char *name, double number)
{
    cJSON_AddItemToObject(object, name,
                          isfinite(number) ? cJSON_CreateNumber(number) : cJSON_CreateNull());
}

static void add_curves(cJSON *object, const struct curves *curves, size_t from)
{
    if (from > curves->metric_count) /* another run has started in the folder */
        from = 0;
    size_t end = from;
    cJSON *metrics = cJSON_AddArrayToObject(object, "metrics");
    for (; end < curves->metric_count && end - from < MOST_METRICS; end++) {
        const struct metric *metric = &curves->metrics[end];
        const double row[] = {metric->step,     metric->seconds,  metric->loss,    metric->psnr,
                              metric->parts[0], metric->parts[1], metric->parts[2]};
        cJSON_AddItemToArray(metrics, cJSON_CreateDoubleArray(row, 4 + METRIC_PARTS));
    }
    cJSON_AddNumberToObject(object, "next", (double)end);
    cJSON *evaluations = cJSON_AddArrayToObject(object, "evaluations");
    for (size_t i = 0; i < curves->evaluation_count; i++) {
        const struct evaluation *evaluation = &curves->evaluations[i];
        const double row[] = {evaluation->step, evaluation->psnr, evaluation->ssim};
        cJSON_AddItemToArray(evaluations, cJSON_CreateDoubleArray(row, 3));
    }
}

static void add_views(cJSON *object, const struct curves *curves)
{
    cJSON *views = cJSON_AddArrayToObject(object, "views");
    for (size_t i = 0; i < curves->view_count; i++) {
        cJSON *view = cJSON_CreateArray();
        cJSON_AddItemToArray(view, cJSON_CreateString(curves->views[i].name));
        cJSON_AddItemToArray(view, cJSON_CreateNumber(curves->views[i].psnr));
        cJSON_AddItemToArray(views, view);
    }
}

bool state_trains(const struct viewer *viewer)
{
    return viewer->facts && viewer->state >= STATE_TRAINING && viewer->state <= STATE_SAVING;
}

/* Returns the seconds until the training reaches its first limit; NaN: unknown. */
static double seconds_left(const struct viewer *viewer)
{
    double left = NAN;
    if (viewer->step_limit > 0 && viewer->curves.steps_per_second > 0)
        left = (viewer->step_limit - (double)viewer->step) / viewer->curves.steps_per_second;
    if (viewer->second_limit > 0)
        left = fmin(left, viewer->second_limit - viewer->seconds); /* fmin ignores NaN */
    return left < 0 ? 0 : left;
}

/* Adds what the program does besides training and rendering. */
static void add_activity(cJSON *object, const struct viewer *viewer)
{
    char text[VIEWER_MESSAGE];
    cJSON_AddBoolToObject(object, "busy", viewer_is_busy(viewer, text));
    answer_add_text(object, "activity", text);
    cJSON_AddNumberToObject(object, "activity_done", (double)viewer->activity.done);
    cJSON_AddNumberToObject(object, "activity_total", (double)viewer->activity.total);
}

static void add_result(cJSON *object, const struct viewer *viewer)
{
    answer_add_text(object, "end", viewer->result);
    answer_add_text(object, "command", viewer->command);
    add_number(object, "end_psnr", viewer->psnr);
    add_number(object, "end_ssim", viewer->ssim);
    cJSON_AddBoolToObject(object, "stays", viewer->stays);
}

static void add_state(cJSON *object, const struct viewer *viewer, size_t from)
{
    const struct curves *curves = &viewer->curves;
    const struct metric none = {NAN, NAN, NAN, NAN, {NAN, NAN, NAN}, NAN, NAN},
                        *last = curves->metric_count > 0
                                    ? &curves->metrics[curves->metric_count - 1]
                                    : &none;
    bool trains = state_trains(viewer);
    cJSON_AddStringToObject(object, "state", state_name(viewer->state));
    /* Without an open page the log is ahead of the last callback. */
    add_number(object, "step",
               trains ? fmax((double)viewer->step, last->step) : (double)viewer->step);
    add_number(object, "seconds", viewer->seconds > 0 ? viewer->seconds : last->seconds);
    add_number(object, "loss", last->loss);
    add_number(object, "psnr", last->psnr);
    add_number(object, "steps_per_second",
               viewer->state == STATE_TRAINING ? curves->steps_per_second : 0);
    add_number(object, "eta", trains ? seconds_left(viewer) : NAN);
    add_number(object, "learning_rate", last->learning_rate);
    add_number(object, "loss_scale", last->loss_scale);
    add_number(object, "share", viewer->used_share);
    add_number(object, "share_limit", viewer->time_share);
    cJSON_AddNumberToObject(object, "poses", (double)viewer->poses_version);
    answer_add_text(object, "message", viewer->message);
    add_activity(object, viewer);
    add_result(object, viewer);
    add_curves(object, curves, from);
    add_views(object, curves);
    cJSON *can = cJSON_AddObjectToObject(object, "can");
    cJSON_AddBoolToObject(can, "pause", trains && viewer->can_pause);
    cJSON_AddBoolToObject(can, "save", trains);
    cJSON_AddBoolToObject(can, "stop", trains);
    cJSON_AddBoolToObject(can, "share", trains);
    cJSON_AddBoolToObject(can, "end", viewer->state > STATE_ENDING);
}

struct answer state_answer(struct viewer *viewer, size_t from)
{
    cJSON *object = cJSON_CreateObject();
    add_state(object, viewer, from);
    return answer_json(200, object);
}
