/* 16-bit numbers: binary16 of IEEE 754, and bfloat16. */
#include "reference/reference.h"

#include <math.h>

double reference_round_to_f16(double x)
{
    if (x == 0)
        return x;
    /* Of 11 bits the last one; those below the smallest normal number have its. */
    double unit = ldexp(1, (int)fmax(ilogb(x), -14) - 10);
    double rounded = nearbyint(x / unit) * unit; /* the division is exact */
    return fabs(rounded) < 65536 ? rounded : copysign(INFINITY, x);
}

double reference_round_to_bf16(double x)
{
    if (x == 0 || !isfinite(x))
        return x;
    double unit = ldexp(1, (int)fmax(ilogb(x), -126) - 7); /* of 8 bits the last one */
    double rounded = nearbyint(x / unit) * unit;
    return fabs(rounded) < 0x1p128 ? rounded : copysign(INFINITY, x);
}

double reference_f16(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double size = exponent == 0    ? ldexp(mantissa, -24)
                  : exponent == 31 ? mantissa ? NAN : INFINITY
                                   : ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 ? -size : size;
}

uint16_t reference_f16_bits(double x)
{
    double size = isnan(x) ? NAN : fabs(reference_round_to_f16(x));
    int exponent = size < 0x1p-14 ? -14 : ilogb(size);
    int bits = isnan(x) ? 0x7e00 : isinf(size) ? 0x7c00 : (exponent + 14) * 1024;
    /* A normal number's leading one is what the exponent is one more for. */
    bits += isfinite(size) ? (int)ldexp(size, 10 - exponent) : 0;
    return (uint16_t)(bits | (signbit(x) ? 0x8000 : 0));
}
