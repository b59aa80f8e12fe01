/* Declares the communicator's transports, and the detection of missing ranks. */
#ifndef PARALLEL_INTERNAL_H
#define PARALLEL_INTERNAL_H

#include "parallel/parallel.h"

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
    bool has_begun;      /* the slow start is over: delays were not expected at some time */
    bool is_over;        /* see parallel_mark_over */
    uint64_t step;       /* see parallel_set_step */
};

/* The wait of a rank in a collective call. All fields are 0 when the call begins. */
struct parallel_wait {
    double seconds;      /* waited so far, without the time in which the process was suspended */
    double last_poll;    /* base_seconds() of the last poll */
    double last_warning; /* `seconds` at the last warning; 0: none yet */
};
/* Adds the time since the last call to wait->seconds. */
void parallel_count_wait(struct parallel_wait *wait);
/* Returns whether the ranks that are not `present` ([size]) may be late. Before the first step all
 * ranks may be late; later only rank 0, whose host work the other ranks wait for. */
bool parallel_may_be_late(const struct parallel *parallel, const bool *present);
/* Warns of the ranks that are not `present` ([size]) if a warning is due (see "Collective calls" in
 * parallel.h) and this is the lowest rank that waits. */
void parallel_warn_missing(const struct parallel *parallel, const bool *present,
                           struct parallel_wait *wait);
#define PARALLEL_NAMES 160u /* bytes of the names below */
/* Names the ranks that are not `present`: "rank 3" or "ranks 1, 3 and 5 more"; empty: none. */
void parallel_name_missing(const struct parallel *parallel, const bool *present,
                           char names[PARALLEL_NAMES]);

/* Returns the index at which the rank's shard of `count` values begins; for rank `size`, `count`.
 * A rank reduces its shard for all ranks. */
size_t parallel_shard_begin(size_t count, uint32_t rank, uint32_t size);

#endif
