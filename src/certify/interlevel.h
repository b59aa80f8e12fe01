/* Declares what the tests of the proposal's loss share: rays with bins and samples, and the
 * expected result. */
#ifndef CERTIFY_INTERLEVEL_H
#define CERTIFY_INTERLEVEL_H

#include "certify/fixture.h"

#define LOSS_SCALE 64.0
#define WEIGHT     0.7 /* of the loss */

/* Every ray has `bins` bins and `fine` samples. */
struct inputs {
    uint32_t ray_count, bins, fine;
    struct reference_space space;
    struct reference_stepping stepping;
    struct Ray *rays;
    double (*spans)[2];                                  /* in steps */
    struct RayResult *results, *fine_results;            /* of bins and of samples */
    struct Sample *samples, *fine_samples;               /* one sample in each bin */
    float (*field)[4], (*fine_field)[4];                 /* colours are not read */
    struct reference_interval *expected, *fine_expected; /* bins and samples in double precision */
};

/* The expected result of the pass. */
struct outcome {
    double loss;        /* sum over the rays */
    double slack;       /* tolerance of the loss */
    double *gradients;  /* by each bin's density */
    double *tolerances; /* of each gradient */
};

/* Makes rays of all kinds: some have no samples, some only bins. */
struct inputs interlevel_inputs_create(const struct fixture *fixture, uint32_t rays, uint32_t seed);

/* Frees the arrays. */
void interlevel_inputs_destroy(struct inputs *inputs);

/* Returns the distance at a position of a ray, in bins. */
double interlevel_distance_at(const struct inputs *inputs, uint32_t r, double position);

/* Makes a bin or sample of the given optical thickness, for the device and for the reference. */
void interlevel_put_sample(const struct inputs *inputs, uint32_t r, double t, double width,
                           double thickness, struct Sample *sample, float field[4],
                           struct reference_interval *interval);

/* Returns the bins of a ray for the reference. */
struct reference_ray_bins interlevel_bins_of(const struct inputs *inputs, uint32_t r);

/* Computes the expected result in double precision; the caller destroys it. */
struct outcome interlevel_expect(const struct inputs *inputs);

/* Frees the arrays. */
void interlevel_outcome_destroy(struct outcome *outcome);

#endif
