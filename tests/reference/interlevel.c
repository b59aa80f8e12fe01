/* The loss that a proposal learns by (Mip-NeRF 360, Barron et al. 2022, equations 12 and 13), as it
 * is defined: every sample is held against every bin. */
#include "reference/reference.h"

#include <math.h>
#include <stdlib.h>

#define LEAST 1e-7

/* What an interval takes of the light; *light is what is left behind it. */
static double take_light(const struct reference_interval *interval, double *light)
{
    double before = *light;
    *light = before * exp(-interval->density * interval->width);
    return -before * expm1(-interval->density * interval->width);
}

static bool overlaps(const struct reference_interval *a, const struct reference_interval *b)
{
    return a->begin < b->end && a->end > b->begin;
}

/* Adds a sample's loss, and its derivative to those by the weights of the bins that it reaches
 * into. `slack`: how far the derivative is off when single precision has found the weights. */
static double excess_loss(const struct reference_ray_bins *ray, const double *weights,
                          const struct reference_interval *sample, double weight, double *by_weight,
                          double *slack)
{
    double bound = 0;
    for (size_t i = 0; i < ray->count; i++)
        bound += overlaps(&ray->bins[i], sample) ? weights[i] : 0;
    double excess = fmax(weight - bound, 0), slope = -2 * excess / (weight + LEAST);
    for (size_t i = 0; i < ray->count; i++) {
        if (!overlaps(&ray->bins[i], sample))
            continue;
        by_weight[i] += slope;
        slack[i] += 2 * fmin(REFERENCE_INTERLEVEL_ERROR / (weight + LEAST) + 2e-5, 1);
    }
    return excess * excess / (weight + LEAST);
}

/* How far a product is off whose factors may be off by so much. */
static double uncertain(double a, double b, double of_a, double of_b)
{
    return fabs(a) * of_b + fabs(b) * of_a + of_a * of_b;
}

double reference_interlevel(const struct reference_ray_bins *ray,
                            const struct reference_interval *samples, size_t count,
                            double *gradients, double *tolerances)
{
    double *weights = base_alloc(3 * ray->count, sizeof *weights);
    double *by_weight = weights + ray->count, *slack = by_weight + ray->count;
    double loss = 0, light = 1;
    for (size_t i = 0; i < ray->count; i++)
        weights[i] = take_light(&ray->bins[i], &light);
    light = 1;
    for (size_t k = 0; k < count; k++)
        loss += excess_loss(ray, weights, &samples[k], take_light(&samples[k], &light), by_weight,
                            slack);
    light = 1;
    for (size_t i = 0; gradients && i < ray->count; i++) {
        take_light(&ray->bins[i], &light);
        double by_thickness = light * by_weight[i];
        double error = uncertain(light, by_weight[i], REFERENCE_INTERLEVEL_ERROR, slack[i]);
        for (size_t k = i + 1; k < ray->count; k++) {
            by_thickness -= weights[k] * by_weight[k];
            error += uncertain(weights[k], by_weight[k], 1e-7, slack[k]);
        }
        gradients[i] = ray->bins[i].width * by_thickness;
        tolerances[i] = ray->bins[i].width * error;
    }
    free(weights);
    return loss;
}
