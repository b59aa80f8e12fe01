/* Marching cubes on the device, slab by slab: from values at grid points, whoever makes them, to a
 * closed mesh on the host. Device memory is that of one slab whatever the grid's height. */
#ifndef RENDER_MARCHING_CUBES_H
#define RENDER_MARCHING_CUBES_H

#include "passes/passes.h"
#include "render/render.h"

/* Numbers of vertices are 31 bits wide: readers of mesh files take them as signed. */
#define RENDER_MAX_VERTICES 0x7fffffffu

/* Two words for each case of inside corners: four bits for each corner of up to five triangles,
 * from the lowest on, that are the cell's edge, and in the highest four their number. */
void marching_table(uint32_t table[MESH_TABLE_WORDS]);

/* Most grid points along an edge: a slab's values have to fit into a buffer of 128 MiB, which every
 * device takes. */
#define MARCHING_MAX_POINTS 2049u

struct marching {
    struct gpu_device *device;
    struct MeshGrid grid;
    struct buffers buffers;
    struct gpu_bindings *bindings; /* the buffers above and the source's */
    struct gpu_pipeline *count, *scan, *make_vertices, *make_triangles;
    uint32_t vertex_room, triangle_room; /* what one pass writes at most */
    uint32_t tile_count;
};

/* Where values come from. */
struct marching_source {
    void *context;
    /* Writes BIND_MESH_VALUES from layer MESH_OVERLAP on: grid.layers layers, the first of which is
     * the grid's layer `first`; layers may lie beyond the grid. Values on the grid's faces and
     * beyond have to be negative, so that the mesh is closed. *any: some may be positive. */
    vkn_status (*fill)(void *context, uint32_t first, bool *any);
    /* Finishes the first `count` of BIND_MESH_VERTICES; may be NULL. */
    vkn_status (*finish)(void *context, uint32_t count);
    /* After each slab, with the layers done so far; VKN_INTERRUPTED ends the work. */
    vkn_status (*report)(void *context, uint32_t done, uint32_t total);
};

/* A grid of 2 to MARCHING_MAX_POINTS points along each edge; `layers` 0: as many as keep a slab at
 * about a million points. `room`: vertices that are made at a time. `buffers`: the source's, bound
 * in addition to those of BIND_MESH_*. The caller destroys *marching, also after a failure. */
vkn_status marching_create(struct gpu_device *device, const struct MeshGrid *grid, uint32_t room,
                           const struct gpu_buffer *const buffers[GPU_BINDINGS],
                           struct marching *marching);
void marching_destroy(struct marching *marching);
/* Adds to `mesh` (empty at first) the whole grid's surface, with the positions that the grid gives,
 * or those that `finish` leaves. Vertices and triangles are in the same order every time.
 * VKN_BAD_INPUT: more than RENDER_MAX_VERTICES. */
vkn_status marching_run(struct marching *marching, const struct marching_source *source,
                        struct render_mesh *mesh);

#endif
