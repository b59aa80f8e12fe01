/* Meshes and point clouds of a trained field, and their files. */
#ifndef RENDER_MESH_H
#define RENDER_MESH_H

#include <signal.h>

#include <vknerf/export.h>
#include <vknerf/renderer.h>

#include "render/marching.h"
#include "render/sight.h"
#include "report/report.h"
#include "scene/scene.h"

/* ---- what is looked at --------------------------------------------------------------------- */

struct render_mesh_params {
    double low[3], high[3]; /* box, in the dataset's space; all zero: the unit cube of training
                               space */
    uint32_t resolution;    /* voxels along its longest edge, 1 to MARCHING_MAX_POINTS - 1 */
    double threshold;       /* density of the surface, per dataset unit; 0: that at which 1/128 of
                               the unit cube's edge in training space absorbs half of the light:
                               about the size that its occupancy cells and finer features have, so
                               that what is denser hides what is behind it */
};

/* Whether the numbers are a box at all: all zero stands for none. */
bool render_box_given(const double low[3], const double high[3]);

/* `config`: what the field was trained with. Voxels are cubes: shorter edges of the box become whole numbers of them, the box keeping its
 * middle. VKN_BAD_INPUT names what is wrong: "crop", "resolution" or "threshold". */
vkn_status render_mesh_grid(const struct scene *scene, const struct vkn_config *config,
                            const struct render_mesh_params *params,
                            struct MeshGrid *grid);
/* The same in the dataset's units: the density of the surface, and the box between the faces. */
double render_mesh_threshold(const struct MeshGrid *grid);
double render_mesh_voxel(const struct MeshGrid *grid);
void render_mesh_box(const struct MeshGrid *grid, double low[3], double high[3]);

/* The surface of the renderer's field in the dataset's space. Its colours are those that are seen
 * from straight above each vertex. Nothing is where rendering skips cells as empty, and on the box's
 * faces and beyond, so that the mesh is closed. With VKN_UNSEEN_DROP vertices are marked for
 * render_mesh_drop_unseen. `sight`: of the same renderer; may be NULL for VKN_UNSEEN_KEEP. `progress` and
 * `stop` may be NULL. The caller frees *mesh, also after a failure. */
vkn_status render_mesh(vkn_renderer *renderer, const struct MeshGrid *grid, enum vkn_unseen unseen,
                       const struct sight *sight, struct report_progress *progress,
                       const volatile sig_atomic_t *stop, struct render_mesh *mesh);

/* ---- points -------------------------------------------------------------------------------- */

struct render_points_params {
    uint32_t count;         /* of points; fewer are found when rays rarely hit anything */
    uint32_t seed;
    double low[3], high[3]; /* box, in the dataset's space; all zero: everywhere */
};

/* Points on what the training views see, in the dataset's space: where rays through random places of
 * random views, as many of each, have lost half of their light, with the colours that the views have
 * there and the normals of normal maps. The same for the same seed. `progress` and `stop` may be NULL.
 * The caller frees *cloud, also after a failure. */
vkn_status render_points(vkn_renderer *renderer, const struct scene *scene,
                         const struct render_points_params *params,
                         struct report_progress *progress, const volatile sig_atomic_t *stop,
                         struct render_mesh *cloud);

/* ---- components ---------------------------------------------------------------------------- */

/* Removes the triangles whose vertices are all MESH_UNSEEN, and vertices of no triangle. *removed: how
 * many vertices are gone. The others keep their order. */
vkn_status render_mesh_drop_unseen(struct render_mesh *mesh, size_t *removed);

/* Removes the connected parts of less than `vertices` vertices; with `largest` all but the largest
 * (the first of several). The others keep their order. *parts: how many there were, *removed: how
 * many are gone. */
vkn_status render_mesh_clean(struct render_mesh *mesh, size_t vertices, bool largest, size_t *parts,
                             size_t *removed);

/* ---- files --------------------------------------------------------------------------------- */

enum mesh_format { MESH_PLY, MESH_OBJ };
/* By the path's end, .ply or .obj. VKN_BAD_INPUT names the path. */
vkn_status render_mesh_format(const char *path, enum mesh_format *format);
/* Into a writer that the caller has begun, and commits or aborts. A mesh without triangles becomes a
 * point cloud. Errors name the file. */
vkn_status render_mesh_write(struct base_file_writer *writer, enum mesh_format format,
                             const struct render_mesh *mesh);

#endif
