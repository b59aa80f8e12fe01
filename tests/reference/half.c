/* 16-bit numbers: binary16 of IEEE 754. */
#include "reference/reference.h"

#include <math.h>

double reference_round_to_half(double x)
{
    if (x == 0)
        return x;
    /* Of 11 bits the last one; those below the smallest normal number have its. */
    double unit = ldexp(1, (int)fmax(ilogb(x), -14) - 10);
    double rounded = nearbyint(x / unit) * unit; /* the division is exact */
    return fabs(rounded) < 65536 ? rounded : copysign(INFINITY, x);
}

double reference_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double size = exponent == 0    ? ldexp(mantissa, -24)
                  : exponent == 31 ? mantissa ? NAN : INFINITY
                                   : ldexp(1024 + mantissa, exponent - 25);
    return bits >> 15 ? -size : size;
}
