/* Describes each optimiser: its moment buffers and the operations of its step. */
#include "optim/optim.h"

_Static_assert(BIND_MOMENT1 + 1 == BIND_MOMENT2 && MAX_MOMENTS == 2,
               "moments have consecutive numbers");

/* Operations are counted in shaders/optim/optimizers.glsl; a square root, an exponential and a
 * division count as one operation each. */
static const struct optim_kind kinds[] = {
    [VKN_OPTIMIZER_ADAM] = {.moments = 2,
                            .moment_names = {"Adam's first moments", "Adam's second moments"},
                            .parameter_flops = 13,
                            .decay_flops = 2,
                            .entry_flops = 7},
    [VKN_OPTIMIZER_LION] = {.moments = 1,
                            .moment_names = {"Lion's moments"},
                            .parameter_flops = 10,
                            .decay_flops = 2,
                            .entry_flops = 1},
};

const struct optim_kind *optim_kind(const struct vkn_config *config)
{
    enum vkn_optimizer kind = config->optimizer.kind;
    return &kinds[kind == VKN_OPTIMIZER_DEFAULT ? VKN_OPTIMIZER_ADAM : kind];
}

void optim_size_tensors(const struct vkn_config *config, struct buffer_counts *counts)
{
    for (uint32_t i = 0; i < MAX_MOMENTS; i++)
        counts->moments[i] = i < optim_kind(config)->moments ? counts->params : 0;
}

void optim_size_buffers(const struct vkn_config *config, struct buffer_counts *counts)
{
    optim_size_tensors(config, counts);
    if (optim_packs_moments(config))
        counts->moments[1] = 0;
}

uint32_t optim_buffer_mask(const struct vkn_config *config)
{
    uint32_t buffers = BUFFERS_ALL;
    for (uint32_t i = optim_kind(config)->moments; i < MAX_MOMENTS; i++)
        buffers &= ~(BUFFERS(MOMENT1) << i);
    return buffers;
}
