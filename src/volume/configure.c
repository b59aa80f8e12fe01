#include "volume/volume.h"

#include <math.h>

bool volume_sees_first(const struct vkn_config *config)
{
    return config->march.visibility == VKN_SWITCH_ON;
}

void volume_configure(const struct vkn_config *config, struct Config *constants,
                      struct gpu_constants *specialization)
{
    constants->early_stop = config->march.early_stop;
    constants->alpha_threshold = config->march.alpha_threshold;
    constants->loss_delta = config->loss.delta;
    constants->loss_distortion = fmaxf(config->loss.distortion, 0.0F);
    constants->loss_interlevel = config->loss.interlevel;
    specialization->values[SPEC_ALPHA_THRESHOLD] = config->march.alpha_threshold > 0.0F;
    specialization->values[SPEC_LOSS] = config->loss.kind;
    specialization->values[SPEC_DISTORTION] = config->loss.distortion > 0.0F;
    specialization->values[SPEC_VISIBILITY] = volume_sees_first(config);
}
