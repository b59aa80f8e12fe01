/* Measures the error of rendered depths against known depths: sparse points, depth pictures. */
#include "render/internal.h"

#include <math.h>
#include <stdlib.h>

#define CLOSE 0.05 /* largest relative error that counts as right */

vkn_status render_depth_error(const struct render_evaluation *request, size_t index,
                              const struct vkn_picture *picture, struct vkn_evaluated_view *view)
{
    const struct scene_split *split = &request->scene->splits[request->split];
    const struct scene_camera *camera = &split->cameras[index];
    view->depth_error = view->depth_inliers = (double)NAN;
    view->depths = camera->depth_count;
    if (view->depths == 0)
        return VKN_OK;
    double *errors = base_alloc(view->depths, sizeof *errors), right = 0;
    if (!errors)
        return VKN_ERROR;
    for (size_t i = 0; i < view->depths; i++) {
        const struct scene_depth *known = &split->depths[camera->first_depth + i];
        size_t pixel = (size_t)known->y * picture->width + (size_t)known->x;
        double depth = (double)known->depth / request->scene->scale;
        /* A depth of 0 means that nothing is there: an error of 1. */
        errors[i] = fabs((double)picture->depth[pixel] / depth - 1);
        right += errors[i] <= CLOSE ? 1 : 0;
    }
    base_sort(errors, view->depths);
    view->depth_error = errors[view->depths / 2];
    view->depth_inliers = right / (double)view->depths;
    free(errors);
    return VKN_OK;
}
