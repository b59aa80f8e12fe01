/* Reference pcg3d (Jarzynski and Olano, Hash Functions for GPU Rendering, JCGT 9(3), 2020). */
#include "reference/reference.h"

#include <math.h>

static void stir(uint32_t v[3])
{
    for (int i = 0; i < 3; i++)
        v[i] += v[(i + 1) % 3] * v[(i + 2) % 3];
}

void reference_random_bits(uint32_t seed, uint32_t step, uint32_t index, uint32_t dimension,
                           uint32_t bits[3])
{
    const uint32_t golden = 0x9e3779b9u;
    bits[0] = index;
    bits[1] = step;
    bits[2] = seed ^ (dimension * golden);
    for (int i = 0; i < 3; i++)
        bits[i] = bits[i] * 1664525u + 1013904223u;
    stir(bits);
    for (int i = 0; i < 3; i++)
        bits[i] ^= bits[i] >> 16;
    stir(bits);
}

void reference_random_unit(uint32_t seed, uint32_t step, uint32_t index, uint32_t dimension,
                           double unit[3])
{
    uint32_t bits[3];
    reference_random_bits(seed, step, index, dimension, bits);
    for (int i = 0; i < 3; i++)
        unit[i] = ldexp(bits[i] >> 8, -24);
}
