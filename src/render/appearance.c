/* Chooses what the camera of a picture makes of colours: a plain exposure, or the appearance of a
 * view as the training has estimated it. */
#include <math.h>
#include <string.h>

#include "render/internal.h"
#include "volume/volume.h"

vkn_status render_set_exposure(vkn_renderer *renderer, double exposure)
{
    struct Config *constants = &renderer->setup.constants;
    if (!(fabs(exposure) <= (double)SCENE_MOST_EXPOSURE))
        return base_fail(VKN_BAD_INPUT, "exposure: %g is not from %g to %g stops", exposure,
                         -(double)SCENE_MOST_EXPOSURE, (double)SCENE_MOST_EXPOSURE);
    memset(constants->picture_appearance, 0, sizeof constants->picture_appearance);
    constants->picture_appearance[0] = (float)exposure;
    constants->picture_kind = exposure != 0 ? APPEARANCE_EXPOSURE : 0;
    return VKN_OK;
}

/* Reads the appearance of a training view. */
static vkn_status read_appearance(const struct vkn_renderer *r, const struct vkn_scene *scene,
                                  size_t view, struct Appearance *appearance)
{
    struct step_views saved;
    if (r->step) {
        BASE_TRY(render_check_views(r, scene));
        return step_read_appearances(r->step, view, 1, appearance);
    }
    BASE_TRY(render_find_saved_views(r, scene, &saved));
    *appearance = saved.appearances[view];
    return VKN_OK;
}

vkn_status render_set_view_appearance(struct vkn_renderer *r, const struct vkn_scene *scene,
                                      enum scene_split_name split, size_t view)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    const struct scene_camera *camera = &scene->splits[split].cameras[view];
    struct Config *constants = &r->setup.constants;
    struct Appearance appearance = {0};
    size_t source = split == SCENE_TRAIN ? view : 0; /* training view with the same camera */
    BASE_TRY(render_set_exposure(r, 0));
    if (volume_appearance_kind(&r->setup.config) == 0)
        return VKN_OK;
    while (split != SCENE_TRAIN && source < train->camera_count &&
           !step_same_camera(&train->cameras[source], camera))
        source++;
    bool needs_camera = volume_appearance_kind(&r->setup.config) == APPEARANCE_FULL;
    if (source < train->camera_count && (split == SCENE_TRAIN || needs_camera))
        BASE_TRY(read_appearance(r, scene, source, &appearance));
    if (split != SCENE_TRAIN) {
        for (unsigned i = 1; i < APPEARANCE_IMAGE; i++)
            appearance.values[i] = 0;
        appearance.values[0] = scene_relative_exposure(train, camera);
    }
    memcpy(constants->picture_appearance, appearance.values, sizeof appearance.values);
    constants->picture_kind = volume_appearance_kind(&r->setup.config);
    return VKN_OK;
}
