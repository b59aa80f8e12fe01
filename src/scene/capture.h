/* Inside of the scene room: captures whose images lie in a folder `images` beside folders `images_N`
 * with the same pictures N times smaller, as LLFF and COLMAP captures have them. */
#ifndef SCENE_CAPTURE_H
#define SCENE_CAPTURE_H

#include "scene/transforms.h"

/* The folder to load from, and how much smaller its images are than the ones that downscaling counts
 * from: those of `images`, or where that is absent of the first `images_N` there is. When `downscale`
 * leads from there to another images_N exactly, that one is taken. The caller frees *images.
 * VKN_BAD_INPUT when there is none; `file` is the one whose images they are. */
vkn_status capture_images(const char *folder, const char *file, uint32_t downscale, char **images,
                          uint32_t *prescaled);

/* Whether the folder has `images` or some images_N; *failed is set without memory. */
bool capture_has_images(const char *folder, bool *failed);

/* Sets image_path and size of every frame by its file_path in that folder, where another extension
 * will do as well (images_N are often PNG when images are JPEG), and prescaled. Frames without an image
 * are left out, with a warning; so are broken images and masks with `findings` (may be NULL), which
 * counts them. */
vkn_status capture_find_images(const char *folder, uint32_t downscale,
                               struct scene_findings *findings, struct transforms *transforms);

/* Sets the frame's mask, when the scene folder has a folder `masks` with one for its file_path
 * (mask_find); its size is known. */
vkn_status capture_find_mask(const char *folder, struct transforms_frame *frame);

/* Names of the PNG and JPEG files in a folder in order; the caller frees them with
 * capture_free_names. */
vkn_status capture_list(const char *folder, char ***names, size_t *count);
void capture_free_names(char **names, size_t count);

#endif
