/* Declares the communicator's transports, and the detection of missing ranks. */
#ifndef PARALLEL_INTERNAL_H
#define PARALLEL_INTERNAL_H

#include "parallel/parallel.h"

parallel_combination parallel_max_of;

/* Collective operations of ranks that are threads or processes. */
struct parallel_transport {
    vkn_status (*gather)(struct parallel *parallel, const void *mine, size_t size, void *all);
    vkn_status (*broadcast)(struct parallel *parallel, void *data, size_t size);
    vkn_status (*combine)(struct parallel *parallel, parallel_combination *combination,
                          float *values, size_t count);
    void (*leave)(struct parallel *parallel);
};

struct parallel {
    const struct parallel_transport *transport;
    void *group; /* the transport's data */
    uint32_t rank, size;
    bool expects_delays; /* see parallel_expect_delays */
    bool begun;          /* delays were not expected once: the slow start is over */
    bool over;           /* see parallel_mark_over */
    uint64_t step;       /* see parallel_set_step */
};

/* Wait of a rank in a collective call; all zero at its beginning. */
struct parallel_wait {
    double seconds;      /* waited, without times in which the process was suspended */
    double last_poll;    /* base_seconds() of the last poll */
    double last_warning; /* `seconds` at the last warning; 0: none yet */
};
/* Adds the time since the last call. */
void parallel_count_wait(struct parallel_wait *wait);
/* Returns whether the ranks that are not `present` ([size]) may be late: all ranks before the first
 * step; later only rank 0, whose host work the other ranks wait for. */
bool parallel_may_be_late(const struct parallel *parallel, const bool *present);
/* Warns of the ranks that are not `present` ([size]), if this is the lowest rank that waits, and at
 * the times that parallel.h says. */
void parallel_warn_missing(const struct parallel *parallel, const bool *present,
                           struct parallel_wait *wait);
#define PARALLEL_NAMES 160u
/* Names the ranks that are not `present`: "rank 3" or "ranks 1, 3 and 5 more"; empty: none. */
void parallel_name_missing(const struct parallel *parallel, const bool *present,
                           char names[PARALLEL_NAMES]);

/* Returns the index at which the rank's shard of `count` values begins; for rank `size`, `count`.
 * A rank reduces its shard for all ranks. */
size_t parallel_shard_begin(size_t count, uint32_t rank, uint32_t size);

#endif
