/* The end of a training that has diverged: why, what was not finite first, and what to change. */
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
    const struct monitor_course *course = &t->monitor.course;
    char why[MONITOR_LINE], first[STEP_FOUND] = "";
    (void)monitor_ended(&t->monitor, why);
    if (course->end != MONITOR_WORSE && !step_find_weights(&t->step, first))
        (void)step_find_values(&t->step, first);
    return fail(t, course->end_step, course->end == MONITOR_NO_STEP, why, first);
}

vkn_status train_check_end(struct vkn_trainer *t)
{
    const struct monitor_skips *skips = &t->monitor.skips;
    const struct monitor_course *course = &t->monitor.course;
    char why[MONITOR_LINE], first[STEP_FOUND] = "";
    bool none = skips->steps > 0 && skips->before == t->steps_done, lost = course->lost_in_row > 0;
    if (!none && !lost)
        return VKN_OK;
    bool weights = step_find_weights(&t->step, first);
    if (!none && !weights)
        return VKN_OK;
    if (!weights)
        (void)step_find_values(&t->step, first);
    monitor_failed(&t->monitor, (uint32_t)t->steps_done, why);
    return fail(t, (uint32_t)t->steps_done, !lost, why, first);
}

vkn_status train_check_unsaved(struct vkn_trainer *t, vkn_status status)
{
    static const char why[] = "the training has diverged: what it has come to cannot be saved";
    char first[STEP_FOUND];
    bool found = status == VKN_ERROR && !t->ended && step_find_unsaved(&t->step, first);
    return found ? fail(t, (uint32_t)t->steps_done, false, why, first) : status;
}

bool train_has_ended(const vkn_trainer *trainer)
{
    return trainer->ended;
}

bool train_is_sound(const vkn_trainer *trainer)
{
    return !trainer->ended && monitor_is_sound(&trainer->monitor);
}
