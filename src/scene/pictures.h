/* Finds and measures the images and masks of frames (internal to the module scene). */
#ifndef SCENE_PICTURES_H
#define SCENE_PICTURES_H

#include "scene/find.h"
#include "scene/image.h"
#include "scene/transforms.h"

/* NULL-terminated names of subfolders to search for images whose written folder does not exist. */
extern const char *const *const image_folders;

/* Sets image_path of the frames by file_path (find.h), relative to `folder`; with `in_subfolders`
 * also searches image_folders. Frames without an image keep NULL. Returns VKN_BAD_INPUT when a file
 * matches two names, or when a name matches two files and `findings`, which counts it, is NULL. */
vkn_status pictures_find(const char *folder, bool in_subfolders, struct scene_findings *findings,
                         struct transforms *transforms);
/* Sets mask_path by mask_name, as pictures_find sets image_path; also searches masks and mask. */
vkn_status pictures_find_masks(const char *folder, struct scene_findings *findings,
                               struct transforms *transforms);
/* Sets size and orientation of a frame whose image has been found. If EXIF rotates the image by 90
 * degrees and only the rotated image fits the frame's lens, applies the orientation: width and
 * height are then those of the upright image. */
vkn_status pictures_measure(struct transforms_frame *frame);
/* Applies the orientation of images whose lens gives no size, if the rotated images fit the first
 * image with the same lens. */
void pictures_orient_like_first(struct transforms *transforms);
/* Reports other names and EXIF orientations in `findings` or, if `findings` is NULL, in the log. */
vkn_status pictures_report(const char *path, const struct transforms files[SCENE_SPLITS],
                           struct scene_findings *findings);

#endif
