/* Where a training's time goes: sums over the timed passes, and the events of trace.json. */
#ifndef TRAIN_PROFILE_H
#define TRAIN_PROFILE_H

#include "step/step.h"
#include "report/report.h"

/* The sum over runs of one pass. */
struct profile_pass {
    const char *name;
    double seconds;
    double steps; /* that those runs stand for: one each, or a whole period's */
};

struct profile {
    bool detailed; /* every step is timed, with gaps and events */
    struct profile_pass passes[STEP_MAX_PASSES];
    uint32_t pass_count;
    /* Of the steps seen, whether timed or not. */
    uint64_t steps;
    double rays, marched, live;
    /* Only when detailed. */
    double idle;            /* seconds between passes, in all steps together */
    double interval_idle;   /* seconds between periods of which the next was there in time, */
    uint64_t interval_gaps; /* and how many those were */
    double last_end;        /* of the period before, on the device's clock */
    uint64_t intervals;     /* waited for */
    struct trace_event *events;
    size_t event_count, event_capacity, events_lost;
    bool clocks_read;    /* the device's events are in the host's time; else in the device's own, */
    double fence_offset; /* which the host's is ahead of by this, or less */
    double deviation;    /* largest of the clocks' readings */
    double aligned_end;  /* of the last period, in the host's time */
};

/* One period, after it was waited for. */
struct profile_interval {
    const struct step_timing *timings;
    uint32_t count;
    uint64_t from, to;               /* steps finished before and after it */
    bool queued;                     /* submitted while the one before was still in flight */
    double waited;                   /* base_seconds() when the wait for it ended */
    const struct gpu_clocks *clocks; /* read then; NULL: the driver cannot */
};
void profile_add_interval(struct profile *profile, const struct profile_interval *period);

/* An event of the host from `began` (base_seconds()) until now. Does nothing unless detailed. */
void profile_add_host(struct profile *profile, const char *name, double began, uint64_t step);
/* Writes `path` as a trace of all events since `origin` (base_seconds()). */
vkn_status profile_write_trace(struct profile *profile, const char *path, double origin,
                               const char *device, const char *driver);
void profile_free(struct profile *profile);

#endif
