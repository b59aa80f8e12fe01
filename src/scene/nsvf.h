/* Reads and writes the intrinsics of NSVF's captures (internal to the module scene). */
#ifndef SCENE_NSVF_H
#define SCENE_NSVF_H

#include "scene/numbers.h"
#include "scene/transforms.h"

/* Reads intrinsics.txt. */
vkn_status nsvf_read_lens(const char *file, struct transforms_lens *lens);
/* Adds a copy of intrinsics.txt with the lens of the new cameras, if they have one. VKN_BAD_INPUT:
 * their lenses differ, or the file cannot hold the lens. */
vkn_status nsvf_write_lens(const char *file, const struct write_view *views, size_t count,
                           struct write_files *copies);

#endif
