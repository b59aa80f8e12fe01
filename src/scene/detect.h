/* Detects the format of a scene (internal to the module scene). */
#ifndef SCENE_DETECT_H
#define SCENE_DETECT_H

#include "scene/transforms.h"

/* Detects the format of options->path, or checks that the path has the requested format; sets
 * scene->format; reads `files` as scene_assemble expects them, with their images found. The caller
 * frees the files, also after a failure. */
vkn_status detect_and_read(struct vkn_scene *scene, const struct scene_options *options,
                           struct transforms files[SCENE_SPLITS], bool *single);

/* Return VKN_BAD_INPUT, with a message that says what to do, for a path that is clearly no scene: a
 * folder that holds photographs, a video, a run, scenes or nothing; a file that is a video, an
 * image, an archive, a mesh or a model. Return VKN_OK for anything else (refuse.c). */
vkn_status refuse_folder(const char *folder);
vkn_status refuse_file(const char *path);

#endif
