/* vknerf/stepper.h: runs the passes of a training step as separate calls, for fields that the
 * caller evaluates and differentiates: samples along rays, compositing with loss and gradients, the
 * occupancy grid, rendering, Adam. The field is C code on arrays in host memory, or Vulkan work of
 * the caller on the same device (vknerf/vulkan.h). examples/voxel_field.c is a complete program;
 * docs/full_control.md compares the calls with NerfAcc's.
 *
 *     vkn_stepper_create(context, scene, config, &params, &stepper);
 *     for (step = 0; step < 1000; step++) {
 *         if (step % 16 == 0)
 *             vkn_stepper_update_grid(stepper, density, user);
 *         vkn_stepper_sample(stepper, &samples);
 *         ...    the caller writes rgb and density at samples->positions to samples->values
 *         vkn_stepper_composite(stepper, &composited);
 *         ...    the caller propagates composited->gradients to its parameters
 *         vkn_adam_step(adam, samples->learning_rate, NULL);
 *     }
 *
 * Units: positions are in training space (training = dataset * scene.scale + scene.offset), where
 * the scene is in the cube of side scene.aabb_scale around (0.5, 0.5, 0.5). Distances and widths
 * are in units of training space, densities in its inverse: optical thickness = density * width.
 * With scene.contraction=cube positions reach beyond the cube, and compositing uses contracted
 * widths. Colours are sRGB, 0..1.
 *
 * Threads and ownership: a stepper and its arrays belong to the thread that uses the context.
 * Arrays are owned by the library.
 *
 * Device memory: results of a call are written when the call returns; work of the caller that reads
 * them begins with a barrier from compute shaders and copies. Work whose results a call reads must
 * be submitted to the context's queue before the call; it may still be running, and needs no
 * barrier at its end if compute shaders or copies write the results. Buffers belong to the
 * context's queue family and are usable as storage buffers and for copies in both directions. */
#ifndef VKNERF_STEPPER_H
#define VKNERF_STEPPER_H

#include <vknerf/api.h>
#include <vknerf/config.h>
#include <vknerf/context.h>
#include <vknerf/renderer.h>
#include <vknerf/scene.h>

VKN_BEGIN_DECLARATIONS

/* A dense array in a buffer. */
struct vkn_array {
    void *data;      /* mapped host memory; NULL unless `host` was set */
    uint64_t buffer; /* VkBuffer */
    uint64_t offset; /* bytes from the start of `buffer` */
    uint64_t size;   /* capacity in bytes */
};

/* ---- steps ----------------------------------------------------------------------------------- */

/* Training images of a scene, rays through their pixels, and the occupancy grid. */
typedef struct vkn_stepper vkn_stepper;

/* Parameters of vkn_stepper_create. */
struct vkn_stepper_params {
    size_t size;
    bool host; /* arrays are in mapped host memory; else in device memory */
};

/* Samples along rays, or at positions without rays (`rays` is 0). Arrays up to `densities` have one
 * element per sample, in the order of rays and from near to far; arrays from `ranges` on have one
 * element per ray. Owned by the stepper. */
struct vkn_samples {
    uint32_t count; /* number of samples */
    uint32_t rays;  /* number of rays */
    /* By sample: */
    struct vkn_array positions;   /* float[3] */
    struct vkn_array directions;  /* float[3], unit length, away from the camera */
    struct vkn_array distances;   /* float, from the ray's origin to the centre of the sample */
    struct vkn_array widths;      /* float, length of the sample's interval around its centre */
    struct vkn_array times;       /* float, 0..1, of the camera in dynamic scenes; else 0 */
    struct vkn_array ray_indices; /* uint32_t */
    struct vkn_array values;      /* float[4], r, g, b, density: written by the caller */
    struct vkn_array densities;   /* float, written by the caller in vkn_density_fn */
    /* By ray: */
    struct vkn_array ranges;  /* uint32_t[2], first sample, number of samples */
    struct vkn_array targets; /* float[4], rgb times alpha, alpha of the pixel; 0 in rendering */
    struct vkn_array backgrounds; /* float[3], colour behind the samples and behind the pixel */
    /* uint32_t, number of the camera in its split; 0 in rendering. If images are streamed
     * (scene.image_budget), an arbitrary number of the image strip. */
    struct vkn_array views;
    /* uint32_t, 1, or 0 for rays whose pixel is masked or whose samples did not all fit, and in
     * rendering. */
    struct vkn_array in_loss;
    /* Set by vkn_stepper_sample only: */
    uint64_t step;         /* number of this step, from 1 */
    float learning_rate;   /* for this step, by the configuration's schedule */
    uint32_t rays_in_loss; /* number of rays whose in_loss is 1 */
};

/* Writes samples->densities at samples->positions (and times); negative densities count as zero.
 * Must not call the stepper. A status other than VKN_OK ends the calling function. */
typedef vkn_status vkn_density_fn(void *user, const struct vkn_samples *samples);
/* Writes samples->values. Must not call the stepper. A status other than VKN_OK ends the calling
 * function. */
typedef vkn_status vkn_field_fn(void *user, const struct vkn_samples *samples);

/* Result of compositing. The loss of a ray is loss.kind of (prediction - target), averaged over the
 * three channels, plus loss.distortion, with (Max 1995)
 *     weight     = transmittance * (1 - exp(-density * width))
 *     prediction = sum of weight * rgb + final transmittance * background
 *     target     = pixel + (1 - alpha) * background.
 * `loss` leaves out the loss of near density (loss.near_density); `gradients` include its gradient.
 */
struct vkn_composited {
    bool finite;       /* false: some value was not finite; all gradients are 0, skip the step */
    float loss;        /* sum over the rays in the loss / samples->rays */
    float mean_square; /* mean over the rays in the loss: PSNR = -10 log10(mean_square) */
    uint32_t live;     /* number of live samples, which precede their ray's early stop */
    uint64_t skipped;  /* number of steps so far that were not finite */
    struct vkn_array gradients; /* float[4] by sample: d loss / d rgb, density; 0 unless live */
    float distortion_loss;      /* the part of `loss` from distortion, weight included */
};

/* Creates a stepper and loads the training images. Until its first update the occupancy grid marks
 * as occupied the cells that training views see. Of `config` (NULL: all defaults) the
 * settings of scene, march, batch, loss, background and the optimiser's schedule are used, not
 * those of model and precision. VKN_BAD_INPUT for a march.sampling other than occupancy and
 * uniform. Deterministic: equal seeds give equal rays and samples. `params` may be NULL. Context
 * and scene may be destroyed before the stepper. The caller owns *stepper. */
VKN_API vkn_status vkn_stepper_create(vkn_context *context, vkn_scene *scene,
                                      const vkn_config *config,
                                      const struct vkn_stepper_params *params,
                                      vkn_stepper **stepper);
/* Destroys a stepper and sets *stepper to NULL; accepts NULL. */
VKN_API void vkn_stepper_destroy(vkn_stepper **stepper);
/* Returns the effective configuration, owned by the stepper; NULL for NULL. */
VKN_API const vkn_config *vkn_stepper_config(const vkn_stepper *stepper);

/* Begins a step: draws pixels of the training views, marches their rays by march.sampling and lists
 * the samples ray by ray. Chooses the number of rays, a multiple of 64, for about batch.samples
 * live samples, by the live samples per ray of the previous step (all samples, if it was not
 * composited). *samples and its arrays are valid until the next vkn_stepper_sample or
 * vkn_stepper_update_grid. VKN_BAD_INPUT after config.steps steps, if that is set. */
VKN_API vkn_status vkn_stepper_sample(vkn_stepper *stepper, const struct vkn_samples **samples);

/* Rays of the caller's, with or without samples. All arrays are the caller's, in host memory and C
 * order, and are copied. Positions and distances are in training space, as those of samples. */
struct vkn_stepper_rays {
    size_t size;
    uint32_t count;          /* number of rays, from 1 to as many as the arrays by ray hold */
    const float *origins;    /* [count][3] */
    const float *directions; /* [count][3], of any length but 0; distances are not in this length */
    /* [count], distances between which samples are placed, 0 <= nearest <= farthest; NULL: as for
     * rays of cameras. Not used with t_starts. */
    const float *nearest, *farthest;
    const float *times;       /* [count], 0..1; NULL: 0 */
    const float *targets;     /* [count][4], rgb times alpha, alpha; NULL: 0 */
    const float *backgrounds; /* [count][3]; NULL: 0 */
    const float *weights;     /* [count], factor of the ray's loss, at least 0; NULL: 1 */
    uint32_t sample_count;    /* number of samples, at most as many as the arrays by sample hold */
    /* [sample_count], begin of each sample, 0 or more, increasing along a ray. NULL: samples are
     * placed by march.sampling, the first half a step behind the ray's begin. */
    const float *t_starts;
    const float *t_ends;    /* [sample_count], end of each sample, at least its begin */
    const uint32_t *ranges; /* [count][2], as NerfAcc's packed info: first sample, where the ray
                               before ends, and number of samples */
};

/* Begins a step as vkn_stepper_sample does, but with the caller's rays. vkn_stepper_composite then
 * weighs their losses: `loss` is the sum of weight times loss / number of rays. The next
 * vkn_stepper_sample chooses the number of its rays by this step's. VKN_BAD_INPUT names the wrong
 * member and element; the step has not begun then. */
VKN_API vkn_status vkn_stepper_sample_rays(vkn_stepper *stepper,
                                           const struct vkn_stepper_rays *rays,
                                           const struct vkn_samples **samples);

/* Sets the factor of all gradients of later calls of vkn_stepper_composite, 2^-24 to 2^24, 1 at
 * first: for fields that compute in 16 bits. The caller divides by it before vkn_adam_step. `loss`
 * is not scaled. */
VKN_API vkn_status vkn_stepper_set_loss_scale(vkn_stepper *stepper, float scale);

/* Composites the samples of vkn_stepper_sample or vkn_stepper_sample_rays with samples->values, at
 * most once per vkn_stepper_sample and before vkn_stepper_update_grid: VKN_BAD_INPUT otherwise.
 * *composited is valid until the next vkn_stepper_composite. Values that are not finite are not an
 * error: see `finite`. */
VKN_API vkn_status vkn_stepper_composite(vkn_stepper *stepper,
                                         const struct vkn_composited **composited);

/* Updates the occupancy grid as instant-ngp does; to be called every 16 steps. Values decay by
 * march.occupancy_decay. Evaluated cells are raised to density * smallest step at a random position
 * in the cell: all cells in the first 256 steps, later a quarter of all cells and as many drawn
 * from the occupied ones. A cell is occupied if its value is above march.occupancy_threshold or
 * above the mean, whichever is lower. Calls `density` several times; densities that are not finite
 * count as 0, with a warning. If `density` fails, returns its status with a partly updated grid.
 * Invalidates the samples of vkn_stepper_sample. VKN_BAD_INPUT with march.sampling=uniform, which
 * has no grid. */
VKN_API vkn_status vkn_stepper_update_grid(vkn_stepper *stepper, vkn_density_fn *density,
                                           void *user);

/* Reads and replaces the occupancy grid, as vkn_trainer_occupancy and vkn_trainer_set_occupancy do.
 * Replacing invalidates the samples of the step. */
VKN_API vkn_status vkn_stepper_occupancy(vkn_stepper *stepper, struct vkn_occupancy *grid);
VKN_API vkn_status vkn_stepper_set_occupancy(vkn_stepper *stepper,
                                             const struct vkn_occupancy *grid);

/* Renders an image as vkn_render does. Calls `field` for batches of rays with a few samples each,
 * in separate arrays: the samples of vkn_stepper_sample stay valid. `params` may be NULL. The
 * caller frees *picture with vkn_picture_free. vkn_scene_camera returns the views of the scene,
 * vkn_scene_image their photographs, vkn_psnr the difference. VKN_BAD_INPUT names the wrong member
 * of the camera or `params`. If `field` fails, returns its status. */
VKN_API vkn_status vkn_stepper_render(vkn_stepper *stepper, const struct vkn_camera *camera,
                                      const struct vkn_picture_params *params, vkn_field_fn *field,
                                      void *user, struct vkn_picture **picture);

/* ---- Adam ------------------------------------------------------------------------------------ */

/* Adam (Kingma and Ba 2015) with f32 parameters and moments, and a step count per entry. */
typedef struct vkn_adam vkn_adam;

/* Parameters of vkn_adam_create. */
struct vkn_adam_params {
    size_t size;
    uint32_t count;      /* number of parameters, a multiple of `entry` */
    uint32_t entry;      /* consecutive parameters that share a step count, at most 32; 0: 1 */
    bool sparse;         /* entries whose gradients are all 0 are skipped, with their moments */
    bool host;           /* arrays are in mapped host memory; else in device memory */
    float learning_rate; /* 0: 1e-2 */
    float beta1, beta2;  /* 0: 0.9 and 0.99 */
    float epsilon;       /* 0: 1e-15 */
    float weight_decay;  /* L2: weight_decay * parameter is added to the gradient */
    float clip_norm;     /* maximum norm of all gradients; 0: no clipping */
};

/* Result of vkn_adam_step. */
struct vkn_adam_result {
    size_t size;
    bool finite; /* false: a gradient was not finite; gradients are cleared, the step is skipped */
    float norm;  /* of all gradients, before clipping */
    uint64_t steps;   /* number of steps so far, without skipped ones */
    uint64_t skipped; /* number of skipped steps so far */
};

/* Creates an optimiser; parameters and gradients are zeros. VKN_BAD_INPUT names the member that is
 * out of range. The context may be destroyed before *adam. The caller owns *adam. */
VKN_API vkn_status vkn_adam_create(vkn_context *context, const struct vkn_adam_params *params,
                                   vkn_adam **adam);
/* Destroys an optimiser and sets *adam to NULL; accepts NULL. */
VKN_API void vkn_adam_destroy(vkn_adam **adam);
/* Returns the parameters, float[count], which the caller may read and write as long as *adam
 * exists; NULL for NULL. */
VKN_API const struct vkn_array *vkn_adam_parameters(const vkn_adam *adam);
/* Returns the gradients, float[count], to which the caller adds; NULL for NULL. */
VKN_API const struct vkn_array *vkn_adam_gradients(const vkn_adam *adam);
/* Takes one step with the gradients, then sets the gradients to 0. `learning_rate` 0: that of
 * `params`. `result` may be NULL. */
VKN_API vkn_status vkn_adam_step(vkn_adam *adam, float learning_rate,
                                 struct vkn_adam_result *result);

VKN_END_DECLARATIONS

#endif
