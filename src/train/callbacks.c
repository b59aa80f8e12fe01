/* Calls the caller's function between two steps (vkn_train_run.between_steps). */
#include <math.h>

#include "train/loop.h"

void loop_update_due(struct loop *loop)
{
    const struct vkn_train_run *run = loop->run;
    BASE_CALLBACK(gpu_guard(loop->trainer->device), "vkn_trainer_run", "due", loop->trainer, false);
    loop->due = run->due && run->between_steps && trainer_leads(loop->trainer)
                    ? run->due(run->context)
                    : HUGE_VAL;
    loop->callback_expected = isfinite(loop->due);
}

static vkn_status between_steps(const struct loop *loop)
{
    BASE_CALLBACK(gpu_guard(loop->trainer->device), "vkn_trainer_run", "between_steps",
                  loop->trainer, true);
    return loop->run->between_steps(loop->run->context);
}

/* Moves the loop's clocks by the time of the callback, which does not count as training time. */
vkn_status loop_call_between_steps(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    if (!loop->callback_expected || loop->due > 0)
        return VKN_OK;
    double began = base_seconds(), before = t->seconds;
    t->seconds = loop_elapsed(loop); /* for a checkpoint that the callback may write */
    vkn_status status = between_steps(loop);
    double passed = base_seconds() - began;
    t->seconds = before;
    loop->began += passed;
    loop->window.began += passed;
    loop->wait_end = 0;
    loop->device_end = 0;
    loop_update_due(loop);
    return status;
}

uint64_t loop_next_stop(const struct loop *loop)
{
    uint64_t end = (loop->submitted / UPDATE_INTERVAL + 1) * UPDATE_INTERVAL;
    double steps = loop->step_seconds > 0 ? loop->due / loop->step_seconds : 1;
    if (end > loop->limit)
        end = loop->limit;
    if (!loop->callback_expected || !(steps < (double)(end - loop->submitted)))
        return end;
    return loop->submitted + (steps > 1 ? (uint64_t)steps : 1);
}
