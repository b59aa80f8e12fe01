/* Somebody who looks at a training, between its steps. */
#include <math.h>

#include "train/loop.h"

void loop_ask(struct loop *loop)
{
    const struct vkn_train_run *run = loop->run;
    BASE_CALLBACK(gpu_guard(loop->trainer->device), "vkn_trainer_run", "due", loop->trainer, false);
    loop->due =
        run->due && run->visit && trainer_leads(loop->trainer) ? run->due(run->context) : HUGE_VAL;
    loop->watched = isfinite(loop->due);
}

static vkn_status visit(const struct loop *loop)
{
    BASE_CALLBACK(gpu_guard(loop->trainer->device), "vkn_trainer_run", "visit", loop->trainer,
                  true);
    return loop->run->visit(loop->run->context);
}

/* The training's clocks stand still. */
vkn_status loop_receive(struct loop *loop)
{
    struct vkn_trainer *t = loop->trainer;
    if (!loop->watched || loop->due > 0)
        return VKN_OK;
    double began = base_seconds(), before = t->seconds;
    t->seconds = loop_elapsed(loop); /* for checkpoints that are written meanwhile */
    vkn_status status = visit(loop);
    double passed = base_seconds() - began;
    t->seconds = before;
    loop->began += passed;
    loop->window.began += passed;
    loop->waited = 0;
    loop->device_end = 0;
    loop_ask(loop);
    return status;
}

uint64_t loop_next_stop(const struct loop *loop)
{
    uint64_t end = (loop->submitted / PERIOD_STEPS + 1) * PERIOD_STEPS;
    double steps = loop->step_seconds > 0 ? loop->due / loop->step_seconds : 1;
    if (end > loop->limit)
        end = loop->limit;
    if (!loop->watched || !(steps < (double)(end - loop->submitted)))
        return end;
    return loop->submitted + (steps > 1 ? (uint64_t)steps : 1);
}
