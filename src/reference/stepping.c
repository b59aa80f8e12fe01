/* Reference step length of instant-ngp (Mueller et al. 2022, appendix E.1): proportional to the
 * distance, between a shortest and a longest step. As a function of the number of steps the
 * distance is linear, then geometric (each step multiplies it by 1 + cone), then linear again. In
 * contracted space the last part is linear in the inverse distance: with t = 1 / w a step of length
 * longest * (t / t0)^2 has length longest / t0^2 in w. */
#include "reference/reference.h"

#include <math.h>

struct reference_stepping reference_stepping(const struct Config *config, bool contracted)
{
    struct reference_stepping stepping = {
        .shortest = config->step_min,
        .longest = config->step_max,
        .cone = config->cone_angle,
        .contracted = contracted,
        .nearest = (double)fmaxf(config->near_distance, config->step_min),
    };
    if (!(stepping.cone > 1e-5)) /* steps of one length */
        stepping.cone = 0;
    return stepping;
}

double reference_nearest(const struct reference_stepping *stepping, double near_distance)
{
    bool everywhere = stepping->spacing == SPACING_STEPS || stepping->spacing == SPACING_LINEAR;
    return everywhere ? near_distance : stepping->nearest;
}

double reference_step_size(const struct reference_stepping *stepping, double t)
{
    double onset = stepping->longest / stepping->cone;
    if (stepping->contracted && t > onset)
        return stepping->longest * pow(t / onset, 2);
    return fmin(fmax(t * stepping->cone, stepping->shortest), stepping->longest);
}

/* Begin and end of the geometric part, as distances and as numbers of steps. */
struct geometric {
    double from, to, steps_from, steps_to;
};

static struct geometric geometric_part(const struct reference_stepping *stepping)
{
    struct geometric part = {.from = stepping->shortest / stepping->cone,
                             .to = stepping->longest / stepping->cone};
    part.steps_from = part.from / stepping->shortest;
    part.steps_to = part.steps_from + log(part.to / part.from) / log1p(stepping->cone);
    return part;
}

double reference_steps_to(const struct reference_stepping *stepping, double t)
{
    if (stepping->spacing == SPACING_LOG)
        return log(t / stepping->nearest);
    if (stepping->spacing == SPACING_DISPARITY)
        return stepping->nearest / t;
    if (stepping->spacing == SPACING_LINEAR || stepping->cone == 0)
        return t / stepping->shortest;
    struct geometric part = geometric_part(stepping);
    if (t < part.from)
        return t / stepping->shortest;
    if (t < part.to)
        return part.steps_from + log(t / part.from) / log1p(stepping->cone);
    if (stepping->contracted)
        return part.steps_to + (1 / part.to - 1 / t) * part.to * part.to / stepping->longest;
    return part.steps_to + (t - part.to) / stepping->longest;
}

double reference_distance_after(const struct reference_stepping *stepping, double steps)
{
    if (stepping->spacing == SPACING_LOG)
        return stepping->nearest * exp(steps);
    if (stepping->spacing == SPACING_DISPARITY)
        return stepping->nearest / steps;
    if (stepping->spacing == SPACING_LINEAR || stepping->cone == 0)
        return steps * stepping->shortest;
    struct geometric part = geometric_part(stepping);
    if (steps < part.steps_from)
        return steps * stepping->shortest;
    if (steps < part.steps_to)
        return part.from * pow(1 + stepping->cone, steps - part.steps_from);
    if (stepping->contracted)
        return 1 /
               (1 / part.to - (steps - part.steps_to) * stepping->longest / (part.to * part.to));
    return part.to + (steps - part.steps_to) * stepping->longest;
}

double reference_in_bin(const struct reference_stepping *stepping, const double span[2],
                        uint32_t count, uint32_t bin, double position)
{
    double first = reference_steps_to(stepping, span[0]);
    double steps = reference_steps_to(stepping, span[1]) - first;
    return reference_distance_after(stepping, first + steps * (bin + position) / count);
}

double reference_bin_width(const struct reference_stepping *stepping, const double span[2],
                           uint32_t count, uint32_t bin)
{
    return reference_in_bin(stepping, span, count, bin, 1) -
           reference_in_bin(stepping, span, count, bin, 0);
}

static double share(const double *weights, uint32_t bin)
{
    return weights[bin] + 1e-5;
}

static double all_shares(const double *weights, uint32_t bins)
{
    double sum = 0;
    for (uint32_t i = 0; i < bins; i++)
        sum += share(weights, i);
    return sum;
}

double reference_coarse_cdf(const double *weights, uint32_t bins, double position)
{
    double sum = 0;
    for (uint32_t i = 0; i < bins; i++)
        sum += share(weights, i) * fmin(fmax(position - i, 0), 1);
    return sum / all_shares(weights, bins);
}

double reference_coarse_quantile(const double *weights, uint32_t bins, double probability)
{
    double left = probability * all_shares(weights, bins);
    for (uint32_t i = 0; i < bins; i++) {
        if (left < share(weights, i))
            return i + left / share(weights, i);
        left -= share(weights, i);
    }
    return bins;
}

bool reference_cube(const double origin[3], const double direction[3], double side, double span[2])
{
    span[0] = -INFINITY;
    span[1] = INFINITY;
    for (int i = 0; i < 3; i++) {
        double from_center = origin[i] - 0.5;
        if (direction[i] == 0) {
            if (fabs(from_center) > side / 2)
                return false;
            continue;
        }
        double a = (-side / 2 - from_center) / direction[i];
        double b = (side / 2 - from_center) / direction[i];
        span[0] = fmax(span[0], fmin(a, b));
        span[1] = fmin(span[1], fmax(a, b));
    }
    return span[0] < span[1];
}
