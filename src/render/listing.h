/* Which files of a folder are frames of ours: vknerf_frames.json beside them tells, so that those
 * of an earlier rendering go when there is a new one, and nothing else ever does. */
#ifndef RENDER_LISTING_H
#define RENDER_LISTING_H

#include "base/base.h"

/* Kinds of files, named as --maps has them. */
enum render_kind {
    RENDER_KIND_COLOR,
    RENDER_KIND_DEPTH,   /* and depth_scale.json with the first */
    RENDER_KIND_DEPTH16, /* the same */
    RENDER_KIND_DEPTH_VALUES,
    RENDER_KIND_OPACITY,
    RENDER_KIND_NORMAL,
    RENDER_KINDS
};

struct render_listing {
    const char *folder;
    bool wanted[RENDER_KINDS];   /* of this rendering */
    size_t counts[RENDER_KINDS]; /* frames 0 to this that are ours, there or not */
};

/* folder/frame_0012_depth.png in fresh memory, which the caller frees. */
char *render_frame_path(const char *folder, size_t frame, enum render_kind kind);

/* Before the first frame: reads the list that is there, or none, and writes it with what is to
 * come. Files that are in the way of a frame are not listed before they are written over. `listing`
 * has folder (which outlives it) and wanted. VKN_BAD_INPUT when nothing can be written there. */
vkn_status render_listing_begin(struct render_listing *listing, size_t frames);
/* After the last: `frames` of each wanted kind are there. With `whole`, listed files that are not
 * of this rendering are removed; else, or where a file is in no list, they stay. A message tells
 * how many. */
vkn_status render_listing_end(struct render_listing *listing, size_t frames, bool whole);

#endif
