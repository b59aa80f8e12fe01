/* Measures the spacing of points. Private to render. */
#ifndef RENDER_NEIGHBOURS_H
#define RENDER_NEIGHBOURS_H

#include "render/render.h"

/* Computes for each point the root mean square distance to its three nearest neighbours (to all
 * others where there are fewer than four points, 0 for a single point): the initial scale of
 * Kerbl et al. 2023. `spacing`: [count]. */
vkn_status neighbours_spacing(const struct MeshVertex *points, size_t count, float *spacing);

#endif
