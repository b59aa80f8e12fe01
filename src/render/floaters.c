/* Measures floaters: opacity that a field has in the empty space close to a camera. */
#include "render/internal.h"

#include <math.h>

vkn_status render_floaters(vkn_renderer *renderer, const struct vkn_scene *scene,
                           const struct scene_camera *camera, double *opacity_mean)
{
    double nearest = scene_nearest_point(scene, camera), sum = 0;
    float *far = &renderer->setup.constants.far_distance, old_far = *far;
    struct vkn_picture picture;
    *opacity_mean = (double)NAN;
    if (nearest == 0)
        return VKN_OK;
    *far = fminf(old_far, (float)(0.5 * nearest));
    vkn_status status = render_picture(renderer, camera, VKN_BACKGROUND_WHITE, 1, &picture);
    *far = old_far;
    BASE_TRY(status);
    size_t count = (size_t)picture.width * picture.height;
    for (size_t i = 0; i < count; i++)
        sum += (double)picture.opacity[i];
    *opacity_mean = sum / (double)count;
    render_picture_free(&picture);
    return VKN_OK;
}
