/* Declares elementary functions that return the same bits on every machine.
 *
 * C libraries differ in the last bit of sin, exp and pow, and one differing bit can change a
 * rounded pixel. The functions here use only + - * / sqrt and floor, which IEEE 754 defines
 * exactly. Their error is about 1e-12, far below the resolution of a pixel. */
#ifndef MAKE_SCENE_EXACT_H
#define MAKE_SCENE_EXACT_H

#define EXACT_PI 3.14159265358979323846

/* Return the sine and cosine of x, |x| < 1e6. */
double exact_sin(double x);
double exact_cos(double x);

/* Returns the tangent of x in [0, pi/2). */
double exact_tan(double x);

/* Returns e^x for x <= 0; 0 below -700. */
double exact_exp(double x);

/* Returns x^n by repeated squaring. */
double exact_power(double x, unsigned n);

/* Converts linear light x in [0, 1] to sRGB (IEC 61966-2-1). */
double exact_srgb(double x);

#endif
