/* 16-bit numbers on the host. */
#include <math.h>
#include <string.h>

#include "bench/internal.h"

uint16_t bench_to_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    float size = fabsf(value);
    if (size >= 65520.0f)
        return (uint16_t)(sign | 0x7c00u);
    if (isnan(value))
        return (uint16_t)(sign | 0x7e00u);
    int exponent = 0;
    frexpf(size, &exponent);
    /* Of the last bit; subnormal numbers share the smallest normal one's. */
    int last = exponent - 11 < -24 ? -24 : exponent - 11;
    uint32_t units = (uint32_t)lrintf(ldexpf(size, -last));
    if (size < 6.103515625e-5f) /* 2^-14; a carry makes it normal as it should */
        return (uint16_t)(sign | units);
    return (uint16_t)(sign | (((uint32_t)(last + 24) << 10) + units));
}

float bench_from_half(uint16_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    float size = exponent == 31  ? mantissa ? NAN : INFINITY
                 : exponent == 0 ? ldexpf((float)mantissa, -24)
                                 : ldexpf((float)(1024 + mantissa), exponent - 25);
    return half >> 15 ? -size : size;
}

double bench_number(const void *numbers, uint64_t index, bool half)
{
    return (double)(half ? bench_from_half(((const uint16_t *)numbers)[index])
                         : ((const float *)numbers)[index]);
}
