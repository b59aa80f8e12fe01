/* Finds the images of captures that have a folder `images` beside folders `images_N` with the same
 * images N times smaller, as LLFF and COLMAP captures do (internal to the module scene). */
#ifndef SCENE_CAPTURE_H
#define SCENE_CAPTURE_H

#include "scene/transforms.h"

#define CAPTURE_MAX_FACTOR 64u /* largest N of images_N */

/* Finds the folder to load images from. Downscaling counts from `images` or, when that is absent,
 * from the first existing `images_N`. When the folder `images_M` for the downscaled size exists, it
 * is chosen and *image_factor is set to `downscale`, else to 1. Without any of these folders the
 * result is that of capture_folder. `file` (for messages) is the file that names the images. The
 * caller frees *images. Returns VKN_BAD_INPUT when there is no folder. */
vkn_status capture_images(const char *folder, const char *file, uint32_t downscale, char **images,
                          uint32_t *image_factor);

/* Finds an image folder that is not called images or images_N: one of image_folders, in upper or
 * lower case, or `folder` itself when it contains images; NULL: none. Returns VKN_BAD_INPUT when
 * two of image_folders exist. The caller frees *images. */
vkn_status capture_folder(const char *folder, const char *file, char **images);

/* Returns whether the folder has images, images_N or one of image_folders. Sets *failed when out of
 * memory. */
bool capture_has_images(const char *folder, bool *failed);

/* Sets image_path and size of every frame, by its file_path in the image folder, and
 * transforms->image_factor. Another extension is accepted (images_N are often PNG when images are
 * JPEG; find.h). Frames without an image are dropped with a warning. With `findings` (may be NULL)
 * frames with broken images or masks are counted there and dropped. */
vkn_status capture_find_images(const char *folder, uint32_t downscale,
                               struct scene_findings *findings, struct transforms *transforms);

/* Reads the size of the image of every frame with an image_path, and finds the image's mask in the
 * scene's folder `masks` (mask_find). With `findings` (may be NULL) frames with broken images or
 * masks are counted there and skipped. */
vkn_status capture_measure(const char *folder, struct scene_findings *findings,
                           struct transforms *transforms);

/* Lists the regular files with the extensions of PNG and JPEG or, when there are none, of other
 * image formats, sorted by name. The caller calls capture_free_names. */
vkn_status capture_list(const char *folder, char ***names, size_t *count);
/* Frees the names and their array. */
void capture_free_names(char **names, size_t count);

#endif
