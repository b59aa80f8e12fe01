/* Declares what the tests of begin_step share. */
#ifndef CERTIFY_BEGIN_STEP_H
#define CERTIFY_BEGIN_STEP_H

#include "certify/fixture.h"

#define NO_LIMIT UINT32_MAX

/* The state after a step in the middle of a training. */
extern const struct State begin_step_usual;

/* Returns a fixture with an occupancy grid of 64 cells a side. */
struct fixture begin_step_fixture(struct gpu_device *device, bool deterministic);

/* Runs begin_step as slot `slot` of an update interval; returns the state. */
struct State begin_step_run(struct fixture *fixture, struct State before, uint32_t slot,
                            uint32_t step_limit, float time_progress);

/* Checks the learning rate of a step. */
void begin_step_check_rate(struct fixture *fixture, uint32_t step, float time_progress);

/* Checks the scheduled loss scale of a step. */
void begin_step_check_scale(struct fixture *fixture, uint32_t step, double expected);

/* Checks the number of rays of the step after `before`, and its dispatches. */
void begin_step_check_rays(struct fixture *fixture, struct State before, uint32_t expected);

/* Checks that the step's passes are dispatched, or none of them. */
void begin_step_check_runs(const struct State *state, bool runs);

/* Checks that each pass has one invocation per item, as far as the device's limits and the buffer
 * of partial sums allow. */
void begin_step_check_dispatches(struct fixture *fixture, const struct State *state);

#endif
