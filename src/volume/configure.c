#include "volume/volume.h"

void volume_configure(const struct vkn_config *config, struct Config *constants,
                      struct gpu_constants *specialization)
{
    constants->loss_delta = config->loss.delta;
    specialization->values[SPEC_LOSS] = config->loss.kind;
    specialization->values[SPEC_VISIBILITY] = config->march.visibility == VKN_SWITCH_ON;
}
