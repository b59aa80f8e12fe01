/* Packs and unpacks Adam's moments on the host, as shaders/optim/moments.glsl does. */
#include <string.h>

#include "optim/optim.h"

bool optim_packs_moments(const struct vkn_config *config)
{
    return config->optimizer.moments == VKN_MOMENTS_BF16;
}

void optim_unpack_moments(const uint32_t *words, uint64_t count, uint32_t moment, float *values)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t bits = moment == 0 ? words[i] & 0xffff0000 : (words[i] & 0xffff) << 15;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

/* Returns the bits of an f32 plus `added` to its magnitude; NaN stays NaN. */
static uint32_t add_below(float value, uint32_t added)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t magnitude = (bits & 0x7fffffff) + added;
    return (bits & 0x80000000) | (magnitude < 0x7fffffff ? magnitude : 0x7fffffff);
}

void optim_pack_moments(const float *values, uint64_t count, uint32_t moment, uint32_t *words)
{
    for (uint64_t i = 0; i < count; i++)
        words[i] = moment == 0
                       ? (words[i] & 0xffff) | (add_below(values[i], 0x8000) & 0xffff0000)
                       : (words[i] & 0xffff0000) | (add_below(values[i], 0x4000) >> 15 & 0xffff);
}
