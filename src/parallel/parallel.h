/* parallel: ranks that do one job together, and what passes between them. Numbers are added up in
 * the order of the ranks, so that sums have the same bits whatever carries them, and on every rank.
 */
#ifndef PARALLEL_PARALLEL_H
#define PARALLEL_PARALLEL_H

#include <signal.h>

#include "base/base.h"

#define PARALLEL_MOST_RANKS 256u

/* One rank's end of a group, for one thread at a time. */
struct parallel;

uint32_t parallel_rank(const struct parallel *parallel); /* from 0 */
uint32_t parallel_size(const struct parallel *parallel); /* of the group */

/* Every rank calls the same of these in the same order; each waits, asleep, for the others. When
 * one of them has left, VKN_NO_DEVICE, at once and from then on. A rank that has not come after 10
 * seconds is named in a warning by the lowest rank that waits, and again after 20, 40, ... */

/* `size` bytes of every rank, in their order. */
vkn_status parallel_gather(struct parallel *parallel, const void *mine, size_t size, void *all);
/* `size` bytes of rank 0, which take the place of the others'. */
vkn_status parallel_broadcast(struct parallel *parallel, void *data, size_t size);
/* `count` numbers become their means, or largest, over the ranks. */
vkn_status parallel_mean(struct parallel *parallel, float *values, size_t count);
/* The same of `count` words of two f16 each, each mean rounded to nearest. */
vkn_status parallel_mean_f16(struct parallel *parallel, float *words, size_t count);
vkn_status parallel_max(struct parallel *parallel, float *values, size_t count);
/* Whether others may take their time for the exchanges to come: rank 0 evaluates a field for
 * minutes. Where they may not, and this process is told to stop, one that does not come soon counts
 * as lost: launchers that have lost a process tell all others to stop, and end them a second later.
 */
void parallel_expect_delays(struct parallel *parallel, bool expects_delays);
/* The step that the exchanges to come are of, for messages. */
void parallel_set_step(struct parallel *parallel, uint64_t step);
/* A rank has told all others that it leaves: none of them has to be told again. */
void parallel_mark_over(struct parallel *parallel);
bool parallel_is_over(const struct parallel *parallel);
/* This rank takes no part any more; its end is gone, or a group's. */
void parallel_leave(struct parallel *parallel);

/* The mean of arrays in one place, from `first` up to and without `end`: takes the place of the
 * numbers in the first `kept` arrays. */
typedef void parallel_combination(float *const values[], uint32_t ranks, uint32_t kept,
                                  size_t first, size_t end);
parallel_combination parallel_mean_of, parallel_mean_f16_of;

/* Hash of what `hash` is that of (0: nothing yet), followed by `data` as a piece of its own: what
 * ranks compare. It finds mistakes, not forgeries. */
uint64_t parallel_hash(uint64_t hash, const void *data, size_t size);

/* ---- ranks of one process, each on a thread of its own ------------------------------------------
 */

struct parallel_group;
/* The caller destroys *group when all ranks have left. */
vkn_status parallel_group_create(uint32_t size, struct parallel_group **group);
void parallel_group_destroy(struct parallel_group **group);
/* Belongs to the group. */
struct parallel *parallel_group_rank(struct parallel_group *group, uint32_t rank);

/* ---- ranks that are processes, here and on other machines ---------------------------------------
 */

/* Whether mpirun or the like has begun this process. */
bool parallel_launched(void);
/* This process's end, until parallel_leave; *stop tells it to stop, and may be NULL. VKN_BAD_INPUT
 * where there is no MPI, with how to get it. */
vkn_status parallel_join(const volatile sig_atomic_t *stop, struct parallel **parallel);
/* Of an end that parallel_join gave: its number among those of this machine, and how many these
 * are. */
uint32_t parallel_local_rank(const struct parallel *parallel);
uint32_t parallel_local_size(const struct parallel *parallel);

#endif
