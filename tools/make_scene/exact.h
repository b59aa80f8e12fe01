/* Elementary functions that give the same bits on every machine.
 *
 * C libraries differ in the last bit of sin, exp and pow, and one differing bit can flip a rounded
 * pixel. These use only + - * / sqrt and floor, which IEEE 754 defines exactly. They are good to
 * about 1e-12, far below what a pixel shows. */
#ifndef MAKE_SCENE_EXACT_H
#define MAKE_SCENE_EXACT_H

#define EXACT_PI 3.14159265358979323846

/* Any argument of moderate size (|x| < 1e6). */
double exact_sin(double x);
double exact_cos(double x);

/* x in [0, pi/2). */
double exact_tan(double x);

/* x in [-700, 0]: attenuation. */
double exact_exp(double x);

/* x^n, n >= 0, by repeated squaring. */
double exact_power(double x, unsigned n);

/* x in [0, 1], linear light to the sRGB transfer curve (IEC 61966-2-1). */
double exact_srgb(double x);

#endif
