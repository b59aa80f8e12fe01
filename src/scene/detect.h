/* Inside of the scene room: which format a scene is written in. */
#ifndef SCENE_DETECT_H
#define SCENE_DETECT_H

#include "scene/transforms.h"

/* Finds the format of options->path, or checks that it has the one asked for, sets scene->format
 * and reads `files` as scene_assemble takes them, images found. The caller frees the files, after a
 * failure too. */
vkn_status detect_and_read(struct vkn_scene *scene, const struct scene_options *options,
                           struct transforms files[SCENE_SPLITS], bool *single);

/* VKN_BAD_INPUT for what is plainly no scene: a folder of photographs or a video, where the message
 * names the command that makes a scene of it; a run, an empty folder, one whose folders are scenes;
 * a picture, an archive, a mesh, a model. VKN_OK for all else (refuse.c). */
vkn_status refuse_folder(const char *folder);
vkn_status refuse_file(const char *path);

#endif
