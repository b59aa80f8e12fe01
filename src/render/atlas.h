/* Inside of the render room: where in a texture a mesh's triangles lie. */
#ifndef RENDER_ATLAS_H
#define RENDER_ATLAS_H

#include "render/render.h"

#define ATLAS_GUTTER 2u /* pixels around every chart that show it as well */

/* Triangles that are connected and lie side by side when looked at along an axis. */
struct atlas_chart {
    uint32_t axis;          /* 0..2: it is looked at along x, y or z */
    uint32_t first, count;  /* of the atlas's order */
    double low[2], high[2]; /* of the other two coordinates, in cells */
    double tile[2];         /* of the squares that they are cut by, the one it is in */
    uint32_t x, y;          /* of its gutter's corner, pixels */
};

struct atlas {
    double cell, origin[3]; /* edge of a cell; where one has its corner */
    uint32_t *order;        /* the mesh's triangles, chart by chart */
    struct atlas_chart *charts;
    uint32_t count;
    uint32_t size;  /* pixels along the texture's edge */
    double density; /* pixels along a cell's edge */
};

/* Cuts the mesh into charts. Triangles of charts that look flatter than 60 degrees from the axis
 * are in others. Any mesh, but with triangles within cells, such as marching cubes make, it is
 * quick. The caller destroys *atlas, also after a failure. */
vkn_status atlas_cut(const struct render_mesh *mesh, double cell, const double origin[3],
                     struct atlas *atlas);
/* Places the charts; `size` as render_mesh_unwrap takes it. */
vkn_status atlas_pack(struct atlas *atlas, uint32_t size);
void atlas_destroy(struct atlas *atlas);

/* Of a point of the mesh in a chart: pixels from the texture's left and top. */
void atlas_texel(const struct atlas *atlas, const struct atlas_chart *chart,
                 const float position[3], float texel[2]);

#endif
