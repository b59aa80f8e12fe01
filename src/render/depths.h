/* Stores depth maps until their common range is known, then scales them. Private to render. */
#ifndef RENDER_DEPTHS_H
#define RENDER_DEPTHS_H

#include <vknerf/renderer.h>

#include "base/base.h"

struct render_depths {
    const char *folder;       /* receives depth_scale.json; is named in messages */
    double nearest, farthest; /* range of all maps so far, dataset units; farthest 0: no surface */
    FILE *maps;               /* raw maps, one after the other; NULL: not stored */
    float *values;            /* current map, dataset units; 0: no surface */
    size_t capacity;          /* pixels */
};

/* Opens *depths. `folder` must exist and outlive *depths. `keep`: stores the maps in an unlinked
 * file of the folder. The caller closes *depths, also after a failure. */
vkn_status render_depths_open(const char *folder, bool keep, struct render_depths *depths);
/* Copies the picture's depth map to depths->values, stores it and extends the range. Pixels below
 * RENDER_SOLID_OPACITY count as no surface. */
vkn_status render_depths_add(struct render_depths *depths, const struct vkn_picture *picture);
/* Writes depth_scale.json and returns to the first stored map. Call it after the last map. */
vkn_status render_depths_rewind(struct render_depths *depths);
/* Reads the next stored map, of `pixels` pixels, into depths->values. */
vkn_status render_depths_next(struct render_depths *depths, size_t pixels);
/* Converts depths->values to greys: 1 nearest, 1/255 farthest, 0 no surface. */
void render_depths_shade(struct render_depths *depths, size_t pixels);
/* Returns the dataset units of one step of 16-bit depths: the smallest 1, 2 or 5 times a power of
 * ten with which 65535 steps reach the farthest depth of all maps. 0: no surface. */
double render_depths_unit(const struct render_depths *depths);
/* Converts depths->values to 16-bit steps, rounded to the nearest, at least 1; 0: no surface. */
void render_depths_quantize(const struct render_depths *depths, size_t pixels, uint16_t *steps);
void render_depths_close(struct render_depths *depths);

#endif
