/* Finds the images of captures that have a folder `images` beside folders `images_N` with the same
 * images N times smaller, as LLFF and COLMAP captures do (internal to the module scene). */
#ifndef SCENE_CAPTURE_H
#define SCENE_CAPTURE_H

#include "scene/transforms.h"

#define CAPTURE_MAX_FACTOR 64u /* largest N of images_N */

/* Finds the folder to load images from. Downscaling counts from `images` or, when that is absent,
 * from the first existing `images_N`. When the folder `images_M` for the downscaled size exists, it
 * is chosen and *prescaled is set to `downscale`, else to 1. Without any of these folders the
 * result is that of capture_folder. `file` is the file whose images they are, for messages. The
 * caller frees *images. Returns VKN_BAD_INPUT when there is no folder. */
vkn_status capture_images(const char *folder, const char *file, uint32_t downscale, char **images,
                          uint32_t *prescaled);

/* Finds an image folder with a name other than images and images_N: one of image_folders, in any
 * case, or the folder itself when it contains images; NULL: none. Returns VKN_BAD_INPUT when two of
 * image_folders exist. The caller frees *images. */
vkn_status capture_folder(const char *folder, const char *file, char **images);

/* Returns whether the folder has `images`, an images_N or one of image_folders. Sets *failed when
 * out of memory. */
bool capture_has_images(const char *folder, bool *failed);

/* Sets image_path and size of every frame, by its file_path in the image folder, and
 * transforms->prescaled. Another extension is accepted (images_N are often PNG when images are
 * JPEG; find.h). Frames without an image are dropped with a warning; so are frames with broken
 * images or masks when `findings` is not NULL, which counts them. */
vkn_status capture_find_images(const char *folder, uint32_t downscale,
                               struct scene_findings *findings, struct transforms *transforms);

/* Reads the sizes of all frames' images, which have been found, and finds their masks in the
 * scene's folder `masks` (mask_find). Frames with broken images or masks are skipped when
 * `findings` is not NULL. */
vkn_status capture_measure(const char *folder, struct scene_findings *findings,
                           struct transforms *transforms);

/* Lists the regular files with the extensions of PNG and JPEG or, when there are none, of other
 * image formats, sorted by name. The caller frees the names with capture_free_names. */
vkn_status capture_list(const char *folder, char ***names, size_t *count);
void capture_free_names(char **names, size_t count);

#endif
