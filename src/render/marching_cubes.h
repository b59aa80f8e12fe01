/* Runs marching cubes on the device, slab by slab: from a source's values at grid points to a
 * closed mesh on the host. Device memory holds one slab, whatever the height of the grid. */
#ifndef RENDER_MARCHING_CUBES_H
#define RENDER_MARCHING_CUBES_H

#include "passes/passes.h"
#include "render/render.h"

/* Vertex indices have 31 bits, because readers of mesh files take them as signed. */
#define RENDER_MAX_VERTICES 0x7fffffffu

/* Computes the triangle table: two 32-bit words for each of the 256 cases of inside corners. Four
 * bits for each vertex of up to five triangles, from bit 0 on, hold the cell's edge that the vertex
 * lies on; the highest four bits hold the number of triangles. */
void marching_table(uint32_t table[MESH_TABLE_WORDS]);

/* Most grid points along an edge: a slab's values fit into 128 MiB, which every device supports. */
#define MARCHING_MAX_POINTS 2049u

/* Pipelines and buffers for the slabs of a grid. */
struct marching {
    struct gpu_device *device;
    struct MeshGrid grid;
    struct buffers buffers;
    struct gpu_bindings *bindings; /* `buffers` and the source's buffers */
    struct gpu_pipeline *count, *scan, *make_vertices, *make_triangles;
    uint32_t max_vertices, max_triangles; /* of one dispatch */
    uint32_t tile_count;
};

/* Source of the values at grid points. */
struct marching_source {
    void *context;
    /* Writes the values of grid.layers layers of the grid from layer `first` on, which may lie
     * beyond the grid, to BIND_MESH_VALUES from its layer MESH_OVERLAP on. Values on the grid's
     * faces and beyond must be negative, to close the mesh. *any: a value may be positive. */
    vkn_status (*fill)(void *context, uint32_t first, bool *any);
    /* Postprocesses the first `count` of BIND_MESH_VERTICES; may be NULL. */
    vkn_status (*finish)(void *context, uint32_t count);
    /* Reports progress in layers after each slab; VKN_INTERRUPTED ends the run. May be NULL. */
    vkn_status (*report)(void *context, uint32_t done, uint32_t total);
};

/* Creates pipelines and buffers for a grid of 2 to MARCHING_MAX_POINTS points along each edge.
 * grid->layers 0: chosen such that a slab has about a million points. `batch`: vertices of one
 * dispatch. `buffers`: the source's, bound in addition to BIND_MESH_*. The caller destroys
 * *marching, also after a failure. */
vkn_status marching_create(struct gpu_device *device, const struct MeshGrid *grid, uint32_t batch,
                           const struct gpu_buffer *const buffers[GPU_BINDINGS],
                           struct marching *marching);
void marching_destroy(struct marching *marching);
/* Adds the surface of the whole grid to `mesh`, which is empty at first. Vertex positions are in
 * grid coordinates unless source->finish changes them. The order of vertices and triangles is
 * deterministic. VKN_BAD_INPUT: more than RENDER_MAX_VERTICES vertices. */
vkn_status marching_run(struct marching *marching, const struct marching_source *source,
                        struct render_mesh *mesh);

#endif
