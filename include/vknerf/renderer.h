/* vknerf/renderer.h: pictures of a trained field, and how good they are. */
#ifndef VKNERF_RENDERER_H
#define VKNERF_RENDERER_H

#include <vknerf/trainer.h>

typedef struct vkn_renderer vkn_renderer;

/* Of a field in training; uses the trainer's buffers, so the trainer must outlive it. */
vkn_status vkn_renderer_of_trainer(vkn_trainer *trainer, vkn_renderer **renderer);
/* Of a checkpoint file alone; neither images nor scene are needed. Any precision renders what any
 * other has trained: checkpoints hold f32. AUTO: as it was trained, or where the device cannot,
 * fp32 with a warning. VKN_BAD_INPUT when the device cannot do another that is asked for. */
vkn_status vkn_renderer_open(vkn_context *context, const char *checkpoint,
                             enum vkn_precision precision, vkn_renderer **renderer);
void vkn_renderer_destroy(vkn_renderer **renderer);
/* The configuration that the field was trained with, but for the precision and matrices, which are
 * those it is rendered with; and where its scene was. Owned by the renderer. */
const struct vkn_config *vkn_renderer_config(const vkn_renderer *renderer);
const char *vkn_renderer_scene_path(const vkn_renderer *renderer);
uint64_t vkn_renderer_step(const vkn_renderer *renderer);
/* From now on pictures have normals, the mean over the samples along a pixel's rays as colours have
 * it. They take about three times as long. After a failure the renderer can only be destroyed. */
vkn_status vkn_renderer_want_normals(vkn_renderer *renderer);

/* From now on views, meshes and points show the moment `time`, 0..1, of a field that moves,
 * whatever the times of their cameras are. VKN_BAD_INPUT out of that range. */
vkn_status vkn_renderer_freeze(vkn_renderer *renderer, double time);

/* Finished picture; arrays of width * height, row by row from the top. */
struct vkn_picture {
    uint32_t width, height;
    float *color;    /* rgb, 3 per pixel, sRGB, on the background, 0..1 */
    float *opacity;  /* 0..1 */
    float *depth;    /* along the viewing axis (of a fisheye camera: from it), in dataset units; 0 where
                        nothing was hit */
    float *normal;   /* of the surface, 3 per pixel: unit length, in the dataset's axes, towards the
                        camera; 0 where nothing was hit. NULL unless vkn_renderer_want_normals */
};
void vkn_picture_free(struct vkn_picture *picture);

struct scene_camera;
/* Renders one view; the caller frees the picture. `supersample`: rays along a pixel's edge, 1, 2 or 4;
 * 0 means 1. VKN_BAD_INPUT for another or for a view without pixels. */
vkn_status vkn_render(vkn_renderer *renderer, const struct scene_camera *camera,
                      enum vkn_background background, uint32_t supersample, struct vkn_picture *picture);

/* ---- quality ----------------------------------------------------------------------------------- */

struct vkn_view_quality {
    double psnr, ssim; /* against the view composited on the background in sRGB space, 8 bits */
};

/* SSIM (Wang et al. 2004): 11x11 Gaussian window of sigma 1.5, K1 0.01, K2 0.03, valid windows
 * only, mean over pixels and channels. Images are rgb floats 0..1. Of windows that hold a pixel
 * with used[y * width + x] == 0 none counts; `used` may be NULL: all do. NaN where no window is
 * left, such as of images with a side below 11 pixels. VKN_ERROR on no memory. */
vkn_status vkn_ssim(const float *a, const float *b, const uint8_t *used, uint32_t width,
                    uint32_t height, double *ssim);
/* Peak signal-to-noise ratio in dB, capped at 100, of all channels of the pixels with
 * used[y * width + x] != 0; NaN where there are none. `used` may be NULL: all pixels. */
double vkn_psnr(const float *a, const float *b, const uint8_t *used, uint32_t width,
                uint32_t height);

#endif
