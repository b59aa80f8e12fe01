/* Chooses and labels the ticks of axes. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/chart.h"

/* Returns the smallest number 1, 2 or 5 times a power of ten that is at least `rough`. */
static double round_step(double rough)
{
    double power = pow(10.0, floor(log10(rough)));
    double mantissa = rough / power;
    if (mantissa <= 1.0 + 1e-9)
        return power;
    if (mantissa <= 2.0 + 1e-9)
        return 2.0 * power;
    return mantissa <= 5.0 + 1e-9 ? 5.0 * power : 10.0 * power;
}

double ticks_round_down(double most)
{
    double unit = pow(10, floor(log10(most)));
    return unit * (most >= 5 * unit ? 5 : most >= 2 * unit ? 2 : 1);
}

/* ---- labels --------------------------------------------------------------------------------- */

/* Returns the SI prefix of an axis's labels: none below 10 000, then "k", "M" and so on. */
static const char *axis_unit(double largest, double *scale)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t unit = 0;
    *scale = 1.0;
    if (largest >= 1e4) {
        while (largest / *scale >= 1000.0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
            *scale *= 1000.0;
            unit++;
        }
    }
    return units[unit];
}

static void label_linear(char label[16], double value, double step, double largest)
{
    double scale;
    const char *unit = axis_unit(largest, &scale);
    double digits = -floor(log10(step / scale) + 1e-9);
    if (fabs(value) < step * 1e-6)
        snprintf(label, 16, "0");
    else if (digits > 4.0 || largest / scale >= 1e6)
        snprintf(label, 16, "%.5g", value);
    else
        snprintf(label, 16, "%.*f%s", digits > 0.0 ? (int)digits : 0, value / scale, unit);
}

static void label_logarithmic(char label[16], double mantissa, int exponent)
{
    double value = mantissa * pow(10.0, exponent);
    double scale;
    const char *unit = axis_unit(value, &scale);
    if (exponent < -4 || (value >= 1e4 && value / scale >= 1000.0))
        snprintf(label, 16, "%.0fe%d", mantissa, exponent);
    else
        snprintf(label, 16, "%.*f%s", exponent < 0 ? -exponent : 0, value / scale, unit);
}

/* ---- positions ------------------------------------------------------------------------------ */

void ticks_linear(double low, double high, size_t wanted, struct ticks *ticks)
{
    ticks->count = 0;
    double step = round_step((high - low) / (double)(wanted > 0 ? wanted : 1));
    double first = ceil(low / step - 1e-6);
    double largest = fmax(fabs(low), fabs(high));
    for (size_t i = 0; i < TICKS_MAX; i++) {
        double value = (first + (double)i) * step;
        if (!(value <= high + step * 1e-6))
            break;
        ticks->value[i] = value;
        label_linear(ticks->label[i], value, step, largest);
        ticks->count++;
    }
}

void ticks_round_out(double *low, double *high, size_t wanted)
{
    double step = round_step((*high - *low) / (double)(wanted > 0 ? wanted : 1));
    *low = floor(*low / step + 1e-6) * step;
    *high = ceil(*high / step - 1e-6) * step;
}

void ticks_logarithmic(double low, double high, size_t wanted, struct ticks *ticks)
{
    static const double mantissas[] = {1.0, 2.0, 5.0};
    double decades = high - low;
    bool subdivides = decades * 3.0 <= (double)wanted + 1.0;
    int stride = (int)ceil(decades / (double)(wanted > 0 ? wanted : 1) - 1e-9);
    if (stride < 1)
        stride = 1;
    ticks->count = 0;
    for (int exponent = (int)floor(low); exponent <= (int)ceil(high); exponent++) {
        if (!subdivides && exponent % stride != 0)
            continue;
        for (size_t m = 0; m < (subdivides ? 3u : 1u) && ticks->count < TICKS_MAX; m++) {
            double at = log10(mantissas[m]) + exponent, value = mantissas[m] * pow(10.0, exponent);
            if (at < low - 1e-9 || at > high + 1e-9 || !isfinite(value) || value <= 0.0)
                continue;
            ticks->value[ticks->count] = value;
            label_logarithmic(ticks->label[ticks->count++], mantissas[m], exponent);
        }
    }
}
