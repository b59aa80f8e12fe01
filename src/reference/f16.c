/* Reference rounding to IEEE 754 binary16 and to bfloat16. */
#include "reference/reference.h"

#include <math.h>

double reference_round_to_f16(double x)
{
    if (x == 0)
        return x;
    /* Unit of the last of 11 bits; subnormal numbers have that of the smallest normal one. */
    double unit = ldexp(1, (int)fmax(ilogb(x), -14) - 10);
    double rounded = nearbyint(x / unit) * unit; /* the division is exact */
    return fabs(rounded) < 65536 ? rounded : copysign(INFINITY, x);
}

double reference_round_to_bf16(double x)
{
    if (x == 0 || !isfinite(x))
        return x;
    double unit = ldexp(1, (int)fmax(ilogb(x), -126) - 7); /* of the last of 8 bits */
    double rounded = nearbyint(x / unit) * unit;
    return fabs(rounded) < 0x1p128 ? rounded : copysign(INFINITY, x);
}

double reference_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double magnitude = exponent == 0    ? ldexp(mantissa, -24)
                       : exponent == 31 ? mantissa ? NAN : INFINITY
                                        : ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 ? -magnitude : magnitude;
}

uint16_t reference_f16_bits(double x)
{
    double magnitude = isnan(x) ? NAN : fabs(reference_round_to_f16(x));
    int exponent = magnitude < 0x1p-14 ? -14 : ilogb(magnitude);
    int bits = isnan(x) ? 0x7e00 : isinf(magnitude) ? 0x7c00 : (exponent + 14) * 1024;
    /* The implicit leading one increases the exponent field by one. */
    bits += isfinite(magnitude) ? (int)ldexp(magnitude, 10 - exponent) : 0;
    return (uint16_t)(bits | (signbit(x) ? 0x8000 : 0));
}
