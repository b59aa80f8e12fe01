/* Makes the error messages of a failed training: the reason, the first buffer that is not finite,
 * and the settings to change. */
#include <stdlib.h>

#include "train/internal.h"

static vkn_status fail(struct vkn_trainer *t, uint32_t step, bool skipped, const char *why,
                       const char *first)
{
    struct base_text advice = {0};
    monitor_advise(&t->monitor, &t->config, t->backend_policy, skipped, &advice);
    t->ended = true;
    vkn_status status = base_fail(
        VKN_ERROR, "step %u: %s%s%s; %s", step, why, first[0] ? "; not finite first: " : "", first,
        advice.failed || !advice.data ? "lower optimizer.learning_rate" : advice.data);
    free(advice.data);
    return status;
}

vkn_status train_end_early(struct vkn_trainer *t)
{
    const struct monitor_convergence *convergence = &t->monitor.convergence;
    char why[MONITOR_LINE], first[STEP_NONFINITE_TEXT] = "";
    (void)monitor_ended(&t->monitor, why);
    if (convergence->end != MONITOR_DIVERGED && !step_nonfinite_weights(&t->step, first))
        (void)step_nonfinite_values(&t->step, first);
    return fail(t, convergence->end_step, convergence->end == MONITOR_NO_STEP, why, first);
}

vkn_status train_check_end(struct vkn_trainer *t)
{
    const struct monitor_skips *skips = &t->monitor.skips;
    const struct monitor_convergence *convergence = &t->monitor.convergence;
    char why[MONITOR_LINE], first[STEP_NONFINITE_TEXT] = "";
    bool all_skipped = skips->steps > 0 && skips->state_skipped == t->steps_done,
         no_loss = convergence->nonfinite_in_row > 0;
    if (!all_skipped && !no_loss)
        return VKN_OK;
    bool weights_found = step_nonfinite_weights(&t->step, first);
    if (!all_skipped && !weights_found)
        return VKN_OK;
    if (!weights_found)
        (void)step_nonfinite_values(&t->step, first);
    monitor_describe_failure(&t->monitor, (uint32_t)t->steps_done, why);
    return fail(t, (uint32_t)t->steps_done, !no_loss, why, first);
}

vkn_status train_check_failed_save(struct vkn_trainer *t, vkn_status status)
{
    static const char why[] = "the training has diverged: its state cannot be saved";
    char first[STEP_NONFINITE_TEXT];
    bool found = status == VKN_ERROR && !t->ended && step_nonfinite_saved(&t->step, first);
    return found ? fail(t, (uint32_t)t->steps_done, false, why, first) : status;
}

bool train_ended_early(const vkn_trainer *trainer)
{
    return trainer->ended;
}

bool train_is_sound(const vkn_trainer *trainer)
{
    return !trainer->ended && monitor_is_sound(&trainer->monitor);
}
