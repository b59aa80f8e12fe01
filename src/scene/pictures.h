/* Inside of the scene room: the pictures and masks of frames. */
#ifndef SCENE_PICTURES_H
#define SCENE_PICTURES_H

#include "scene/find.h"
#include "scene/image.h"
#include "scene/transforms.h"

/* Folders that may hold the pictures of a scene where the one that is written is absent; ends with
 * NULL. */
extern const char *const *const image_folders;

/* Sets image_path of the frames by file_path (find.h), relative to `folder`; with `in_places` also
 * where it is in one of image_folders instead. Frames without a picture keep NULL. VKN_BAD_INPUT
 * where a name may mean two files, which with `findings` (may be NULL) is counted there, or a file
 * two names. */
vkn_status pictures_find(const char *folder, bool in_places, struct scene_findings *findings,
                         struct transforms *transforms);
/* The same of mask_path by mask_name. */
vkn_status pictures_find_masks(const char *folder, struct scene_findings *findings,
                               struct transforms *transforms);
/* Sets size and orientation of a frame whose image has been found. It is turned, so that width and
 * height are those of the upright picture, where EXIF has it on its side and only so it fits the
 * frame's lens. */
vkn_status pictures_measure(struct transforms_frame *frame);
/* The same by the size of the other pictures, for those whose lens says none. */
void pictures_orient_like_first(struct transforms *transforms);
/* Says once what was found under other names and what EXIF says: in `findings`, or where it is NULL
 * in the log. */
vkn_status pictures_report(const char *path, const struct transforms files[SCENE_SPLITS],
                           struct scene_findings *findings);

#endif
