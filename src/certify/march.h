/* Declares what the tests of sampling rays share: random rays in a random occupancy grid, and the
 * comparison of a march with one without skipping. */
#ifndef CERTIFY_MARCH_H
#define CERTIFY_MARCH_H

#include "certify/coarse.h"

#define MOST_STEPS 8192u /* of a ray */

/* Cubes and contracted space, with and without a cone; the last one with time bins. */
extern const struct scenario march_scenarios[8];

/* Makes a fixture with `samples` per ray in bins, and `fine` more for hierarchical sampling. */
struct fixture march_fixture_hierarchical(struct gpu_device *device,
                                          const struct scenario *scenario, uint32_t samples,
                                          uint32_t fine, struct inputs *inputs, uint32_t seed);

/* Makes a fixture with `samples` per ray for uniform sampling; 0: samples by the occupancy grid. */
struct fixture march_fixture_sampling(struct gpu_device *device, const struct scenario *scenario,
                                      uint32_t samples, struct inputs *inputs, uint32_t seed);

/* Makes a fixture for samples by the occupancy grid. */
struct fixture march_fixture(struct gpu_device *device, const struct scenario *scenario,
                             struct inputs *inputs, uint32_t seed);

/* Uploads the occupancy grid's bits. */
void march_put_grid(struct fixture *fixture, const struct inputs *inputs);

/* Counts of steps of all rays. */
struct tally {
    uint64_t steps, either, occupied;
};

/* Checks that the `count` samples at distances `t` are the first occupied steps, at most `most`. */
void march_check_ray(const struct inputs *inputs, uint32_t r, const double *t, uint32_t count,
                     uint32_t most, struct tally *tally);

/* Checks that a sample's width is that of its step. */
void march_check_width(const struct inputs *inputs, const struct Sample *sample);

/* Checks the samples of all rays whose samples fitted, and that rays share none. */
struct tally march_check_samples(struct fixture *fixture, const struct inputs *inputs,
                                 const struct RayResult *results, const struct Sample *samples);

/* Marches in ray order, as the deterministic mode does. */
void march_run_ordered(struct fixture *fixture, const struct inputs *inputs);

/* Checks that marching in ray order gives the same samples, ray after ray. */
void march_check_ordered(struct fixture *fixture, const struct inputs *inputs,
                         const struct RayResult *results, const struct Sample *samples);

/* Tests of samples in bins (march_bins.c): uniform ones, and hierarchical ones. */
void march_test_uniform(struct gpu_device *device);
void march_test_uniform_view(struct gpu_device *device);
void march_test_hierarchical(struct gpu_device *device);
void march_test_draws(struct gpu_device *device);
void march_test_hierarchical_view(struct gpu_device *device);

#endif
