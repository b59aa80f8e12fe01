/* parallel: ranks that do one job together, and what passes between them. Numbers are added up in
 * the order of the ranks, so that sums have the same bits whatever carries them, and on every rank.
 */
#ifndef PARALLEL_PARALLEL_H
#define PARALLEL_PARALLEL_H

#include "base/base.h"

#define PARALLEL_MOST_RANKS 64u /* of one process */

/* One rank's end of a group, for one thread at a time. */
struct parallel;

uint32_t parallel_rank(const struct parallel *parallel); /* from 0 */
uint32_t parallel_size(const struct parallel *parallel); /* of the group */

/* Every rank calls the same of these in the same order; each waits, asleep, for the others. When
 * one of them has left, VKN_NO_DEVICE, at once and from then on. */

/* `size` bytes of every rank, in their order. */
vkn_status parallel_gather(struct parallel *parallel, const void *mine, size_t size, void *all);
/* `size` bytes of rank 0, which take the place of the others'. */
vkn_status parallel_broadcast(struct parallel *parallel, void *data, size_t size);
/* `count` numbers become their means over the ranks. */
vkn_status parallel_mean(struct parallel *parallel, float *values, size_t count);
/* This rank takes no part any more; the end stays the group's. */
void parallel_leave(struct parallel *parallel);

/* The same of arrays in one place: values[i] from `first` up to and without `end`. */
void parallel_mean_of(float *const values[], uint32_t ranks, size_t first, size_t end);

/* ---- ranks of one process, each on a thread of its own ------------------------------------------
 */

struct parallel_group;
/* The caller destroys *group when all ranks have left. */
vkn_status parallel_group_create(uint32_t size, struct parallel_group **group);
void parallel_group_destroy(struct parallel_group **group);
/* Belongs to the group. */
struct parallel *parallel_group_rank(struct parallel_group *group, uint32_t rank);

#endif
