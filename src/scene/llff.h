/* Reads LLFF captures (internal to the module scene). */
#ifndef SCENE_LLFF_H
#define SCENE_LLFF_H

#include "scene/npy.h"
#include "scene/transforms.h"

/* Makes frames from poses_bounds.npy, without their images. */
vkn_status llff_frames(const char *file, const struct npy *array, struct transforms *transforms);

#endif
