/* Declares what the tests of composite share: random rays with samples, and the expected result of
 * a training step on them. */
#ifndef CERTIFY_COMPOSITE_H
#define CERTIFY_COMPOSITE_H

#include "certify/fixture.h"

/* ---- inputs (composite_inputs.c) ------------------------------------------------------------- */

/* The occupancy grid's threshold, as an alpha threshold. */
#define THRESHOLD 0.007f

/* Random rays with consecutive samples of random field values. */
struct inputs {
    uint32_t ray_count, sample_count;
    uint32_t step;
    double threshold;  /* of the occupancy grid */
    struct State keep; /* keep_gain and mean_loss */
    uint32_t which;    /* COMPOSITE_* */
    struct Ray *rays;
    struct RayResult *results;
    struct Sample *samples;
    float (*field)[4];
    struct reference_sample *expected; /* the samples in double precision */
};

/* Returns a fixture for rays in a cube of side `aabb_scale`, or in contracted space. */
struct fixture composite_fixture_of_curve(struct gpu_device *device, enum vkn_loss loss,
                                          bool deterministic, uint32_t aabb_scale, bool contracted,
                                          enum vkn_distortion_curve curve);

/* The same with the linear distortion loss. */
struct fixture composite_fixture(struct gpu_device *device, enum vkn_loss loss, bool deterministic,
                                 uint32_t aabb_scale, bool contracted);

/* Makes transparent, mixed and opaque rays; some have no samples. */
struct inputs composite_inputs_create(const struct fixture *fixture, uint32_t rays, uint32_t seed);

/* Frees the arrays. */
void composite_inputs_destroy(struct inputs *inputs);

/* Uploads rays, results, samples and field values. */
void composite_put_inputs(struct fixture *fixture, const struct inputs *inputs);

/* Moves opacities away from the threshold, so that rounding does not decide. */
void composite_avoid_threshold(struct inputs *inputs);

/* Returns the state of a ray before its first sample, with the alpha threshold of the step. */
struct reference_ray composite_ray_start(const struct fixture *fixture,
                                         const struct inputs *inputs);

/* Tests samples against an alpha threshold. Call before the first pipeline is created. */
void composite_set_alpha_threshold(struct fixture *fixture);

/* Adds the distortion loss; with a weight of 0 it has no effect. Call before the first pipeline is
 * created. */
void composite_set_distortion(struct fixture *fixture, float weight);

/* Adds the losses of density near the camera and in front of the sky, which every third pixel may
 * show. Call before the first pipeline is created. */
void composite_set_density_losses(struct fixture *fixture, struct inputs *inputs, float weight,
                                  float range);

/* Adds the loss of known depths. Most rays know a distance: of a sample, or of none. Call before
 * the first pipeline is created. */
void composite_set_known_depth(struct fixture *fixture, struct inputs *inputs, float weight);

/* Drops rays by their losses, and sets the share of kept samples and the number of the first ray.
 * Call before the first pipeline is created. */
void composite_set_keep(struct fixture *fixture, struct inputs *inputs, float share);

/* ---- a training step (composite_training.c) -------------------------------------------------- */

#define LOSS_SCALE 64.0

/* The expected result of one training step on the rays. */
struct outcome {
    double loss, square, distortion; /* sums over the rays */
    uint32_t live_rays, live_count, kept_rays, reached_count;
    double (*gradients)[4]; /* [sample][rgb, density]; 0 for samples that are not live */
    double *scale;          /* magnitude of each sample's gradients, for tolerances */
    bool *live;
};

/* Computes the expected result in double precision; the caller destroys it. */
struct outcome composite_expect(const struct fixture *fixture, const struct inputs *inputs);

/* Frees the arrays. */
void composite_outcome_destroy(struct outcome *outcome);

/* Runs composite, after find_visible if the fixture has SPEC_VISIBILITY, and checks its result. */
void composite_check_training(struct fixture *fixture, const struct inputs *inputs,
                              bool deterministic);

/* Runs composite once; returns its gradients, which the caller frees, and the losses of colours and
 * of distortion. */
float *composite_run(struct fixture *fixture, const struct inputs *inputs, uint32_t which,
                     double losses[2]);

/* ---- tests ----------------------------------------------------------------------------------- */

/* Tests that drop rays by their losses (composite_keep.c). */
void composite_test_keep(struct gpu_device *device);
void composite_test_keep_is_unbiased(struct gpu_device *device);

/* Tests of rendering (composite_view.c). */
void composite_test_view_rounds(struct gpu_device *device);
void composite_test_surfaces(struct gpu_device *device);
void composite_test_surface_by_hand(struct gpu_device *device);

/* Tests of the numeric policy (composite_view.c). */
void composite_test_rounded_view(struct gpu_device *device);
void composite_test_rounded_distortion(struct gpu_device *device);
void composite_test_rounded_fog(struct gpu_device *device);

#endif
