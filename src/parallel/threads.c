/* Implements the transport between threads of one process, by pointers and a barrier. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "parallel/internal.h"

struct parallel_group {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t size, arrived;            /* numbers of ranks; of ranks that wait at the barrier */
    uint64_t barriers;                 /* completed barriers */
    bool has_left;                     /* a rank has left the group */
    bool present[PARALLEL_MOST_RANKS]; /* whether the rank waits at the barrier */
    struct parallel ranks[PARALLEL_MOST_RANKS];
    /* Each rank's data of the current call, valid from one barrier to the next. */
    const void *bytes[PARALLEL_MOST_RANKS];
    float *values[PARALLEL_MOST_RANKS];
};

/* Waits for a change, half a second at most. The caller holds the lock. */
static void wait_a_while(struct parallel_group *group)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 500000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&group->changed, &group->lock, &until);
}

/* Waits until all ranks have called (a barrier). Returns VKN_NO_DEVICE when a rank has left. */
static vkn_status wait_for_all(struct parallel *parallel)
{
    struct parallel_group *group = parallel->group;
    struct parallel_wait wait = {0};
    pthread_mutex_lock(&group->lock);
    uint64_t barrier = group->barriers;
    group->present[parallel->rank] = true;
    if (++group->arrived == group->size) {
        group->arrived = 0;
        memset(group->present, 0, sizeof group->present);
        group->barriers++;
        pthread_cond_broadcast(&group->changed);
    }
    while (group->barriers == barrier && !group->has_left) {
        parallel_count_wait(&wait);
        parallel_warn_missing(parallel, group->present, &wait);
        wait_a_while(group);
    }
    bool met = group->barriers != barrier;
    pthread_mutex_unlock(&group->lock);
    return met ? VKN_OK : base_fail(VKN_NO_DEVICE, "another rank has ended");
}

static vkn_status gather(struct parallel *parallel, const void *mine, size_t size, void *all)
{
    struct parallel_group *group = parallel->group;
    group->bytes[parallel->rank] = mine;
    BASE_TRY(wait_for_all(parallel));
    for (uint32_t rank = 0; rank < group->size; rank++)
        memcpy((char *)all + rank * size, group->bytes[rank], size);
    return wait_for_all(parallel); /* `mine` must stay valid until all have read it */
}

static vkn_status broadcast(struct parallel *parallel, void *data, size_t size)
{
    struct parallel_group *group = parallel->group;
    group->bytes[parallel->rank] = data;
    BASE_TRY(wait_for_all(parallel));
    if (parallel->rank > 0)
        memcpy(data, group->bytes[0], size);
    return wait_for_all(parallel);
}

static vkn_status combine(struct parallel *parallel, parallel_combination *combination,
                          float *values, size_t count)
{
    struct parallel_group *group = parallel->group;
    group->values[parallel->rank] = values;
    BASE_TRY(wait_for_all(parallel));
    combination(group->values, group->size, group->size,
                parallel_shard_begin(count, parallel->rank, group->size),
                parallel_shard_begin(count, parallel->rank + 1, group->size));
    return wait_for_all(parallel);
}

static void leave(struct parallel *parallel)
{
    struct parallel_group *group = parallel->group;
    pthread_mutex_lock(&group->lock);
    group->has_left = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
}

static const struct parallel_transport threads = {gather, broadcast, combine, leave};

vkn_status parallel_group_create(uint32_t size, struct parallel_group **created)
{
    *created = NULL;
    if (size == 0 || size > PARALLEL_MOST_RANKS)
        return base_fail(VKN_BAD_INPUT, "%u devices: at most %u can train together", size,
                         PARALLEL_MOST_RANKS);
    struct parallel_group *group = base_alloc(1, sizeof *group);
    if (!group)
        return VKN_ERROR;
    group->size = size;
    for (uint32_t rank = 0; rank < size; rank++)
        group->ranks[rank] = (struct parallel){.transport = &threads,
                                               .group = group,
                                               .rank = rank,
                                               .size = size,
                                               .expects_delays = true};
    pthread_condattr_t monotonic;
    pthread_mutex_init(&group->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&group->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *created = group;
    return VKN_OK;
}

void parallel_group_destroy(struct parallel_group **group)
{
    if (!*group)
        return;
    pthread_cond_destroy(&(*group)->changed);
    pthread_mutex_destroy(&(*group)->lock);
    free(*group);
    *group = NULL;
}

struct parallel *parallel_group_rank(struct parallel_group *group, uint32_t rank)
{
    return &group->ranks[rank];
}
