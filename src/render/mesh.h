/* Inside of the render room: how the surface of a field is found. */
#ifndef RENDER_MESH_H
#define RENDER_MESH_H

#include "render/marching_cubes.h"
#include "render/render.h"
#include "render/visibility_maps.h"

/* Whether the numbers are a box at all: all zero stands for none. */
bool render_box_given(const double low[3], const double high[3]);

bool render_has_origin(const double origin[3]); /* it is not 0 0 0 */
/* What positions in training space are scaled about for positions that count from
 * render_local_origin. */
void render_local_offset(const struct vkn_scene *scene, float offset[3]);

/* `config`: what the field was trained with. Without a box that of the unit cube of training space.
 * Voxels are cubes: shorter edges of the box become whole numbers of them, the box keeping its
 * middle. VKN_BAD_INPUT names what is wrong: "crop", "resolution" or "threshold". */
vkn_status render_mesh_grid(const struct vkn_scene *scene, const struct vkn_config *config,
                            const struct render_mesh_params *params, struct MeshGrid *grid);
/* Of a grid, in the dataset's units: the density of the surface, a voxel's edge, and the box
 * between the faces. */
double render_mesh_threshold(const struct MeshGrid *grid);
double render_mesh_voxel(const struct MeshGrid *grid);
void render_mesh_box(const struct vkn_scene *scene, const struct MeshGrid *grid, double low[3],
                     double high[3]);

/* The surface of the renderer's field in the dataset's space. Its colours are those that are seen
 * from straight above each vertex, at the time that the renderer is frozen at, else 0. Nothing is
 * where rendering skips cells as empty, and on the box's faces and beyond, so that the mesh is
 * closed. With VKN_UNSEEN_DROP vertices are marked for render_mesh_drop_unseen. `sight`: of the
 * same renderer; may be NULL for VKN_UNSEEN_KEEP. `progress` and `stop` may be NULL. The caller
 * frees *mesh, also after a failure. */
vkn_status render_mesh(vkn_renderer *renderer, const struct MeshGrid *grid, enum vkn_unseen unseen,
                       const struct visibility_maps *visibility_maps,
                       struct report_progress *progress, const volatile sig_atomic_t *stop,
                       struct render_mesh *mesh);

#endif
