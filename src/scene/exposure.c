/* Compares the exposures of images, by their EXIF data. */
#include <math.h>

#include "scene/scene.h"

float scene_relative_exposure(const struct scene_split *split, const struct scene_camera *camera)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < split->camera_count && camera->has_exposure; i++) {
        sum += split->cameras[i].has_exposure ? (double)split->cameras[i].exposure : 0;
        count += split->cameras[i].has_exposure ? 1 : 0;
    }
    if (count == 0)
        return 0;
    float relative = (float)((double)camera->exposure - sum / count);
    return fminf(fmaxf(relative, -SCENE_MOST_EXPOSURE), SCENE_MOST_EXPOSURE);
}
