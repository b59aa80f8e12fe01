/* vknerf/stepper.h: the trainer taken apart, for fields that the caller evaluates and
 * differentiates: samples along rays, compositing with loss and gradients, the occupancy grid,
 * pictures, Adam. The field is plain C on arrays in host memory, or Vulkan work of the caller's own
 * on the same device (vknerf/vulkan.h). examples/voxel_field.c is a whole program;
 * docs/full_control.md has the calls beside NerfAcc's.
 *
 *     vkn_stepper_create(context, scene, config, &params, &stepper);
 *     for (step = 0; step < 1000; step++) {
 *         if (step % 16 == 0)
 *             vkn_stepper_update_grid(stepper, density, user);
 *         vkn_stepper_sample(stepper, &samples);
 *         ...                           samples->values, rgb and density at samples->positions: the caller's
 *         vkn_stepper_composite(stepper, &composited);
 *         ...                           composited->gradients to gradients of its parameters: the caller's
 *         vkn_adam_step(adam, samples->learning_rate, NULL);
 *     }
 *
 * Positions are in training space: the scene is in the cube of side scene.aabb_scale around (0.5,
 * 0.5, 0.5) (training = dataset * scene.scale + scene.offset). Distances and widths have its unit,
 * densities its inverse: optical thickness = density * width. With scene.contraction=cube positions
 * reach beyond the cube, and widths count in compositing by what they come to once contracted.
 * Colours are sRGB, 0..1.
 *
 * A stepper and what came from it are for the thread that uses the context. Arrays are the
 * library's.
 *
 * In device memory: what a call wrote is there when it returns; work of the caller's that reads it
 * begins with a barrier for that, from compute programs and copies. Work whose results a call shall
 * read has to be submitted to the context's queue before; it may still run, and needs no barrier at
 * its end if compute programs or copies write them. Buffers belong to the context's queue family,
 * and may be storage buffers and both ends of copies. */
#ifndef VKNERF_STEPPER_H
#define VKNERF_STEPPER_H

#include <vknerf/api.h>
#include <vknerf/config.h>
#include <vknerf/context.h>
#include <vknerf/renderer.h>
#include <vknerf/scene.h>

VKN_BEGIN_DECLARATIONS

/* An array, without gaps between its elements. */
struct vkn_array {
    void *data;      /* in host memory; NULL unless `host` was asked for */
    uint64_t buffer; /* VkBuffer */
    uint64_t offset; /* bytes from its begin */
    uint64_t size;   /* bytes; of the elements that there is room for */
};

/* ---- steps ----------------------------------------------------------------------------------- */

/* A scene's training images, rays through them, and the occupancy grid. */
typedef struct vkn_stepper vkn_stepper;

/* Of vkn_stepper_create. */
struct vkn_stepper_params {
    size_t size;
    bool host; /* arrays are in host memory, mapped; else in the device's */
};

/* Samples along rays, or at places of their own (`rays` 0). Arrays have an element for each sample;
 * from `ranges` on for each ray, whose samples lie together, from near to far. From `step` on it is
 * of vkn_stepper_sample alone. Owned by the stepper. */
struct vkn_samples {
    uint32_t count;              /* samples */
    uint32_t rays;               /* that they are of */
    struct vkn_array positions;  /* float[3]: xyz */
    struct vkn_array directions; /* float[3]: unit length, away from the camera */
    struct vkn_array distances;  /* float: along the ray, of the sample's middle */
    struct vkn_array widths; /* float: length of the ray that it stands for, half of it to each side
                              */
    struct vkn_array times;  /* float: 0..1, of the camera in scenes that move; else 0 */
    struct vkn_array ray_indices; /* uint32_t: its ray */
    struct vkn_array values;      /* float[4]: r, g, b, density; the caller's to fill */
    struct vkn_array densities;   /* float: the caller's to fill, for vkn_density_fn alone */
    struct vkn_array ranges;      /* uint32_t[2]: first sample, number of samples */
    struct vkn_array targets; /* float[4]: the pixel, rgb times alpha, then alpha; 0 in pictures */
    struct vkn_array backgrounds; /* float[3]: what is behind the samples, and behind the pixel */
    struct vkn_array views;   /* uint32_t: the camera's number in its split; of pictures 0. Where
                                 images come   and go (scene.image_budget) any number for each piece
                                 that is there */
    struct vkn_array in_loss; /* uint32_t: 1, or 0 for rays whose pixel is masked or whose samples
                                 did not all fit; of pictures 0 */
    uint64_t step;            /* that begins, from 1 */
    float learning_rate;      /* that the configuration's schedule has for it */
    uint32_t rays_in_loss;    /* how many have in_loss 1 */
};

/* Fills samples->densities of the places samples->positions (and times); negative ones count as
 * zero. */
typedef vkn_status vkn_density_fn(void *user, const struct vkn_samples *samples);
/* Fills samples->values. Neither calls the stepper, and what is not VKN_OK ends the call that asks.
 */
typedef vkn_status vkn_field_fn(void *user, const struct vkn_samples *samples);

/* What compositing comes to. Sums and gradients are of the loss of loss.kind, the mean over the
 * three channels of prediction - target, where prediction = sum of weight * rgb + transmittance *
 * background, weight = transmittance * (1 - exp(-density * width)) (Max 1995), target = pixel + (1
 * - alpha) * background; and of loss.distortion. */
struct vkn_composited {
    bool finite;      /* else a value was not, and the step is to be skipped: all gradients are 0 */
    float loss;       /* sum over the rays in the loss / samples->rays: what the gradients are of */
    float mean_square;     /* mean squared error of the rays in the loss: PSNR = -10 log10(square) */
    uint32_t live;    /* samples that light reached */
    uint64_t skipped; /* steps so far that were not finite */
    struct vkn_array gradients; /* float[4] by sample: d loss / d r, g, b, density; 0 where it is
                                   not live */
};

/* Loads the training images and finds the cells of the occupancy grid that training views see; all
 * of these count as occupied until the first update. `config` may be NULL: all defaults; its
 * settings of scene, march, batch, loss, background and optimizer's schedule are used, those of
 * models and precision have no meaning here. march.sampling: occupancy or uniform, VKN_BAD_INPUT
 * for others. Deterministic: a seed gives the same rays and samples every time. `params` may be
 * NULL. Context and scene may be given back before the stepper. */
VKN_API vkn_status vkn_stepper_create(vkn_context *context, vkn_scene *scene,
                                      const vkn_config *config,
                                      const struct vkn_stepper_params *params,
                                      vkn_stepper **stepper);
/* Nulls *stepper, and takes NULL. */
VKN_API void vkn_stepper_destroy(vkn_stepper **stepper);
/* The effective configuration. Owned by the stepper; NULL for NULL. */
VKN_API const vkn_config *vkn_stepper_config(const vkn_stepper *stepper);

/* Begins a step: draws pixels of the training views, marches their rays through occupied cells (or
 * evenly, march.sampling) and lists the samples, ray after ray. As many rays as give about
 * batch.samples live samples, going by the step before; of all its samples, where these were not
 * composited. *samples is there, and what its arrays hold, until the next vkn_stepper_sample or
 * vkn_stepper_update_grid. VKN_BAD_INPUT once as many steps are taken as config.steps says; without
 * it there is no end. */
VKN_API vkn_status vkn_stepper_sample(vkn_stepper *stepper, const struct vkn_samples **samples);

/* Composites the samples of vkn_stepper_sample with samples->values. VKN_BAD_INPUT where there are
 * none: after each vkn_stepper_sample once, and no vkn_stepper_update_grid between. *composited is
 * there until the next vkn_stepper_composite. Values that are not finite are no failure: see
 * `finite`. */
VKN_API vkn_status vkn_stepper_composite(vkn_stepper *stepper,
                                         const struct vkn_composited **composited);

/* Updates the occupancy grid as instant-ngp does, once every 16 steps: values decay by
 * march.occupancy_decay and are raised to density * smallest step where `density` is asked: at a
 * random place in each cell during the first 256 steps, later in a quarter of all and a quarter
 * that is occupied. Occupied is what is above march.occupancy_threshold or the mean. Asks several
 * times. Densities that are not finite are taken for 0, with a warning. Ends with the status of
 * `density` where that fails; the grid is then updated in part. The samples of vkn_stepper_sample
 * are gone. VKN_BAD_INPUT with march.sampling=uniform, which has no grid. */
VKN_API vkn_status vkn_stepper_update_grid(vkn_stepper *stepper, vkn_density_fn *density,
                                           void *user);

/* Renders a picture as vkn_render does, a batch of rays and a few samples of each at a time, which
 * `field` evaluates in arrays of their own: the samples of vkn_stepper_sample stay. `params` may be
 * NULL. The caller frees *picture with vkn_picture_free; vkn_scene_camera has the views of the
 * scene, vkn_scene_image what they should look like and vkn_psnr how near that is. VKN_BAD_INPUT
 * names what is wrong with the camera or `params`. Ends with the status of `field` where that
 * fails. */
VKN_API vkn_status vkn_stepper_render(vkn_stepper *stepper, const struct vkn_camera *camera,
                                      const struct vkn_picture_params *params, vkn_field_fn *field,
                                      void *user, struct vkn_picture **picture);

/* ---- Adam ------------------------------------------------------------------------------------ */

/* Adam (Kingma and Ba 2015) with f32 masters and moments, and a count of steps for each entry. */
typedef struct vkn_adam vkn_adam;

/* Of vkn_adam_create. */
struct vkn_adam_params {
    size_t size;
    uint32_t count; /* of parameters, a multiple of `entry` */
    uint32_t entry; /* parameters in a row that share a count of steps, at most 32; 0 means 1 */
    bool sparse;    /* entries whose gradients are all 0 are left alone, their moments too */
    bool host;      /* arrays are in host memory, mapped; else in the device's */
    float learning_rate; /* 0 means 1e-2 */
    float beta1, beta2;  /* 0 means 0.9 and 0.99 */
    float epsilon;       /* 0 means 1e-15 */
    float weight_decay;  /* added to gradients, times the parameter */
    float clip_norm;     /* largest norm of all gradients; 0: any */
};

/* What came of a step. */
struct vkn_adam_result {
    size_t size;
    bool finite;    /* else a gradient was not, and nothing has changed but that they are cleared */
    float norm;     /* of all gradients, before clipping */
    uint64_t steps; /* so far, without those that were skipped */
    uint64_t skipped; /* because a gradient was not finite */
};

/* Parameters and gradients begin as zeros. VKN_BAD_INPUT names the member that is out of range. The
 * context may be given back before *adam. */
VKN_API vkn_status vkn_adam_create(vkn_context *context, const struct vkn_adam_params *params,
                                   vkn_adam **adam);
/* Nulls *adam, and takes NULL. */
VKN_API void vkn_adam_destroy(vkn_adam **adam);
/* float[count] each, and for the whole life of *adam: the caller sets and reads the parameters, and
 * adds to the gradients. NULL for NULL. */
VKN_API const struct vkn_array *vkn_adam_parameters(const vkn_adam *adam);
VKN_API const struct vkn_array *vkn_adam_gradients(const vkn_adam *adam);
/* One step of all parameters by their gradients, which are 0 then. `learning_rate`: 0 means that of
 * `params`. `result` may be NULL. */
VKN_API vkn_status vkn_adam_step(vkn_adam *adam, float learning_rate,
                                 struct vkn_adam_result *result);

VKN_END_DECLARATIONS

#endif
