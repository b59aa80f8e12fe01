/* The ranks of a training on several devices of one machine: rank 0 is the caller's, the others
 * have a thread and a device each. */
#ifndef RUN_RANKS_H
#define RUN_RANKS_H

#include <vknerf/run.h>

struct parallel;
struct run_ranks;

/* One rank for each of `devices` ("0,1"), none of which is opened yet; *ranks stays NULL without
 * any. VKN_BAD_INPUT for a list that is none, or together with params->job.context.device. The
 * caller closes *ranks. */
vkn_status run_ranks_open(const struct vkn_train_params *params, struct run_ranks **ranks);
/* Rank 0's end, and its device, opened. All but run_ranks_device may be asked of NULL: alone. */
struct parallel *run_ranks_end(const struct run_ranks *ranks);
vkn_status run_ranks_context(const struct run_ranks *ranks, const struct vkn_train_params *params,
                             vkn_context **context);
/* Starts the others, who train on that scene as rank 0's trainer does, and gives them its state. */
vkn_status run_ranks_start(struct run_ranks *ranks, vkn_scene *scene, vkn_trainer *trainer);
/* Ends them: with rank 0's status they stop as well. Only then may the scene be closed. */
void run_ranks_leave(struct run_ranks *ranks, vkn_status status);
/* Their devices in order, rank 0's first; `index` below run_ranks_count. */
size_t run_ranks_count(const struct run_ranks *ranks);
const char *run_ranks_device(const struct run_ranks *ranks, size_t index);
void run_ranks_close(struct run_ranks **ranks);

#endif
