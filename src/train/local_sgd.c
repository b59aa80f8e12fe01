/* Runs the training loop of local SGD (Stich, Local SGD Converges Fast and Communicates Little,
 * 2019): each rank trains by itself for an update interval of 16 steps, then all ranks average
 * their parameters (step/averaging.c). Rank 0 decides how long a run lasts. */
#include <stdlib.h>

#include "parallel/parallel.h"
#include "train/loop.h"

/* ---- parameter averaging --------------------------------------------------------------------- */

static void add_waiting_time(struct loop *loop, double began)
{
    loop->trainer->communication.waiting_seconds += base_seconds() - began;
    ranks_add_time(loop, began, false);
}

/* Finds the smallest number of weight updates of any rank, and so waits for the slowest rank. */
static vkn_status find_fewest_updates(struct loop *loop, uint32_t *least)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t all[PARALLEL_MOST_RANKS];
    BASE_TRY(gpu_download(t->device, &t->step.buffers.at[BIND_STATE],
                          offsetof(struct State, updates), least, sizeof *least));
    double began = base_seconds();
    BASE_TRY(parallel_gather(t->parallel, least, sizeof *least, all));
    add_waiting_time(loop, began);
    for (uint32_t rank = 0; rank < t->ranks; rank++)
        *least = all[rank] < *least ? all[rank] : *least;
    return VKN_OK;
}

static vkn_status average_parameters(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    struct reduction reduction = {.parallel = t->parallel, .status = VKN_OK};
    double began = base_seconds();
    uint32_t least = 0;
    BASE_TRY(find_fewest_updates(loop, &least));
    double arrived = base_seconds();
    vkn_status status = step_average(&t->step, least, ranks_all_reduce, &reduction);
    t->device_lost = t->device_lost || (status == VKN_NO_DEVICE && reduction.status == VKN_OK);
    ranks_add_time(loop, arrived, false);
    profile_add_host(&t->profile, "exchange", began, t->steps_done);
    return status;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Agrees with all ranks on the step at which the next update interval ends (*target, rank 0's), or
 * on the end of the run (*last). */
static vkn_status agree_on_target(struct loop *loop, struct message *messages, uint64_t limit,
                                  uint64_t *target, bool *last)
{
    struct vkn_trainer *t = loop->trainer;
    uint64_t next = (t->steps_done / UPDATE_INTERVAL + 1) * UPDATE_INTERVAL;
    bool over = t->steps_done >= limit || loop_out_of_time(loop);
    struct message mine = {
        .status = loop_ended_early(loop) ? train_end_early(t) : VKN_OK,
        .ended = loop_ended_early(loop),
        .stop = loop_stopped(loop),
        .pause = !loop->follows && over,
        .step = t->steps_done,
        .target = next < limit ? next : limit,
        .seconds = loop_elapsed(loop),
    };
    double began = base_seconds();
    messages_set_reason(&mine);
    vkn_status status = messages_exchange(t->parallel, &mine, messages);
    /* A rank that has diverged has spoilt the averaged parameters of all ranks. */
    for (uint32_t rank = 0; rank < t->ranks; rank++)
        t->ended = t->ended || messages[rank].ended;
    BASE_TRY(status);
    add_waiting_time(loop, began);
    ranks_read_messages(t, messages);
    *target = messages[0].target;
    *last = messages[0].pause || t->stop_requested;
    return VKN_OK;
}

static vkn_status run_intervals(struct loop *loop, struct message *messages)
{
    struct vkn_trainer *t = loop->trainer;
    struct Control *control = t->step.buffers.at[BIND_CONTROL].mapped;
    uint64_t limit = loop->limit, target = 0;
    bool last = false;
    t->rank0_seconds = t->seconds;
    t->stop_requested = false;
    loop->has_fixed_limit = true;
    for (;;) {
        parallel_expect_delays(t->parallel, t->steps_done == loop->from);
        parallel_set_step(t->parallel, t->steps_done + 1);
        loop_update_due(loop);
        BASE_TRY(loop_call_between_steps(loop));
        loop->callback_expected = false; /* a callback does not cut an update interval short */
        BASE_TRY(agree_on_target(loop, messages, limit, &target, &last));
        if (last)
            return VKN_OK;
        double began = base_seconds();
        control->step_limit = (uint32_t)target;
        loop->limit = target;
        vkn_status status = loop_run_intervals(loop);
        status = status == VKN_OK ? average_parameters(loop) : status;
        t->communication.step_seconds += base_seconds() - began;
        BASE_TRY(status);
    }
}

vkn_status local_sgd_run(struct loop *loop)
{
    struct message *messages = base_alloc(parallel_size(loop->trainer->parallel), sizeof *messages);
    vkn_status status = messages ? step_begin_average(&loop->trainer->step) : VKN_ERROR;
    if (status == VKN_OK)
        status = run_intervals(loop, messages);
    if (status == VKN_OK)
        status = ranks_check_hashes(loop->trainer, messages);
    free(messages);
    return status;
}
