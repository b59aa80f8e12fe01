/* Declares what the tests of reduce_gradients, check_gradients and finish_step share. */
#ifndef CERTIFY_OPTIM_H
#define CERTIFY_OPTIM_H

#include "certify/fixture.h"

/* Returns a fixture with seven workgroups of partial sums, and `features` features per level. */
struct fixture optim_fixture_of_sums(struct gpu_device *device, uint32_t features,
                                     enum vkn_gradient_sums sums);

/* Returns the same with the device's own gradient sums. */
struct fixture optim_fixture(struct gpu_device *device, uint32_t features);

/* Uploads the state. */
void optim_put_state(struct fixture *fixture, struct State state);

/* The state of a step in the middle of a training. */
extern const struct State optim_usual;

/* Runs the pass on these gradients, with `losses` partial sums of loss (1) and squared error (2);
 * returns the state. */
struct State optim_run_checks(struct fixture *fixture, const float *gradients, struct State before,
                              uint32_t losses);

/* Runs the pass on partial sums of loss, squared error and distortion loss. */
struct State optim_run_losses(struct fixture *fixture, struct State before, const float sums[3]);

/* Checks loss scale, gradient norm and clipping after the pass. */
void optim_check_state(const struct fixture *fixture, const struct State *before,
                       const struct State *after, double norm);

/* Checks that only the step's entry of the ring is written. */
void optim_check_stats(struct fixture *fixture, const struct State *before,
                       const struct State *after, uint32_t losses);

/* Runs finish_step, and checks that it leaves in all buffers what reduce_gradients, check_gradients
 * and begin_step leave. last: the last partial sum. */
void optim_check_finish(struct gpu_device *device, enum vkn_gradient_sums sums, float last);

/* Runs good (g) and bad (b) steps, and good ones in which more than 1 % of the gradients underflow
 * (u), from `start`; returns the state, in which both sides agree. */
struct State optim_run_steps(struct fixture *fixture, struct State start, const char *steps);

/* Runs steps from a scale of 1024; checks the scale and the number of tolerated overflows after
 * them. */
void optim_check_scale(struct fixture *fixture, const char *steps, double scale,
                       uint32_t tolerated);

/* Runs steps from a scale of 1024; checks the scale and the numbers of back-offs and rate cuts
 * after them. */
void optim_check_backoffs(struct fixture *fixture, const char *steps, uint32_t backoffs,
                          uint32_t cuts, double scale);

#endif
