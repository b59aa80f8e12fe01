/* Declares the fixture of tests of single passes: it has every buffer of the training step,
 * initially poisoned, and runs one shader at a time. */
#ifndef CERTIFY_FIXTURE_H
#define CERTIFY_FIXTURE_H

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "certify/check.h"
#include "reference/reference.h"
#include "config/config.h"
#include "optim/optim.h"
#include "step/step.h"

/* Returns the next optimiser, and VKN_OPTIMIZER_DEFAULT after the last, for loops that begin and
 * end there. */
enum vkn_optimizer next_optimizer(enum vkn_optimizer kind);

/* Returns whether a CPU device runs GPU kernels, which compile slowly there: tests then skip what
 * does not depend on the kernels. */
bool has_slow_gpu_kernels(struct gpu_device *device);

/* Returns whether the device computes and stores f16. */
bool fixture_has_f16(struct gpu_device *device);

/* ---- random inputs ------------------------------------------------------------------------- */

struct random {
    uint64_t state;
};

/* splitmix64 (Steele, Lea and Flood 2014). */
uint32_t random_word(struct random *random);

uint32_t random_below(struct random *random, uint32_t limit);

double random_between(struct random *random, double low, double high);

/* The caller frees the result. */
float *random_floats(struct random *random, uint64_t count, double low, double high);

void random_direction(struct random *random, double direction[3]);

/* Returns a camera at `distance` from the cube's centre that looks roughly there, with any roll. */
struct scene_camera random_camera(struct random *random, uint32_t width, uint32_t height,
                                  double distance, bool distorted);

/* ---- the fixture --------------------------------------------------------------------------- */

#define FIXTURE_PIPELINES 24

struct fixture {
    struct gpu_device *device;
    struct vkn_config settings; /* effective */
    struct field_model model;
    struct field_backend backend;
    struct Config config; /* fixture_put() uploads changes */
    struct gpu_constants constants;
    uint32_t local_size, subgroup_size, output_capacity;
    bool bound; /* shaders without buffer addresses, see gpu_pipeline_create */
    struct gpu_arena *arena;
    struct gpu_buffer buffers[GPU_BINDINGS]; /* by binding; the largest size of all lists */
    struct gpu_bindings *bindings;
    char names[FIXTURE_PIPELINES][FIELD_SHADER_NAME];
    struct gpu_pipeline *pipelines[FIXTURE_PIPELINES];
};

void fixture_set_constant(struct fixture *fixture, uint32_t id, uint32_t value);

/* Computes model, backend and constants from effective settings. */
void fixture_set_up(struct fixture *fixture);

/* Resolves settings, model and constants; the test may change them before fixture_allocate().
 * Small, with an occupancy grid and without contraction unless the settings say otherwise. */
struct fixture fixture_configure(struct gpu_device *device, struct vkn_config settings);

bool fixture_contracts(const struct fixture *fixture);

void fixture_poison(struct fixture *fixture, uint32_t binding);

/* Uploads `size` bytes to the beginning of a buffer. */
void fixture_put(struct fixture *fixture, uint32_t binding, const void *data, uint64_t size);

void fixture_get(struct fixture *fixture, uint32_t binding, void *data, uint64_t size);

/* Downloads a whole buffer into memory that the caller frees. */
void *fixture_read(struct fixture *fixture, uint32_t binding);

/* Downloads the gradients that the optimiser reads, which the caller frees; the grid's are read
 * from f16 accumulators if the backend has them. */
float *fixture_read_gradients(struct fixture *fixture);

struct setup fixture_setup(const struct fixture *fixture);

/* Returns the counts that buffer sizes depend on. */
struct buffer_counts fixture_counts(const struct fixture *fixture, uint32_t cameras,
                                    uint64_t pixels);

/* Allocates and poisons every buffer, and uploads the configuration. */
void fixture_allocate(struct fixture *fixture, uint32_t cameras, uint64_t pixels);

/* Returns the fixture's pipeline of a pass, which is created at the first call. */
const struct gpu_pipeline *fixture_pipeline(struct fixture *fixture, const char *pass,
                                            enum field_variant variant);

/* Runs a shader once in `groups` workgroups. */
void fixture_run_variant(struct fixture *fixture, const char *pass, enum field_variant variant,
                         struct Push push, uint32_t groups);

void fixture_run(struct fixture *fixture, const char *pass, struct Push push, uint32_t groups);

/* Runs all iterations of a pass for a chunk of rows. */
void fixture_run_pass(struct fixture *fixture, const struct pass *pass, uint32_t chunk,
                      uint32_t groups);

/* Return the number of workgroups with an invocation, or a subgroup, per element. */
uint32_t fixture_groups(const struct fixture *fixture, uint32_t invocations);

uint32_t fixture_subgroups(const struct fixture *fixture, uint32_t rays);

void fixture_destroy(struct fixture *fixture);

/* ---- numbers ------------------------------------------------------------------------------- */

/* Returns the Euclidean norm of the difference over the norm of the expected values. */
double relative_error(const float *device, const double *expected, size_t count);

/* Copies floats into doubles. */
void widen_floats(const float *from, size_t count, double *to);

/* Compares two doubles for qsort(), in ascending order. */
int compare_doubles(const void *a, const void *b);

/* Returns a fixed-point sum of gradients. */
double gradient_sum(const struct ErrorCell *cell);

#endif
