/* vknerf/renderer.h: pictures of a trained field, and how good they are. */
#ifndef VKNERF_RENDERER_H
#define VKNERF_RENDERER_H

#include <vknerf/trainer.h>

VKN_BEGIN_DECLARATIONS

/* A field, and what its pictures are made with. */
typedef struct vkn_renderer vkn_renderer;

/* Of a field in training; uses the trainer's buffers, so the trainer must outlive it. */
VKN_API vkn_status vkn_renderer_of_trainer(vkn_trainer *trainer, vkn_renderer **renderer);
/* Of a checkpoint file alone; neither images nor scene are needed. Any precision renders what any
 * other has trained: checkpoints hold f32. AUTO: as it was trained, or where the device cannot,
 * fp32 with a warning. VKN_BAD_INPUT when the device cannot do another that is asked for. */
VKN_API vkn_status vkn_renderer_open(vkn_context *context, const char *checkpoint,
                                     enum vkn_precision precision, vkn_renderer **renderer);
/* Nulls *renderer, and takes NULL. */
VKN_API void vkn_renderer_destroy(vkn_renderer **renderer);
/* The configuration that the field was trained with, but for the precision and matrices, which are
 * those it is rendered with; and where its scene was. Owned by the renderer. */
VKN_API const vkn_config *vkn_renderer_config(const vkn_renderer *renderer);
VKN_API const char *vkn_renderer_scene_path(const vkn_renderer *renderer);
VKN_API uint64_t vkn_renderer_step(const vkn_renderer *renderer);
/* From now on pictures have normals, the mean over the samples along a pixel's rays as colours have
 * it. They take about three times as long, of models but ngp up to five times. After a failure the
 * renderer can only be destroyed. */
VKN_API vkn_status vkn_renderer_enable_normals(vkn_renderer *renderer);

/* From now on views, meshes and points show the moment `time`, 0..1, of a field that moves,
 * whatever the times of their cameras are. VKN_BAD_INPUT out of that range. */
VKN_API vkn_status vkn_renderer_set_time(vkn_renderer *renderer, double time);

/* How a picture is made. */
struct vkn_picture_params {
    size_t size;
    enum vkn_background background; /* white or black; default: white, black for fields trained on
                                       black */
    uint32_t supersample;           /* rays along a pixel's edge, 1, 2 or 4; 0: 1 */
    double crop[6];   /* since 0.2: the box that is shown, min x, y, z and max x, y, z in the
                         dataset's axes   and units: of each ray nothing outside of it; all zero:
                         everything */
    bool transparent; /* since 0.2: nothing is behind the field, whatever background says: the
                         picture's colours are the field's own, straight (not multiplied by the
                         opacity), 0 where there is nothing; VKN_MAP_RGBA writes both */
};

/* Renders one view; the caller frees *picture with vkn_picture_free. `params` may be NULL.
 * VKN_BAD_INPUT names what is wrong with either. */
VKN_API vkn_status vkn_render(vkn_renderer *renderer, const struct vkn_camera *camera,
                              const struct vkn_picture_params *params,
                              struct vkn_picture **picture);

/* ---- quality --------------------------------------------------------------------------------- */

/* SSIM (Wang et al. 2004): 11x11 Gaussian window of sigma 1.5, K1 0.01, K2 0.03, valid windows
 * only, mean over pixels and channels. Images are rgb floats 0..1. Of windows that hold a pixel
 * with used[y * width + x] == 0 none counts; `used` may be NULL: all do. NaN where no window is
 * left, such as of images with a side below 11 pixels. VKN_ERROR on no memory. */
VKN_API vkn_status vkn_ssim(const float *a, const float *b, const uint8_t *used, uint32_t width,
                            uint32_t height, double *ssim);
/* Peak signal-to-noise ratio in dB, capped at 100, of all channels of the pixels with
 * used[y * width + x] != 0; NaN where there are none. `used` may be NULL: all pixels. */
VKN_API double vkn_psnr(const float *a, const float *b, const uint8_t *used, uint32_t width,
                        uint32_t height);

VKN_END_DECLARATIONS

#endif
