/* Writes trace.json in the "Trace Event Format" (Google, 2016), JSON object form: complete events
 * ("X"), counters ("C") and names of processes and threads ("M"). Times are in microseconds. */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

static const struct track {
    int process, thread;
    const char *category, *name;
} tracks[TRACE_TRACKS] = {
    [TRACE_HOST] = {1, 1, "host", "training"},
    [TRACE_DEVICE_INTERVALS] = {2, 1, "period", "update intervals"},
    [TRACE_DEVICE_PASSES] = {2, 2, "pass", "passes"},
};

/* Returns microseconds, rounded to nanoseconds to keep the file short. */
static double micros(double seconds)
{
    return round(1e9 * seconds) / 1e3;
}

static void add_json(struct base_text *text, cJSON *json, const char *suffix)
{
    char *printed = base_json_print_unformatted(json);
    cJSON_Delete(json);
    if (printed)
        base_text_add(text, "%s%s\n", printed, suffix);
    else
        text->failed = true;
    free(printed);
}

/* Begins an event; *args: its "args" object. */
static cJSON *begin_event(const char *phase, const char *name, int process, int thread,
                          double seconds, cJSON **args)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "ph", phase);
    cJSON_AddStringToObject(json, "name", name);
    cJSON_AddNumberToObject(json, "pid", process);
    cJSON_AddNumberToObject(json, "tid", thread);
    cJSON_AddNumberToObject(json, "ts", micros(seconds));
    *args = cJSON_AddObjectToObject(json, "args");
    return json;
}

/* Names a process or a thread: `kind` is "process_name" or "thread_name". */
static void add_name(struct base_text *text, const char *kind, int process, int thread,
                     const char *name, const char *suffix)
{
    cJSON *args, *json = begin_event("M", kind, process, thread, 0, &args);
    cJSON_AddStringToObject(args, "name", name);
    add_json(text, json, suffix);
}

static void add_event(struct base_text *text, const struct trace_event *event, double origin)
{
    const struct track *track = &tracks[event->track];
    cJSON *args, *json = begin_event("X", event->name, track->process, track->thread,
                                     event->begin - origin, &args);
    cJSON_AddStringToObject(json, "cat", track->category);
    cJSON_AddNumberToObject(json, "dur", micros(event->end - event->begin));
    cJSON_AddNumberToObject(args, "step", (double)event->step);
    if (event->track == TRACE_DEVICE_PASSES)
        cJSON_AddNumberToObject(args, "idle_before_us", micros(event->idle));
    if (event->track == TRACE_DEVICE_INTERVALS)
        cJSON_AddNumberToObject(args, "idle_us", micros(event->idle));
    add_json(text, json, ",");
}

/* Adds the device's idle share as a counter that changes at the start of each update interval. */
static void add_counter(struct base_text *text, const struct trace_event *event, double origin)
{
    const struct track *track = &tracks[event->track];
    double length = event->end - event->begin;
    cJSON *args, *json = begin_event("C", "idle %", track->process, track->thread,
                                     event->begin - origin, &args);
    cJSON_AddNumberToObject(args, "idle",
                            length > 0.0 ? round(1e5 * event->idle / length) / 1e3 : 0.0);
    add_json(text, json, ",");
}

static void add_metadata(struct base_text *text, const struct trace *trace)
{
    cJSON *metadata = cJSON_CreateObject();
    cJSON_AddStringToObject(metadata, "version", VKNERF_VERSION);
    cJSON_AddStringToObject(metadata, "device", trace->device);
    cJSON_AddStringToObject(metadata, "driver", trace->driver);
    cJSON_AddStringToObject(metadata, "clock_alignment", trace->clocks);
    if (trace->deviation >= 0.0)
        cJSON_AddNumberToObject(metadata, "clock_deviation_us", 1e6 * trace->deviation);
    cJSON_AddNumberToObject(metadata, "lost_events", (double)trace->lost);
    base_text_add(text, "],\n\"displayTimeUnit\":\"ms\",\"otherData\":");
    add_json(text, metadata, "}");
}

vkn_status report_write_trace(const char *path, const struct trace *trace)
{
    struct base_text text = {0};
    base_text_add(&text, "{\"traceEvents\":[\n");
    for (size_t i = 0; i < trace->count; i++) {
        add_event(&text, &trace->events[i], trace->origin);
        if (trace->events[i].track == TRACE_DEVICE_INTERVALS)
            add_counter(&text, &trace->events[i], trace->origin);
    }
    for (size_t i = 0; i < BASE_COUNT(tracks); i++)
        add_name(&text, "thread_name", tracks[i].process, tracks[i].thread, tracks[i].name, ",");
    add_name(&text, "process_name", tracks[TRACE_HOST].process, 0, "host", ",");
    add_name(&text, "process_name", tracks[TRACE_DEVICE_PASSES].process, 0, "device", "");
    add_metadata(&text, trace);
    vkn_status status = text.failed ? base_fail(VKN_ERROR, "%s: out of memory", path)
                                    : base_file_replace(path, text.data, text.size);
    free(text.data);
    return status;
}
