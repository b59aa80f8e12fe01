/* Declares the profile of a training: sums over the timed passes, and the events of trace.json. */
#ifndef TRAIN_PROFILE_H
#define TRAIN_PROFILE_H

#include "step/step.h"
#include "report/report.h"

/* Sum over all timed runs of one pass. */
struct profile_pass {
    const char *name;
    double seconds;
    double steps; /* covered by the timed runs: one each, or all of an interval */
};

/* Profile of a training. */
struct profile {
    bool detailed; /* every step is timed, with idle times and events */
    struct profile_pass passes[STEP_MAX_PASSES];
    uint32_t pass_count;
    /* Sums over all steps, timed or not. */
    uint64_t steps;
    double rays, marched, live;
    /* All further members but `intervals` are filled only if `detailed`. */
    double idle;            /* seconds between passes, over all steps */
    double interval_idle;   /* seconds between intervals that were queued back to back */
    uint64_t interval_gaps; /* number of pairs of such intervals */
    double last_end;        /* end of the previous interval, by the device's clock */
    uint64_t intervals;     /* finished update intervals */
    struct trace_event *events;
    size_t event_count, event_capacity, events_lost;
    bool clocks_read;    /* clocks are calibrated: device events are in the host's time */
    double fence_offset; /* else: upper bound of host time minus device time, seconds */
    double deviation;    /* largest deviation of the calibration, seconds */
    double aligned_end;  /* end of the last interval in the host's time */
};

/* One finished update interval. */
struct profile_interval {
    const struct step_timing *timings;
    uint32_t count;
    uint64_t from, to;               /* steps finished before and after the interval */
    bool queued;                     /* submitted while another interval was in flight */
    double wait_end;                 /* base_seconds() when the wait for the interval ended */
    const struct gpu_clocks *clocks; /* read at `wait_end`; NULL: not supported by the driver */
};
/* Adds the interval's pass times and, if detailed, its events. */
void profile_add_interval(struct profile *profile, const struct profile_interval *interval);

/* Adds a host event from `began` (base_seconds()) until now. Does nothing unless detailed. */
void profile_add_host(struct profile *profile, const char *name, double began, uint64_t step);
/* Writes the trace of all events since `origin` (base_seconds()) to `path`. */
vkn_status profile_write_trace(struct profile *profile, const char *path, double origin,
                               const char *device, const char *driver);
void profile_free(struct profile *profile);

#endif
