/* Declares what the tests of update_weights and update_average share. */
#ifndef CERTIFY_WEIGHTS_H
#define CERTIFY_WEIGHTS_H

#include "certify/fixture.h"

/* Returns a fixture with an optimiser, `features` features per level and a kind of gradient sums;
 * the hash grid's parameters decay by `grid_decay`. */
struct fixture weights_fixture_decaying(struct gpu_device *device, enum vkn_optimizer kind,
                                        uint32_t features, enum vkn_gradient_sums sums,
                                        float grid_decay);

/* Returns the same without a decay of the hash grid. */
struct fixture weights_fixture(struct gpu_device *device, enum vkn_optimizer kind,
                               uint32_t features, enum vkn_gradient_sums sums);

/* Makes the fixture store both moments in one word. */
void weights_pack_moments(struct fixture *fixture);

/* Makes parameter groups that differ in all properties. */
struct fixture weights_fixture_of_groups(struct gpu_device *device, enum vkn_optimizer kind);

/* Parameters and what the optimiser keeps of each. */
struct weights {
    float *params, *gradients, *moment1, *moment2;
    uint32_t *counts;
    uint16_t *f16_copy; /* results only */
};

/* Makes random weights, with moments that are exact in the fixture's storage type: half of the
 * entries have no gradient, some others only in part of their parameters. */
struct weights weights_create(const struct fixture *fixture, uint32_t seed);

/* Frees the arrays. */
void weights_destroy(struct weights *w);

/* Runs update_weights; the caller destroys the result. */
struct weights weights_update(struct fixture *fixture, const struct weights *w, struct State state);

/* Runs update_weights on random weights, and checks all of them and their f16 copies. */
void weights_check_update(struct fixture *fixture, bool half, float epsilon, uint32_t seed);

/* Checks a model's groups: the MLPs, not sparse and with weight decay, and the grid, which is
 * sparse unless it decays. */
void weights_check_model(const struct fixture *fixture, uint32_t features);

/* Checks that a poisoned f16 copy was not written. */
void weights_check_no_copy(uint16_t bits, uint32_t i);

#endif
