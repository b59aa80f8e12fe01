/* parallel: collective communication of the ranks of a training. Adds values in the order of the
 * ranks, so that sums are bit-identical on every rank and with every transport. */
#ifndef PARALLEL_PARALLEL_H
#define PARALLEL_PARALLEL_H

#include <signal.h>

#include "base/base.h"

#define PARALLEL_MOST_RANKS 256u

/* A rank's communicator, for one thread at a time. */
struct parallel;

/* Return the number of this rank, from 0, and the number of ranks. */
uint32_t parallel_rank(const struct parallel *parallel);
uint32_t parallel_size(const struct parallel *parallel);

/* Collective calls: all ranks make the same calls in the same order, and each call sleeps until all
 * ranks have made it. Once a rank has left, all calls return VKN_NO_DEVICE. If a rank is missing
 * for 10 seconds, the lowest rank that waits warns of it, and again after 20, 40, ... */

/* Gathers `size` bytes of every rank into all[rank][size]. */
vkn_status parallel_gather(struct parallel *parallel, const void *mine, size_t size, void *all);
/* Broadcasts `size` bytes of rank 0 to all ranks. */
vkn_status parallel_broadcast(struct parallel *parallel, void *data, size_t size);
/* Reduces values[ranks][first .. end - 1] over the ranks, into the first `kept` of the arrays. */
typedef void parallel_combination(float *const values[], uint32_t ranks, uint32_t kept,
                                  size_t first, size_t end);
/* Reduce to the mean of values; to the means of the two f16 in each word, rounded to nearest; to
 * the maximum. */
parallel_combination parallel_mean_of, parallel_mean_f16_of, parallel_max_of;
/* All-reduces values[count]. Each rank combines a range of them, which begins at a multiple of 16
 * values. */
vkn_status parallel_combine(struct parallel *parallel, parallel_combination *combination,
                            float *values, size_t count);
/* Sets whether other ranks may be late for the next collective calls, as when rank 0 evaluates for
 * minutes. If they may not, a rank that is late when this process is asked to stop counts as lost:
 * a launcher that has lost a process asks all others to stop and kills them a second later. */
void parallel_expect_delays(struct parallel *parallel, bool expects_delays);
/* Sets the step number for messages. */
void parallel_set_step(struct parallel *parallel, uint64_t step);
/* Records that all ranks know of the training's end; parallel_is_over returns whether they do. */
void parallel_mark_over(struct parallel *parallel);
bool parallel_is_over(const struct parallel *parallel);
/* Leaves the group. Destroys a process's communicator; a thread's communicator is the group's. */
void parallel_leave(struct parallel *parallel);

/* Continues a hash (0 at first) with `data` and its size. Detects mistakes, but not forgeries. */
uint64_t parallel_hash(uint64_t hash, const void *data, size_t size);

/* ---- ranks that are threads of one process --------------------------------------------------- */

struct parallel_group;
/* Creates the communicators of `size` ranks. All ranks must leave before *group is destroyed. */
vkn_status parallel_group_create(uint32_t size, struct parallel_group **group);
void parallel_group_destroy(struct parallel_group **group);
/* Returns a rank's communicator, which belongs to the group. */
struct parallel *parallel_group_rank(struct parallel_group *group, uint32_t rank);

/* ---- ranks that are processes, on one or several machines ------------------------------------ */

/* Returns whether a launcher such as mpirun has started this process. */
bool parallel_launched(void);
/* Creates this process's communicator, which lasts until parallel_leave. *stop: non-zero when the
 * process is asked to stop; `stop` may be NULL. Returns VKN_BAD_INPUT, with advice, without MPI. */
vkn_status parallel_join(const volatile sig_atomic_t *stop, struct parallel **parallel);
/* Return a process's rank among the processes on its machine, and the number of these processes. */
uint32_t parallel_local_rank(const struct parallel *parallel);
uint32_t parallel_local_size(const struct parallel *parallel);

#endif
