/* Extracts the surface of a field within the given box, else within the box of visible points. */
#include "render/mesh.h"

#define BOX_OUTLIERS 0.01 /* share of the visible points ignored at each end of an axis */

/* Finds the box of the visible surface. Scenes with aabb_scale above 1 have surroundings, so the
 * farthest points are ignored. */
static vkn_status find_box(const struct vkn_scene *scene,
                           const struct visibility_maps *visibility_maps,
                           struct render_mesh_params *request)
{
    double outliers = scene->aabb_scale > 1 ? BOX_OUTLIERS : 0.0;
    return visibility_maps_box(visibility_maps, scene, outliers, request->box.low,
                               request->box.high);
}

static struct render_voxels voxels_of(const struct vkn_scene *scene, const struct MeshGrid *grid,
                                      const double rotation[3])
{
    struct render_voxels voxels = {.edge = render_mesh_voxel(grid),
                                   .threshold = render_mesh_threshold(grid)};
    for (int i = 0; i < 3; i++)
        voxels.counts[i] = grid->points[i] - 1;
    render_mesh_box(scene, grid, rotation, &voxels.box);
    return voxels;
}

/* The first render_mesh_grid checks the request before visibility maps are rendered; without a box
 * the second replaces its grid. Maps are not needed if a box is given and unseen parts are kept. */
vkn_status render_surface(vkn_renderer *renderer, const struct vkn_scene *scene,
                          const struct render_mesh_params *params, struct report_progress *progress,
                          const volatile sig_atomic_t *stop, struct render_mesh *mesh,
                          struct render_voxels *voxels)
{
    const struct vkn_config *config = vkn_renderer_config(renderer);
    struct render_mesh_params request = *params;
    struct visibility_maps visibility_maps = {0};
    struct MeshGrid grid;
    bool cropped = scene_box_given(&request.box);
    vkn_status status = render_mesh_grid(scene, config, &request, &grid);
    if (status == VKN_OK && (params->unseen != VKN_UNSEEN_KEEP || !cropped))
        status = visibility_maps_create(renderer, scene, progress, stop, &visibility_maps);
    if (status == VKN_OK && !cropped)
        status = find_box(scene, &visibility_maps, &request);
    if (status == VKN_OK && !cropped)
        status = render_mesh_grid(scene, config, &request, &grid);
    if (status == VKN_OK)
        status =
            render_mesh(renderer, &grid, params->unseen, &visibility_maps, progress, stop, mesh);
    render_local_origin(scene, mesh->origin);
    if (status == VKN_OK)
        *voxels = voxels_of(scene, &grid, request.box.rotation);
    visibility_maps_destroy(&visibility_maps);
    return status;
}
