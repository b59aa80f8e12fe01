/* Answers /api/state: the run's state and its curves. */
#include "viewer/internal.h"

#include <math.h>

#include <cjson/cJSON.h>

#define MOST_METRICS 20000u /* log lines in one answer; the page asks again for the rest */

const char *state_name(enum viewer_state state)
{
    static const char *const names[] = {"training", "paused",  "saving",
                                        "finished", "stopped", "viewing"};
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

static void add_state(cJSON *object, const struct viewer *viewer, size_t from)
{
    const struct curves *curves = &viewer->curves;
    const struct metric none = {NAN, NAN, NAN, NAN, {NAN, NAN, NAN}},
                        *last = curves->metric_count > 0
                                    ? &curves->metrics[curves->metric_count - 1]
                                    : &none;
    bool trains = viewer->state <= STATE_SAVING && viewer->facts;
    cJSON_AddStringToObject(object, "state", state_name(viewer->state));
    cJSON_AddNumberToObject(object, "step", (double)viewer->step);
    add_number(object, "seconds", viewer->seconds > 0 ? viewer->seconds : last->seconds);
    add_number(object, "loss", last->loss);
    add_number(object, "psnr", last->psnr);
    add_number(object, "steps_per_second",
               viewer->state == STATE_TRAINING ? curves->steps_per_second : 0);
    add_number(object, "share", viewer->used_share);
    cJSON_AddNumberToObject(object, "poses", (double)viewer->poses_version);
    answer_add_text(object, "message", viewer->message);
    answer_add_text(object, "end", viewer->result);
    add_curves(object, curves, from);
    cJSON *can = cJSON_AddObjectToObject(object, "can");
    cJSON_AddBoolToObject(can, "pause", trains && viewer->can_pause);
    cJSON_AddBoolToObject(can, "save", trains);
    cJSON_AddBoolToObject(can, "stop", trains);
}

struct answer state_answer(struct viewer *viewer, size_t from)
{
    cJSON *object = cJSON_CreateObject();
    add_state(object, viewer, from);
    return answer_json(200, object);
}
