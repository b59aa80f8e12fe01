/* Finds the box of the object that most training views look at, from points on the surfaces. */
#include <stdlib.h>

#include "render/mesh.h"

#define OBJECT_POINTS 16384u

/* Returns the points' positions in training space, which the caller frees; NULL: out of memory. */
static double (*positions_of(const struct vkn_scene *scene, const struct render_mesh *cloud))[3]
{
    double(*points)[3] = base_alloc(cloud->vertex_count + 1, sizeof *points);
    for (size_t p = 0; p < cloud->vertex_count && points; p++)
        for (int i = 0; i < 3; i++)
            points[p][i] =
                ((double)cloud->vertices[p].position[i] + cloud->origin[i]) * scene->scale +
                scene->offset[i];
    return points;
}

vkn_status render_find_object(vkn_renderer *renderer, const struct vkn_scene *scene,
                              struct report_progress *progress, const volatile sig_atomic_t *stop,
                              double low[3], double high[3], const char **problem)
{
    const struct render_points_params request = {.count = OBJECT_POINTS};
    struct render_mesh cloud;
    double(*points)[3] = NULL;
    vkn_status status = render_points(renderer, scene, &request, progress, stop, &cloud);
    if (status == VKN_OK) {
        points = positions_of(scene, &cloud);
        status = points ? scene_find_object(scene, points, cloud.vertex_count, low, high, problem)
                        : VKN_ERROR;
    }
    free(points);
    render_mesh_free(&cloud);
    return status;
}
