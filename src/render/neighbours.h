/* Inside of the render room: how far apart points are. */
#ifndef RENDER_NEIGHBOURS_H
#define RENDER_NEIGHBOURS_H

#include "render/render.h"

/* Of each point the root of the mean square of the distances to its three nearest neighbours (fewer
 * where there are fewer points; 0 of a single one), as the scales of Kerbl et al. 2023 begin. */
vkn_status neighbours_spacing(const struct MeshVertex *points, size_t count, float *spacing);

#endif
