/* Inside of the render room: depth maps of many views on one scale, which is known once all are
 * there. */
#ifndef RENDER_DEPTHS_H
#define RENDER_DEPTHS_H

#include <vknerf/renderer.h>

#include "base/base.h"

struct render_depths {
    const char *folder;       /* for messages and files */
    double nearest, farthest; /* of all maps so far, dataset units; farthest 0: nothing in sight */
    FILE *maps;               /* raw; NULL: not kept */
    float *values;            /* the latest map, render_depths_next's after that; 0 nothing */
    size_t capacity;          /* pixels */
};

/* `folder` is there, and outlives *depths. With `keep`, a file in it that has no name, so that it
 * goes whatever happens, takes the maps. Close it, whatever comes back. */
vkn_status render_depths_open(const char *folder, bool keep, struct render_depths *depths);
/* Leaves the picture's map in depths->values. Haze in front of the background is no surface: it
 * counts as nothing. */
vkn_status render_depths_add(struct render_depths *depths, const struct vkn_picture *picture);
/* After the last map: goes back to the first and writes depth_scale.json. */
vkn_status render_depths_rewind(struct render_depths *depths);
/* The next of the maps, of `pixels` pixels, in depths->values. */
vkn_status render_depths_next(struct render_depths *depths, size_t pixels);
/* Turns that into greys 0..1: 1 is nearest, 1/255 farthest, 0 nothing. */
void render_depths_shade(struct render_depths *depths, size_t pixels);
/* Dataset units that a step of 16-bit depths is: 1, 2 or 5 times a power of ten, of which fewer
 * than 65536 reach the farthest of all maps; 0: nothing in sight. */
double render_depths_unit(const struct render_depths *depths);
/* depths->values in such steps, rounded; 0 nothing, and nothing else. */
void render_depths_count(const struct render_depths *depths, size_t pixels, uint16_t *steps);
void render_depths_close(struct render_depths *depths);

#endif
