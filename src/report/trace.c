/* trace.json in the "Trace Event Format" (Google, 2016), JSON object form: complete events ("X"),
 * counters ("C") and names of processes and threads ("M"). Times are microseconds. */
#include "report/report.h"

#include <stdlib.h>

#include <cjson/cJSON.h>

static const struct track {
    int process, thread;
    const char *category, *name;
} tracks[TRACE_TRACKS] = {
    [TRACE_HOST] = {1, 1, "host", "training"},
    [TRACE_DEVICE_PERIODS] = {2, 1, "period", "periods"},
    [TRACE_DEVICE_PASSES] = {2, 2, "pass", "passes"},
};

/* Names of what `id` stands for: "process_name" or "thread_name". */
static void add_name(struct base_text *text, const char *kind, int process, int thread,
                     const char *name)
{
    base_text_add(text,
                  "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":0,"
                  "\"args\":{\"name\":\"%s\"}},\n",
                  kind, process, thread, name);
}

static void add_event(struct base_text *text, const struct trace_event *event, double origin)
{
    const struct track *track = &tracks[event->track];
    base_text_add(text,
                  "{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
                  "\"dur\":%.3f,\"args\":{\"step\":%llu",
                  event->name, track->category, track->process, track->thread,
                  1e6 * (event->begin - origin), 1e6 * (event->end - event->begin),
                  (unsigned long long)event->step);
    if (event->track == TRACE_DEVICE_PASSES)
        base_text_add(text, ",\"idle_before_us\":%.3f", 1e6 * event->idle);
    if (event->track == TRACE_DEVICE_PERIODS)
        base_text_add(text, ",\"idle_us\":%.3f", 1e6 * event->idle);
    base_text_add(text, "}},\n");
}

/* The device's idle share as a curve: a step at the begin of each period. */
static void add_counter(struct base_text *text, const struct trace_event *event, double origin)
{
    double length = event->end - event->begin;
    base_text_add(text,
                  "{\"ph\":\"C\",\"name\":\"idle %%\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,"
                  "\"args\":{\"idle\":%.3f}},\n",
                  tracks[event->track].process, tracks[event->track].thread,
                  1e6 * (event->begin - origin), length > 0.0 ? 100.0 * event->idle / length : 0.0);
}

/* What holds for the whole file; ends it. */
static void add_about(struct base_text *text, const struct trace *trace)
{
    cJSON *about = cJSON_CreateObject();
    cJSON_AddStringToObject(about, "version", VKNERF_VERSION);
    cJSON_AddStringToObject(about, "device", trace->device);
    cJSON_AddStringToObject(about, "driver", trace->driver);
    cJSON_AddStringToObject(about, "clock_alignment", trace->clocks);
    if (trace->deviation >= 0.0)
        cJSON_AddNumberToObject(about, "clock_deviation_us", 1e6 * trace->deviation);
    cJSON_AddNumberToObject(about, "lost_events", (double)trace->lost);
    char *json = base_json_print_unformatted(about);
    cJSON_Delete(about);
    if (json)
        base_text_add(text, "],\n\"displayTimeUnit\":\"ms\",\"otherData\":%s}\n", json);
    else
        text->failed = true;
    free(json);
}

vkn_status report_write_trace(const char *path, const struct trace *trace)
{
    struct base_text text = {0};
    base_text_add(&text, "{\"traceEvents\":[\n");
    for (size_t i = 0; i < trace->count; i++) {
        add_event(&text, &trace->events[i], trace->origin);
        if (trace->events[i].track == TRACE_DEVICE_PERIODS)
            add_counter(&text, &trace->events[i], trace->origin);
    }
    for (size_t i = 0; i < BASE_COUNT(tracks); i++)
        add_name(&text, "thread_name", tracks[i].process, tracks[i].thread, tracks[i].name);
    add_name(&text, "process_name", tracks[TRACE_HOST].process, 0, "host");
    add_name(&text, "process_name", tracks[TRACE_DEVICE_PASSES].process, 0, "device");
    if (!text.failed)
        text.size -= 2; /* the last comma */
    add_about(&text, trace);
    vkn_status status = text.failed ? base_fail(VKN_ERROR, "%s: out of memory", path)
                                    : base_file_replace(path, text.data, text.size);
    free(text.data);
    return status;
}
