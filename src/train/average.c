/* Training loop of ranks that go their own way for a period of 16 steps and then average what they
 * have come to (local SGD: Stich, Local SGD Converges Fast and Communicates Little, 2019), as the
 * step does it (pipeline/blend.c). Rank 0 decides how long a run lasts.
 */
#include <stdlib.h>

#include "parallel/parallel.h"
#include "train/loop.h"

/* ---- between two periods ---------------------------------------------------------------------
 */

static void count_wait(struct loop *loop, double began)
{
    loop->trainer->exchange.waiting_seconds += base_seconds() - began;
    together_count_time(loop, began, false);
}

/* Weight updates of the rank that has had fewest. All wait here for the slowest one. */
static vkn_status find_least(struct loop *loop, uint32_t *least)
{
    struct vkn_trainer *t = loop->trainer;
    uint32_t all[PARALLEL_MOST_RANKS];
    BASE_TRY(gpu_download(t->device, &t->step.buffers.at[BIND_STATE],
                          offsetof(struct State, updates), least, sizeof *least));
    double began = base_seconds();
    BASE_TRY(parallel_gather(t->parallel, least, sizeof *least, all));
    count_wait(loop, began);
    for (uint32_t rank = 0; rank < t->ranks; rank++)
        *least = all[rank] < *least ? all[rank] : *least;
    return VKN_OK;
}

static vkn_status blend(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    struct company company = {.parallel = t->parallel, .status = VKN_OK};
    double began = base_seconds();
    uint32_t least = 0;
    BASE_TRY(find_least(loop, &least));
    double met = base_seconds();
    vkn_status status = step_blend(&t->step, least, together_combine, &company);
    t->lost = t->lost || (status == VKN_NO_DEVICE && company.status == VKN_OK);
    together_count_time(loop, met, false);
    profile_add_host(&t->profile, "exchange", began, t->steps_done);
    return status;
}

/* ---- a run ------------------------------------------------------------------------------------
 */

/* Where the next period ends, as rank 0 says; *last: nowhere, the run is over. */
static vkn_status agree(struct loop *loop, struct note *notes, uint64_t limit, uint64_t *target,
                        bool *last)
{
    struct vkn_trainer *t = loop->trainer;
    uint64_t next = (t->steps_done / PERIOD_STEPS + 1) * PERIOD_STEPS;
    bool over = t->steps_done >= limit || loop_out_of_time(loop);
    struct note mine = {
        .status = loop_ended(loop) ? train_end_early(t) : VKN_OK,
        .ended = loop_ended(loop),
        .stop = loop_stopped(loop),
        .pause = !loop->follows && over,
        .step = t->steps_done,
        .target = next < limit ? next : limit,
        .seconds = loop_elapsed(loop),
    };
    double began = base_seconds();
    notes_take_reason(&mine);
    vkn_status status = notes_exchange(t->parallel, &mine, notes);
    for (uint32_t rank = 0; rank < t->ranks; rank++) /* its weights have gone into all */
        t->ended = t->ended || notes[rank].ended;
    BASE_TRY(status);
    count_wait(loop, began);
    together_hear(t, notes);
    *target = notes[0].target;
    *last = notes[0].pause || t->told_stop;
    return VKN_OK;
}

static vkn_status run_periods(struct loop *loop, struct note *notes)
{
    struct vkn_trainer *t = loop->trainer;
    struct Control *control = t->step.buffers.at[BIND_CONTROL].mapped;
    uint64_t limit = loop->limit, target = 0;
    bool last = false;
    t->told_seconds = t->seconds;
    t->told_stop = false;
    loop->bound = true;
    for (;;) {
        parallel_be_patient(t->parallel, t->steps_done == loop->from);
        parallel_at_step(t->parallel, t->steps_done + 1);
        loop_ask(loop);
        BASE_TRY(loop_receive(loop));
        loop->watched = false; /* periods are whole */
        BASE_TRY(agree(loop, notes, limit, &target, &last));
        if (last)
            return VKN_OK;
        double began = base_seconds();
        control->step_limit = (uint32_t)target;
        loop->limit = target;
        vkn_status status = loop_run_periods(loop);
        status = status == VKN_OK ? blend(loop) : status;
        t->exchange.step_seconds += base_seconds() - began;
        BASE_TRY(status);
    }
}

vkn_status average_run(struct loop *loop)
{
    struct note *notes = base_alloc(parallel_size(loop->trainer->parallel), sizeof *notes);
    vkn_status status = notes ? step_begin_blend(&loop->trainer->step) : VKN_ERROR;
    if (status == VKN_OK)
        status = run_periods(loop, notes);
    if (status == VKN_OK)
        status = together_check(loop->trainer, notes);
    free(notes);
    return status;
}
