/* trace.json: timelines in the trace-event format, for Perfetto or chrome://tracing. */
#ifndef REPORT_TRACE_H
#define REPORT_TRACE_H

#include "base/base.h"

enum trace_track { TRACE_HOST, TRACE_DEVICE_PERIODS, TRACE_DEVICE_PASSES, TRACE_TRACKS };

struct trace_event {
    const char *name; /* literal */
    enum trace_track track;
    double begin, end; /* seconds, all on one clock */
    uint64_t step;     /* that it belongs to or reaches */
    double idle;       /* of devices: seconds without work before a pass, or within a period */
};

struct trace {
    const char *device, *driver;
    const char *clocks; /* how the tracks were aligned, for people */
    double deviation;   /* seconds that the alignment may be off; negative: not known */
    double origin;      /* time 0 of the file */
    const struct trace_event *events;
    size_t count, lost; /* lost: events that were not kept */
};

vkn_status report_write_trace(const char *path, const struct trace *trace);

#endif
