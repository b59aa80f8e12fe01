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
    bool patient; /* see parallel_be_patient */
    bool over;    /* see parallel_end */
};

/* Where the part of `count` values begins that a rank adds up; behind the last rank: where it ends.
 */
size_t parallel_part(size_t count, uint32_t rank, uint32_t size);

#endif
