/* vknerf/renderer.h: renders images of a trained field and measures their quality. */
#ifndef VKNERF_RENDERER_H
#define VKNERF_RENDERER_H

#include <vknerf/trainer.h>

VKN_BEGIN_DECLARATIONS

/* A field with everything that rendering it needs. */
typedef struct vkn_renderer vkn_renderer;

/* Creates a renderer of a field in training, which reads the trainer's buffers. Trainer and
 * renderer may be destroyed in any order: the buffers live until both are gone. The caller owns
 * *renderer. */
VKN_API vkn_status vkn_renderer_of_trainer(vkn_trainer *trainer, vkn_renderer **renderer);
/* Creates a renderer of a checkpoint file, without its scene. The precision may differ from that of
 * the training, because checkpoints hold f32. AUTO: the precision of the training, or fp32 with a
 * warning if the device does not offer it. VKN_BAD_INPUT if the device does not offer any other
 * `precision`. The context may be destroyed first. The caller owns *renderer. */
VKN_API vkn_status vkn_renderer_open(vkn_context *context, const char *checkpoint,
                                     enum vkn_precision precision, vkn_renderer **renderer);
/* Destroys a renderer and sets *renderer to NULL; accepts NULL. */
VKN_API void vkn_renderer_destroy(vkn_renderer **renderer);
/* Returns the configuration of the training, with the renderer's precision and matrix settings.
 * Owned by the renderer. */
VKN_API const vkn_config *vkn_renderer_config(const vkn_renderer *renderer);
/* Returns the path of the scene at the time of training. Owned by the renderer. */
VKN_API const char *vkn_renderer_scene_path(const vkn_renderer *renderer);
/* Returns the number of steps that the field has been trained for. */
VKN_API uint64_t vkn_renderer_step(const vkn_renderer *renderer);
/* Adds normals to all images from now on: the weighted mean over the samples along a pixel's rays,
 * as for colours. Images then take about three times as long, and up to five times with models
 * other than ngp. After a failure the renderer can only be destroyed. */
VKN_API vkn_status vkn_renderer_enable_normals(vkn_renderer *renderer);

/* Sets the time, 0..1, at which a dynamic field is rendered and exported from now on, instead of
 * the times of the cameras. VKN_BAD_INPUT outside 0..1. */
VKN_API vkn_status vkn_renderer_set_time(vkn_renderer *renderer, double time);

/* Returns the camera of a view as vkn_scene_camera does, as the renderer's training has refined it
 * so far (setting scene.refine): pose and lens of a training view; of other views the lens, if a
 * training view has the same lens. `scene` must have the training views of the renderer's scene, at
 * the same poses, and is not changed. VKN_BAD_INPUT if the view does not exist, or if the training
 * has another number of views. */
VKN_API vkn_status vkn_renderer_camera(const vkn_renderer *renderer, const vkn_scene *scene,
                                       enum vkn_split split, size_t view,
                                       struct vkn_camera *camera);

/* Parameters of vkn_render. */
struct vkn_picture_params {
    size_t size;
    enum vkn_background background; /* white or black; default: the sky of fields with scene.sky,
                                       black for fields trained on black, else white */
    uint32_t supersample;           /* rays along a pixel's edge: 1, 2 or 4; 0: 1 */
    /* Box to render, min x, y, z and max x, y, z in the dataset's axes and units: each ray is
     * clipped to the box. All zero: everything. Needs `size`. */
    double crop[6];
    /* No background, whatever `background` is: colours are straight (not multiplied by the
     * opacity), 0 where the opacity is 0. VKN_MAP_RGBA writes both. Needs `size`. */
    bool transparent;
    /* Stops by which the picture is brighter than at the mean exposure of the training images, in
     * linear light, -16 to 16. Needs `size`. */
    double exposure;
    /* Degrees by which `crop` is rotated about its centre: about the dataset's x axis, then y, then
     * z, -360 to 360. Refused without `crop`. Needs `size`. */
    double crop_rotation[3];
};

/* Renders one view. `params` may be NULL. The caller frees *picture with vkn_picture_free.
 * VKN_BAD_INPUT names the wrong member of `camera` or `params`. */
VKN_API vkn_status vkn_render(vkn_renderer *renderer, const struct vkn_camera *camera,
                              const struct vkn_picture_params *params,
                              struct vkn_picture **picture);

/* ---- the field at points, colours along rays ------------------------------------------------- */

/* Points, and arrays for the field's values at them. All arrays are the caller's, in C order. */
struct vkn_points {
    size_t size;
    size_t count;            /* number of points; may be 0 */
    const double *positions; /* [count][3], in the dataset's axes and units */
    /* [count][3], from the camera to the point, of any length but 0; NULL: only if `colors` is. */
    const double *directions;
    const double *times; /* [count], 0..1, in dynamic scenes; NULL: vkn_renderer_set_time's, or 0 */
    float *densities;    /* [count], per dataset unit: a layer of thickness d and density s has the
                            opacity 1 - exp(-s d); 0 outside of the reconstructed cube. NULL: not
                            wanted */
    float *colors; /* [count][3], rgb in sRGB, 0..1; 0 outside of the cube. NULL: not wanted */
};
/* Evaluates the field at points, on the device. Unlike vkn_render, does not ask the occupancy grid,
 * so densities in empty space may differ from 0. VKN_BAD_INPUT names the wrong member and point. */
VKN_API vkn_status vkn_renderer_query(vkn_renderer *renderer, const struct vkn_points *points);

/* Rays, and arrays for their pictures. All arrays are the caller's, in C order. */
struct vkn_rays {
    size_t size;
    size_t count;             /* number of rays; may be 0 */
    const double *origins;    /* [count][3], in the dataset's axes and units */
    const double *directions; /* [count][3], in the dataset's axes, of any length but 0 */
    /* [count], distances in dataset units between which the field is sampled, 0 <= nearest <=
     * farthest; NULL: as the rays of cameras. */
    const double *nearest, *farthest;
    const double *times; /* [count], 0..1, in dynamic scenes; NULL: vkn_renderer_set_time's, or 0 */
    /* [count], results as in struct vkn_picture, colors and normals [count][3]. Depths are
     * distances from the origins. NULL: not wanted; normals only after vkn_renderer_enable_normals.
     */
    float *colors, *opacities, *depths, *normals;
};
/* Renders rays as vkn_render does a camera's, on the device. `params` may be NULL; `supersample`
 * must be 0 or 1. VKN_BAD_INPUT names the wrong member and ray. */
VKN_API vkn_status vkn_render_rays(vkn_renderer *renderer, const struct vkn_rays *rays,
                                   const struct vkn_picture_params *params);

/* ---- quality --------------------------------------------------------------------------------- */

/* Computes SSIM (Wang et al. 2004): 11x11 Gaussian window of sigma 1.5, K1 0.01, K2 0.03, mean over
 * channels and over all windows inside the image. Images are float[height][width][3], rgb, 0..1.
 * Windows with a pixel whose used[y * width + x] is 0 do not count; `used` NULL: all pixels are
 * used. NaN if no window counts, for example if a side is below 11 pixels. VKN_ERROR if memory runs
 * out. */
VKN_API vkn_status vkn_ssim(const float *a, const float *b, const uint8_t *used, uint32_t width,
                            uint32_t height, double *ssim);
/* Returns the peak signal-to-noise ratio in dB, at most 100, over all channels of the pixels whose
 * used[y * width + x] is not 0; NaN if there are none. `used` NULL: all pixels. */
VKN_API double vkn_psnr(const float *a, const float *b, const uint8_t *used, uint32_t width,
                        uint32_t height);

VKN_END_DECLARATIONS

#endif
