/* Inside of the scene room: the matrix of an LLFF capture. */
#ifndef SCENE_LLFF_H
#define SCENE_LLFF_H

#include "scene/npy.h"
#include "scene/transforms.h"

/* Frames from poses_bounds.npy: everything but their images. */
vkn_status llff_frames(const char *file, const struct npy *array, struct transforms *transforms);

#endif
