/* Keeps vknerf_frames.json, the list of frame files in a folder that vknerf has written. A new
 * rendering removes files of an earlier one by this list, and never removes any other file. */
#ifndef RENDER_LISTING_H
#define RENDER_LISTING_H

#include "base/base.h"

/* Kinds of files, named as in --maps. */
enum render_kind {
    RENDER_KIND_COLOR,
    RENDER_KIND_DEPTH,   /* and depth_scale.json */
    RENDER_KIND_DEPTH16, /* and depth_scale.json */
    RENDER_KIND_DEPTH_VALUES,
    RENDER_KIND_OPACITY,
    RENDER_KIND_NORMAL,
    RENDER_KINDS
};

struct render_listing {
    const char *folder;
    bool wanted[RENDER_KINDS];   /* kinds that this rendering writes */
    size_t counts[RENDER_KINDS]; /* vknerf wrote the files of frames below this number */
};

/* Returns "FOLDER/frame_0012_depth.png", which the caller frees; NULL when out of memory. */
char *render_frame_path(const char *folder, size_t frame, enum render_kind kind);

/* Reads the folder's list, if any, and adds the files of the coming `frames` frames up to the first
 * one that already exists. Call it before the first frame. The caller sets listing->folder (which
 * must outlive *listing) and listing->wanted. VKN_BAD_INPUT: the folder cannot be written. */
vkn_status render_listing_begin(struct render_listing *listing, size_t frames);
/* Writes the final list after `frames` frames of each wanted kind are written. `is_complete`: the
 * rendering is complete, and listed files that it did not write are removed. Files that are not
 * listed stay. Logs the numbers of removed and of remaining older files. */
vkn_status render_listing_end(struct render_listing *listing, size_t frames, bool is_complete);

#endif
