/* The ranks of a training: threads of this process with a device each, of which rank 0 is the
 * caller's, or processes that mpirun has begun, of which this one is one. */
#ifndef RUN_RANKS_H
#define RUN_RANKS_H

#include <vknerf/run.h>

struct parallel;
struct run_ranks;

/* One rank for each of params->devices, or this process as one of several; *ranks stays NULL where
 * a training is alone. VKN_BAD_INPUT for a list that is none, or beside params->job.context.device,
 * or where there are several processes and no MPI; also, on all ranks and with *ranks set, where
 * processes differ in version or in what they are asked to train. The caller closes *ranks. All
 * others may be asked of NULL: alone. */
vkn_status run_ranks_open(const struct vkn_train_params *params, struct run_ranks **ranks);
void run_ranks_close(struct run_ranks **ranks);
/* Whether another process than this one has failed with the last error, and tells it. */
bool run_ranks_told(const struct run_ranks *ranks, vkn_status status);
/* This rank's end; NULL: alone. */
struct parallel *run_ranks_end(const struct run_ranks *ranks);
uint32_t run_ranks_number(const struct run_ranks *ranks);
/* This rank's device, opened. */
vkn_status run_ranks_context(const struct run_ranks *ranks, const struct vkn_train_params *params,
                             vkn_context **context);

/* Of rank 0: the others train on that scene as its trainer does, from its state on. */
vkn_status run_ranks_start(struct run_ranks *ranks, vkn_scene *scene, vkn_trainer *trainer);
/* Ends their training: with a failure of rank 0 they stop as well. */
void run_ranks_tell(struct run_ranks *ranks, vkn_status status);
/* Ends them, once what must not be lost is saved: launchers end all processes where one has failed.
 * Only then may the scene be closed. */
void run_ranks_leave(struct run_ranks *ranks, vkn_status status);
/* Their devices in order, once they have started; `index` below run_ranks_count. */
size_t run_ranks_count(const struct run_ranks *ranks);
const char *run_ranks_device(const struct run_ranks *ranks, size_t index);

/* Of a process with another number: trains with rank 0 until that ends. VKN_OK as well where all
 * are told to stop, which rank 0 tells. */
vkn_status run_ranks_follow(struct run_ranks *ranks);

#endif
