#include "exact.h"

#include <math.h>

double exact_sin(double x)
{
    /* Reduces x to [-pi/2, pi/2]. Taylor series by Horner's rule; the next term is below 4e-15. */
    double turns = floor(x / (2.0 * EXACT_PI) + 0.5);
    x = x - turns * (2.0 * EXACT_PI);
    if (x > EXACT_PI / 2.0)
        x = EXACT_PI - x;
    else if (x < -EXACT_PI / 2.0)
        x = -EXACT_PI - x;
    double square = x * x;
    double sum = 1.0;
    for (int k = 19; k >= 3; k -= 2)
        sum = 1.0 - square / (double)(k * (k - 1)) * sum;
    return x * sum;
}

double exact_cos(double x)
{
    return exact_sin(x + EXACT_PI / 2.0);
}

double exact_tan(double x)
{
    return exact_sin(x) / exact_cos(x);
}

double exact_exp(double x)
{
    if (x < -700.0)
        return 0.0;
    /* exp(x) = exp(x / 2^halvings)^(2^halvings) */
    int halvings = 0;
    while (x < -0.5) {
        x = x * 0.5;
        halvings++;
    }
    double sum = 1.0;
    for (int k = 14; k >= 1; k--)
        sum = 1.0 + x / (double)k * sum;
    while (halvings-- > 0)
        sum = sum * sum;
    return sum;
}

double exact_power(double x, unsigned n)
{
    double result = 1.0;
    for (; n > 0; n >>= 1) {
        if (n & 1u)
            result = result * x;
        x = x * x;
    }
    return result;
}

/* x in (0, 1]. Newton's iteration from above converges monotonically. */
static double cube_root(double x)
{
    double root = 1.0;
    for (int i = 0; i < 20; i++)
        root = (2.0 * root + x / (root * root)) / 3.0;
    return root;
}

double exact_srgb(double x)
{
    if (x <= 0.0)
        return 0.0;
    if (x >= 1.0)
        return 1.0;
    if (x <= 0.0031308)
        return 12.92 * x;
    /* x^(1/2.4) = x^(5/12): the fifth power of the twelfth root. */
    double twelfth = cube_root(sqrt(sqrt(x)));
    return 1.055 * exact_power(twelfth, 5) - 0.055;
}
