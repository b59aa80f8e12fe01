/* Inside of the scene room: captures whose images lie in a folder `images` beside folders
 * `images_N` with the same pictures N times smaller, as LLFF and COLMAP captures have them. */
#ifndef SCENE_CAPTURE_H
#define SCENE_CAPTURE_H

#include "scene/transforms.h"

#define CAPTURE_MAX_FACTOR 64u /* N of images_N */

/* The folder to load from, and how much smaller its images are than the ones that downscaling
 * counts from: those of `images`, or where that is absent of the first `images_N` there is. When
 * `downscale` leads from there to another images_N exactly, that one is taken. Without any of these
 * the folder is capture_folder's. The caller frees *images. VKN_BAD_INPUT when there is none;
 * `file` is the one whose images they are. */
vkn_status capture_images(const char *folder, const char *file, uint32_t downscale, char **images,
                          uint32_t *prescaled);

/* The one of image_folders that the folder has, in whatever case, or the folder itself where it
 * has none and holds pictures; NULL: neither. VKN_BAD_INPUT names two that it has. The caller frees
 * *images. */
vkn_status capture_folder(const char *folder, const char *file, char **images);

/* Whether the folder has `images`, some images_N or another of image_folders; *failed is set
 * without memory. */
bool capture_has_images(const char *folder, bool *failed);

/* Sets image_path and size of every frame by its file_path in that folder, where another extension
 * will do as well (images_N are often PNG when images are JPEG; find.h), and prescaled. Frames
 * without an image are left out, with a warning; so are broken images and masks with `findings`
 * (may be NULL), which counts them. */
vkn_status capture_find_images(const char *folder, uint32_t downscale,
                               struct scene_findings *findings, struct transforms *transforms);

/* Sizes of all frames' images, which have been found, and their masks, where the scene folder has a
 * folder `masks` with one for their file_path (mask_find). Broken ones are passed over with
 * `findings` (may be NULL). */
vkn_status capture_measure(const char *folder, struct scene_findings *findings,
                           struct transforms *transforms);

/* Names of the PNG and JPEG files in a folder, or where it has none those of other pictures, which
 * are regular files, in order; the caller frees them with capture_free_names. */
vkn_status capture_list(const char *folder, char ***names, size_t *count);
void capture_free_names(char **names, size_t count);

#endif
