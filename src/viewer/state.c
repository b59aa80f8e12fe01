/* What /api/state says. */
#include "viewer/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#define MOST_METRICS 20000u /* in one answer; who wants the rest asks again */

const char *state_name(enum viewer_state state)
{
    static const char *const names[] = {"training", "paused",  "saving",
                                        "finished", "stopped", "viewing"};
    return names[state];
}

/* JSON has no infinities. */
static void put_number(FILE *stream, double number)
{
    if (isfinite(number))
        fprintf(stream, "%.9g", number);
    else
        fputs("null", stream);
}

static void put_member(FILE *stream, const char *name, double number)
{
    fprintf(stream, ",\"%s\":", name);
    put_number(stream, number);
}

static void put_row(FILE *stream, const double *row, size_t count, bool first)
{
    fputs(first ? "[" : ",[", stream);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fputc(',', stream);
        put_number(stream, row[i]);
    }
    fputc(']', stream);
}

static void put_curves(FILE *stream, const struct curves *curves, size_t from)
{
    if (from > curves->metric_count) /* another run has taken the folder */
        from = 0;
    size_t end = from;
    fputs(",\"metrics\":[", stream);
    for (; end < curves->metric_count && end - from < MOST_METRICS; end++) {
        const struct metric *metric = &curves->metrics[end];
        put_row(stream, (const double[]){metric->step, metric->seconds, metric->loss, metric->psnr},
                4, end == from);
    }
    fprintf(stream, "],\"next\":%zu,\"evaluations\":[", end);
    for (size_t i = 0; i < curves->evaluation_count; i++) {
        const struct evaluation *evaluation = &curves->evaluations[i];
        put_row(stream, (const double[]){evaluation->step, evaluation->psnr, evaluation->ssim}, 3,
                i == 0);
    }
    fputc(']', stream);
}

static void put_text(FILE *stream, const char *name, const char *message)
{
    char *clean = vkn_to_utf8(message);
    cJSON *json = cJSON_CreateString(clean ? clean : "");
    char *printed = cJSON_PrintUnformatted(json);
    fprintf(stream, ",\"%s\":%s", name, printed ? printed : "\"\"");
    cJSON_free(printed);
    cJSON_Delete(json);
    vkn_free(clean);
}

static void put_state(FILE *stream, const struct viewer *viewer, size_t from)
{
    const struct curves *curves = &viewer->curves;
    const struct metric none = {NAN, NAN, NAN, NAN},
                        *last = curves->metric_count > 0
                                    ? &curves->metrics[curves->metric_count - 1]
                                    : &none;
    bool trains = viewer->state <= STATE_SAVING && viewer->facts;
    fprintf(stream, "{\"state\":\"%s\"", state_name(viewer->state));
    put_member(stream, "step", (double)viewer->step);
    put_member(stream, "seconds", viewer->seconds > 0 ? viewer->seconds : last->seconds);
    put_member(stream, "loss", last->loss);
    put_member(stream, "psnr", last->psnr);
    put_member(stream, "steps_per_second", viewer->state == STATE_TRAINING ? curves->rate : 0);
    put_member(stream, "share", viewer->share);
    put_text(stream, "message", viewer->message);
    put_text(stream, "end", viewer->end);
    put_curves(stream, curves, from);
    fprintf(stream, ",\"can\":{\"pause\":%s,\"save\":%s,\"stop\":%s}}",
            trains && viewer->can_pause ? "true" : "false", trains ? "true" : "false",
            trains ? "true" : "false");
}

struct answer state_answer(struct viewer *viewer, size_t from)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return (struct answer){.code = 500};
    put_state(stream, viewer, from);
    if (fclose(stream) == 0)
        return answer_text(200, "application/json", text);
    free(text);
    return (struct answer){.code = 500};
}
