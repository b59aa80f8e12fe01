/* Converts between f32 and f16 without branches and calls, so that compilers can vectorise.
 * Included by base.h only. */
#ifndef BASE_F16_H
#define BASE_F16_H

#include <stdint.h>

union base_word {
    float value;
    uint32_t bits;
};

static inline float base_float_of(uint32_t bits)
{
    return (union base_word){.bits = bits}.value;
}

static inline uint32_t base_bits_of(float value)
{
    return (union base_word){.value = value}.bits;
}

/* Returns a < b ? yes : no, without a branch; a and b are below 2^31. */
static inline uint32_t base_below(uint32_t a, uint32_t b, uint32_t yes, uint32_t no)
{
    uint32_t mask = 0u - (uint32_t)((int32_t)a < (int32_t)b);
    return (yes & mask) | (no & ~mask);
}

/* Converts f16 to f32. The exponent's bias is 112 smaller than f32's; the factor of 2^112 also
 * converts subnormals correctly. */
static inline float base_from_f16(uint32_t bits)
{
    uint32_t magnitude = (bits & 0x7fffu) << 13, sign = (bits & 0x8000u) << 16;
    uint32_t finite = base_bits_of(base_float_of(magnitude) * 0x1p112f);
    return base_float_of(sign | finite | base_below(magnitude, 0x0f800000u, 0, 0x7f800000u));
}

/* Converts f32 to f16: rounds to nearest, ties to even, as shaders/shared/f16.glsl does. */
static inline uint16_t base_to_f16(float value)
{
    uint32_t bits = base_bits_of(value), magnitude = bits & 0x7fffffffu,
             sign = bits >> 16 & 0x8000u;
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    uint32_t subnormal = base_bits_of(base_float_of(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t finite = base_below(magnitude, 0x38800000u, subnormal, normal);
    uint32_t infinite = base_below(0x7f800000u, magnitude, 0x7e00u, 0x7c00u);
    return (uint16_t)(sign | base_below(magnitude, 0x47800000u, finite, infinite));
}

#endif
