/* Cuts a mesh into charts and packs the charts into a texture. Private to render. */
#ifndef RENDER_ATLAS_H
#define RENDER_ATLAS_H

#include "render/render.h"

#define ATLAS_GUTTER 2u /* pixels around every chart, which repeat the chart's border */

/* Connected triangles that do not overlap when projected along an axis. */
struct atlas_chart {
    uint32_t axis;          /* 0..2: projection along x, y or z */
    uint32_t first, count;  /* range of the chart's triangles in atlas.order */
    double low[2], high[2]; /* bounds of the projected coordinates, cells */
    double tile[2];         /* index of the square of the projection plane, see TILE */
    uint32_t x, y;          /* top left corner of the gutter, pixels */
};

struct atlas {
    double cell, origin[3]; /* edge of a cell (voxel); origin of the cells */
    uint32_t *order;        /* [triangle]: the mesh's triangles, chart by chart */
    struct atlas_chart *charts;
    uint32_t count;
    uint32_t size;  /* pixels along the texture's edge */
    double density; /* pixels along a cell's edge */
};

/* Cuts the mesh into charts. The normals of a chart's triangles are within 60 degrees of its axis.
 * Takes any mesh; fast for meshes whose triangles lie within cells, as after marching cubes. The
 * caller destroys *atlas, also after a failure. */
vkn_status atlas_cut(const struct render_mesh *mesh, double cell, const double origin[3],
                     struct atlas *atlas);
/* Packs the charts into the texture. `size`: see render_mesh_unwrap. */
vkn_status atlas_pack(struct atlas *atlas, uint32_t size);
void atlas_destroy(struct atlas *atlas);

/* Returns the texture position of a point of a chart, in pixels from the left and the top. */
void atlas_texel(const struct atlas *atlas, const struct atlas_chart *chart,
                 const float position[3], float texel[2]);

#endif
