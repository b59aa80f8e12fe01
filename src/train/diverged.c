/* The end of a training that has diverged: why, what was not finite first, and what to change. */
#include <stdlib.h>

#include <vknerf/config.h>

#include "train/internal.h"

/* ---- what to change -------------------------------------------------------------------------- */

/* `skipped`: by the loss scale; else the loss is what was not finite, or large. */
static void add_advice(const struct vkn_trainer *t, bool skipped, struct base_text *text)
{
    float scale = t->monitor.course.scale;
    char *rate = NULL;
    bool dynamic = t->config.loss_scale.kind == VKN_LOSS_SCALE_DYNAMIC;
    if (skipped && !dynamic && scale > 1.0f)
        base_text_add(text, "use a smaller loss scale than %.4g, such as --loss-scale dynamic, or ",
                      (double)scale);
    else if (skipped && scale > 1.0f && scale <= t->config.loss_scale.minimum)
        base_text_add(text, "use a smaller loss_scale.minimum than %.4g, or ", (double)scale);
    else if (skipped && !t->monitor.skips.settled && scale > 1.0f)
        base_text_add(text, "begin with a smaller loss_scale.initial than %.4g, or ",
                      (double)t->config.loss_scale.initial);
    if (t->backend_policy[0])
        base_text_add(text, "undo %s, or ", t->backend_policy);
    if (vkn_config_get(&t->config, "optimizer.learning_rate", &rate) == VKN_OK)
        base_text_add(text, "lower optimizer.learning_rate (%s now)", rate);
    vkn_free(rate);
    if (t->config.optimizer.clip_norm <= 0.0f && !skipped)
        base_text_add(text, ", or cut large gradients (optimizer.clip_norm)");
    if (t->config.precision != VKN_PRECISION_FP32)
        base_text_add(text, ", or compute in --precision fp32");
}

static vkn_status fail(struct vkn_trainer *t, uint32_t step, bool skipped, const char *why,
                       const char *first)
{
    struct base_text advice = {0};
    add_advice(t, skipped, &advice);
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
    if (lost)
        snprintf(why, sizeof why, "the training has diverged: since step %u no loss was finite",
                 (uint32_t)t->steps_done + 1 - course->lost_in_row);
    else
        snprintf(why, sizeof why,
                 "no step was taken: all %u were skipped, for their gradients are not finite at a "
                 "loss scale of %.4g",
                 skips->before, (double)course->scale);
    return fail(t, (uint32_t)t->steps_done, !lost, why, first);
}

vkn_status train_check_unsaved(struct vkn_trainer *t, vkn_status status)
{
    char first[STEP_FOUND] = "";
    bool found = false;
    if (status == VKN_ERROR && !t->ended) {
        BASE_KEEP_ERROR;
        found = step_find_weights(&t->step, first) || step_find_cells(&t->step, first);
    }
    if (!found)
        return status;
    return fail(t, (uint32_t)t->steps_done, false,
                "the training has diverged: what it has come to cannot be saved", first);
}

bool train_has_ended(const vkn_trainer *trainer)
{
    return trainer->ended;
}

bool train_is_sound(const vkn_trainer *trainer)
{
    return !trainer->ended && monitor_is_sound(&trainer->monitor);
}
