/* Declares what the tests of field passes share: models, random inputs, and comparisons with the
 * reference. */
#ifndef CERTIFY_FIELD_H
#define CERTIFY_FIELD_H

#include "certify/backends.h"

/* Shapes for tests where widths do not matter; they compile in a tenth of the default's time. */
extern const struct shape field_narrow, field_four_features;

/* ---- inputs (field_inputs.c) ----------------------------------------------------------------- */

/* Random rays with samples, parameters, and gradients by the samples' values. */
struct inputs {
    struct Ray *rays;
    struct Sample *samples;
    float *params;
    uint32_t ray_count, sample_count;
    double (*positions)[3];
    double (*gradients)[4]; /* by rgb and density */
    float (*field)[4];      /* the same for the device */
    uint32_t *live;         /* samples with a gradient, in random order */
    uint32_t live_count;
};

/* Returns a fixture for a model of the given shape. A shape without a colour MLP is a proposal's.
 */
struct fixture field_fixture(struct gpu_device *device, const struct backend_case *backend,
                             const struct shape *shape, enum vkn_gradient_sums sums);

/* Returns whether a field has a colour MLP; a proposal's has densities only. */
bool field_is_colored(const struct fixture *fixture);

/* Returns the relative error that gradients may have. */
double field_backward_tolerance(const struct fixture *fixture);

/* Returns the error that values of samples may have. */
double field_forward_tolerance(const struct fixture *fixture);

/* Makes random rays, samples, parameters and gradients; `steepness` scales the logarithm of the
 * density. With `along_rays` neighbouring samples are on one ray. */
struct inputs field_inputs_of_steepness(const struct fixture *fixture, uint32_t samples,
                                        bool along_rays, float steepness, uint32_t seed);

/* The same with a steepness of 1. */
struct inputs field_inputs_create(const struct fixture *fixture, uint32_t samples, bool along_rays,
                                  uint32_t seed);

/* Frees the arrays. */
void field_inputs_destroy(struct inputs *inputs);

/* Uploads the state of a step, rays, samples and parameters. */
void field_put_samples(struct fixture *fixture, const struct inputs *inputs);

/* ---- passes (field_passes.c) ----------------------------------------------------------------- */

/* Runs the forward passes in `groups` workgroups. */
void field_run_forward(struct fixture *fixture, uint32_t groups);

/* Checks the device's values of all samples. */
void field_check_forward(struct fixture *fixture, const struct inputs *inputs,
                         const float (*device)[4]);

/* Runs and checks the forward passes: in few workgroups and many, with densities first, and without
 * samples. */
void field_check_forwards(struct fixture *fixture, const struct inputs *inputs);

/* Runs the backward passes; they leave gradient sums as in a training step. */
void field_run_backward(struct fixture *fixture, const struct inputs *inputs, uint32_t groups);

/* Returns the gradients of a field's parameters, which the caller frees. */
double *field_sum_gradients(const struct fixture *fixture, const struct inputs *inputs,
                            const struct reference_field *field);

/* Returns the gradients of the reference's parameters, which the caller frees. */
double *field_expected_gradients(const struct fixture *fixture, const struct inputs *inputs);

/* Checks `count` gradients from `first` on, of a layer or level. */
void field_check_part(const char *what, uint32_t index, const float *device, const double *expected,
                      uint32_t first, uint32_t count, double tolerance);

/* Runs the backward passes and compares their sums with the reference. */
void field_check_summed(struct fixture *fixture, const struct inputs *inputs, uint32_t groups,
                        const double *expected);

/* Runs and checks the backward passes in few workgroups and one. */
void field_check_backwards(struct fixture *fixture, const struct inputs *inputs);

/* Returns whether other tests cover a case on CPU devices, where lavapipe compiles it longest:
 * matrices in test_rounded and test_backward_repeats; f16 in test_sums, with weights through
 * bindings in test_tuned; with GPU kernels f16 rows in memory in test_f32_products. */
bool field_is_covered_elsewhere(struct gpu_device *device, const struct backend_case *backend);

/* ---- tests (field_rounding.c) ---------------------------------------------------------------- */

/* Tests of sums and activations that are rounded, and of f32 products of f16 numbers. */
void field_test_rounded(struct gpu_device *device);
void field_test_bf16(struct gpu_device *device);
void field_test_f32_products(struct gpu_device *device);

#endif
