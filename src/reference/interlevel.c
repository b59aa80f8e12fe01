/* Reference interlevel loss of a proposal (Mip-NeRF 360, Barron et al. 2022, equations 12 and 13),
 * by its definition: every sample is compared with every bin. */
#include "reference/reference.h"

#include <math.h>
#include <stdlib.h>

#define EPSILON 1e-7

/* Returns an interval's weight; *transmittance becomes that behind the interval. */
static double weight_of(const struct reference_interval *interval, double *transmittance)
{
    double before = *transmittance;
    *transmittance = before * exp(-interval->density * interval->width);
    return -before * expm1(-interval->density * interval->width);
}

static bool overlaps(const struct reference_interval *a, const struct reference_interval *b)
{
    return a->begin < b->end && a->end > b->begin;
}

/* Adds a sample's loss, and the derivatives by the weights of the bins that it overlaps. `slack`:
 * error of a derivative whose weights are computed in single precision. */
static double excess_loss(const struct reference_ray_bins *ray, const double *weights,
                          const struct reference_interval *sample, double weight, double *by_weight,
                          double *slack)
{
    double bound = 0;
    for (size_t i = 0; i < ray->count; i++)
        bound += overlaps(&ray->bins[i], sample) ? weights[i] : 0;
    double excess = fmax(weight - bound, 0), slope = -2 * excess / (weight + EPSILON);
    for (size_t i = 0; i < ray->count; i++) {
        if (!overlaps(&ray->bins[i], sample))
            continue;
        by_weight[i] += slope;
        slack[i] += 2 * fmin(REFERENCE_INTERLEVEL_ERROR / (weight + EPSILON) + 2e-5, 1);
    }
    return excess * excess / (weight + EPSILON);
}

/* Error of a product whose factors have errors of_a and of_b. */
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
    double loss = 0, transmittance = 1;
    for (size_t i = 0; i < ray->count; i++)
        weights[i] = weight_of(&ray->bins[i], &transmittance);
    transmittance = 1;
    for (size_t k = 0; k < count; k++)
        loss += excess_loss(ray, weights, &samples[k], weight_of(&samples[k], &transmittance),
                            by_weight, slack);
    transmittance = 1;
    for (size_t i = 0; gradients && i < ray->count; i++) {
        weight_of(&ray->bins[i], &transmittance);
        double by_thickness = transmittance * by_weight[i];
        double error = uncertain(transmittance, by_weight[i], REFERENCE_INTERLEVEL_ERROR, slack[i]);
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
