/* Copies the cameras of a scene's views as the renderer's training has refined them: poses and
 * lenses of training views, lenses of other views. */
#include <stdlib.h>
#include <string.h>

#include "images/images.h"
#include "rays/rays.h"
#include "render/internal.h"
#include "volume/volume.h"

/* Finds the views in the saved state, and sets the plan as far as the error map depends on it. */
static vkn_status find_saved(const struct vkn_renderer *r, const struct vkn_scene *scene,
                             struct images_plan *plan, struct step_views *views)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    uint64_t cells = images_saved_cells(train, &r->state, plan);
    return step_find_views(r->checkpoint, &r->state, train->camera_count, cells, views);
}

vkn_status render_find_saved_views(const struct vkn_renderer *r, const struct vkn_scene *scene,
                                   struct step_views *views)
{
    struct images_plan plan;
    return find_saved(r, scene, &plan, views);
}

vkn_status render_write_masks(const struct vkn_renderer *r, const struct vkn_scene *scene,
                              const char *folder, const volatile sig_atomic_t *stop,
                              struct step_outliers *found)
{
    struct images_plan plan;
    struct step_views saved;
    if (!r->state.has_outliers)
        return base_fail(VKN_BAD_INPUT, "%s: was trained without loss.robust, which finds masks",
                         r->checkpoint);
    BASE_TRY(base_make_last_folder(folder));
    BASE_TRY(find_saved(r, scene, &plan, &saved));
    uint64_t sky = volume_sky_cells(&r->setup.config) * sizeof(struct ErrorCell);
    const struct ErrorCell *map =
        (const void *)((const char *)r->state.data + sizeof(struct State) + sky);
    *found = images_count_outliers(&plan, &scene->splits[SCENE_TRAIN], map);
    return images_write_masks(scene, &plan, found->views > 0 ? map : NULL, folder, stop);
}

vkn_status render_check_views(const struct vkn_renderer *r, const struct vkn_scene *scene)
{
    size_t all = scene->splits[SCENE_TRAIN].camera_count;
    if (all == r->step->setup.constants.camera_count)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: has %zu training views, the training has %u", scene->path,
                     all, r->step->setup.constants.camera_count);
}

static vkn_status read_views(const struct vkn_renderer *r, const struct vkn_scene *scene,
                             size_t first, size_t count, struct View *views)
{
    struct step_views saved;
    if (!r->step) {
        BASE_TRY(render_find_saved_views(r, scene, &saved));
        memcpy(views, saved.cameras + first, count * sizeof *views);
        return VKN_OK;
    }
    BASE_TRY(render_check_views(r, scene));
    return step_read_views(r->step, first, count, views);
}

/* Moves the training views [first, first + count), whose cameras have the scene's poses, to the
 * refined poses. */
static vkn_status refine(const struct vkn_renderer *r, const struct vkn_scene *scene, size_t first,
                         size_t count, struct scene_camera *cameras)
{
    if (!r || !rays_refine(&r->setup.config))
        return VKN_OK;
    struct View *views = base_alloc(count, sizeof *views);
    vkn_status status = views ? read_views(r, scene, first, count, views) : VKN_ERROR;
    for (size_t i = 0; i < count && status == VKN_OK; i++)
        step_move_camera(&views[i], &cameras[i]);
    free(views);
    return status;
}

/* Gives views that are no training views the refined lenses of the training views with the same
 * lens. Their poses stay. */
static vkn_status refine_lenses(const struct vkn_renderer *r, const struct vkn_scene *scene,
                                size_t count, struct scene_camera *cameras)
{
    const struct scene_split *train = &scene->splits[SCENE_TRAIN];
    struct View view = {0};
    size_t last = train->camera_count; /* the training view that was read */
    if (!r || r->setup.config.scene.refine <= VKN_REFINEMENT_POSES)
        return VKN_OK;
    for (size_t i = 0; i < count; i++) {
        size_t found = 0;
        while (found < train->camera_count && !scene_same_lens(&train->cameras[found], &cameras[i]))
            found++;
        if (found == train->camera_count)
            continue;
        if (found != last)
            BASE_TRY(read_views(r, scene, found, 1, &view));
        last = found;
        memset(view.turn, 0, sizeof view.turn);
        memset(view.shift, 0, sizeof view.shift);
        step_move_camera(&view, &cameras[i]);
    }
    return VKN_OK;
}

/* Changes the cameras of the views [first, first + count) of a split, as given in the scene. */
static vkn_status refine_split(const struct vkn_renderer *r, const struct vkn_scene *scene,
                               enum scene_split_name split, size_t first, size_t count,
                               struct scene_camera *cameras)
{
    return split == SCENE_TRAIN ? refine(r, scene, first, count, cameras)
                                : refine_lenses(r, scene, count, cameras);
}

vkn_status render_split_cameras(const struct vkn_renderer *renderer, const struct vkn_scene *scene,
                                enum scene_split_name split, struct scene_camera **cameras)
{
    const struct scene_split *from = &scene->splits[split];
    struct scene_camera *copy = base_alloc(from->camera_count, sizeof *copy);
    *cameras = copy;
    if (!copy)
        return VKN_ERROR;
    memcpy(copy, from->cameras, from->camera_count * sizeof *copy);
    vkn_status status = refine_split(renderer, scene, split, 0, from->camera_count, copy);
    if (status != VKN_OK) {
        free(copy);
        *cameras = NULL;
    }
    return status;
}

vkn_status vkn_renderer_camera(const vkn_renderer *renderer, const vkn_scene *scene,
                               enum vkn_split split, size_t view, struct vkn_camera *camera)
{
    BASE_C_LOCALE;
    BASE_NEED(renderer);
    BASE_NEED(scene);
    BASE_NEED(camera);
    BASE_USE(gpu_guard(renderer->device), renderer);
    enum scene_split_name name;
    BASE_TRY(scene_find_view(scene, split, view, &name));
    struct scene_camera moved = scene->splits[name].cameras[view];
    BASE_TRY(refine_split(renderer, scene, name, view, 1, &moved));
    const struct vkn_camera converted = scene_camera_to_public(&moved, scene->scale, scene->offset);
    const struct vkn_camera *found = &converted;
    return BASE_FILL(vkn_camera, found, camera, pose);
}
