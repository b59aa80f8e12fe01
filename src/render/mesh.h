/* Extracts the surface of a field on a voxel grid by marching cubes. Private to render. */
#ifndef RENDER_MESH_H
#define RENDER_MESH_H

#include "render/marching_cubes.h"
#include "render/render.h"
#include "render/visibility_maps.h"

/* Returns whether the origin is not 0 0 0. */
bool render_has_origin(const double origin[3]);
/* Computes `offset` of training = local * scale + offset, local = dataset - render_local_origin. */
void render_local_offset(const struct vkn_scene *scene, float offset[3]);

/* Computes the voxel grid of `params` in training space, of the unit cube without a box. Voxels are
 * cubes: edges of the box are rounded up to whole voxels around its centre. `config`: the field's.
 * VKN_BAD_INPUT names the wrong parameter: "crop", "resolution" or "threshold". */
vkn_status render_mesh_grid(const struct vkn_scene *scene, const struct vkn_config *config,
                            const struct render_mesh_params *params, struct MeshGrid *grid);
/* Return a grid's surface density, voxel edge and box, in dataset units. The caller passes the
 * box's rotation, because the grid's axes are rounded to f32. */
double render_mesh_threshold(const struct MeshGrid *grid);
double render_mesh_voxel(const struct MeshGrid *grid);
void render_mesh_box(const struct vkn_scene *scene, const struct MeshGrid *grid,
                     const double rotation[3], struct scene_box *box);

/* Extracts the surface of the renderer's field in dataset space. Vertex colours are the field's
 * colours as seen along the inward normal, at the renderer's frozen time, else at time 0. Density
 * counts as zero in cells that rendering skips as empty, and on the box's faces and beyond, so that
 * the mesh is closed. With VKN_UNSEEN_DROP vertices that no training view sees are marked for
 * render_mesh_drop_unseen. `visibility_maps`: the renderer's; or NULL for VKN_UNSEEN_KEEP.
 * `progress`, `stop`: or NULL. The caller frees *mesh, also after a failure. */
vkn_status render_mesh(vkn_renderer *renderer, const struct MeshGrid *grid, enum vkn_unseen unseen,
                       const struct visibility_maps *visibility_maps,
                       struct report_progress *progress, const volatile sig_atomic_t *stop,
                       struct render_mesh *mesh);

#endif
