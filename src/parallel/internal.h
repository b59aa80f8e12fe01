/* What the files of the room share: how ranks reach each other. */
#ifndef PARALLEL_INTERNAL_H
#define PARALLEL_INTERNAL_H

#include "parallel/parallel.h"

parallel_combination parallel_max_of;

struct parallel_transport {
    vkn_status (*gather)(struct parallel *parallel, const void *mine, size_t size, void *all);
    vkn_status (*broadcast)(struct parallel *parallel, void *data, size_t size);
    vkn_status (*combine)(struct parallel *parallel, parallel_combination *combination,
                          float *values, size_t count);
    void (*leave)(struct parallel *parallel);
};

struct parallel {
    const struct parallel_transport *transport;
    void *group; /* the transport's own */
    uint32_t rank, size;
    bool expects_delays; /* see parallel_expect_delays */
    bool begun;          /* has not been patient once: what takes long at the start is over */
    bool over;           /* see parallel_mark_over */
    uint64_t step;       /* see parallel_set_step */
};

/* How long a rank has waited in an exchange; all zero: it begins to. */
struct parallel_wait {
    double seconds; /* a process that was stopped meanwhile has not waited */
    double looked;  /* base_seconds() */
    double told;    /* seconds when the absent ones were last named; 0: never */
};
/* Counts the time since the last call. */
void parallel_count_wait(struct parallel_wait *wait);
/* Whether the ranks that are not `here` may be late: all ranks before the first step, later rank 0
 * alone, in exchanges that wait for its host work. */
bool parallel_may_be_late(const struct parallel *parallel, const bool *here);
/* Warns of the ranks that are not `here`, at the times of parallel.h; the lowest rank that waits
 * does so. */
void parallel_warn_missing(const struct parallel *parallel, const bool *here,
                           struct parallel_wait *wait);
#define PARALLEL_NAMES 160u
/* The ranks that have not come, "rank 3" or "ranks 1, 3 and 5 more"; empty: all have. */
void parallel_name_missing(const struct parallel *parallel, const bool *here,
                           char names[PARALLEL_NAMES]);

/* Where the part of `count` values begins that a rank adds up; behind the last rank: where it ends.
 */
size_t parallel_shard_begin(size_t count, uint32_t rank, uint32_t size);

#endif
