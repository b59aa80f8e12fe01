/* What to change in a training that has diverged. */
#include "base/base.h"
#include "config/config.h"
#include "monitor/monitor.h"

void monitor_advise(const struct monitor *monitor, const struct vkn_config *config,
                    const char *policy, bool skipped, struct base_text *text)
{
    float scale = monitor->course.scale;
    char *rate = NULL;
    if (skipped && config->loss_scale.kind != VKN_LOSS_SCALE_DYNAMIC && scale > 1.0f)
        base_text_add(text, "use a smaller loss scale than %.4g, such as --loss-scale dynamic, or ",
                      (double)scale);
    else if (skipped && scale > 1.0f && scale <= config->loss_scale.minimum)
        base_text_add(text, "use a smaller loss_scale.minimum than %.4g, or ", (double)scale);
    else if (skipped && scale > 1.0f && !monitor->skips.settled)
        base_text_add(text, "begin with a smaller loss_scale.initial than %.4g, or ",
                      (double)config->loss_scale.initial);
    if (policy[0])
        base_text_add(text, "undo %s, or ", policy);
    if (vkn_config_get(config, "optimizer.learning_rate", &rate) == VKN_OK)
        base_text_add(text, "lower optimizer.learning_rate (%s now)", rate);
    vkn_free(rate);
    if (config->optimizer.clip_norm <= 0.0f && !skipped)
        base_text_add(text, ", or cut large gradients (optimizer.clip_norm)");
    if (config->precision != VKN_PRECISION_FP32)
        base_text_add(text, ", or compute in --precision fp32");
}
