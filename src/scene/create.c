/* Implements vkn_scene_create: makes a scene from images in memory. */
#include <stdlib.h>
#include <string.h>

#include "scene/image.h"
#include "scene/transforms.h"

/* A caller's view and its camera, in structs of this version's size. */
struct view {
    struct vkn_view given;
    struct vkn_camera camera;
};

/* Views of all splits, in the order in which they were given. */
struct views {
    const char *name; /* name of the scene */
    struct view *views;
    size_t count;
};

/* ---- reading the caller's views -------------------------------------------------------------- */

static vkn_status check_view(const struct vkn_view *given, struct view *view)
{
    if (!given)
        return base_fail(VKN_BAD_INPUT, "it is NULL");
    struct vkn_view *copied = &view->given;
    BASE_TRY(BASE_READ("vkn_view", vkn_view, given, copied, mask));
    if (!copied->camera || !copied->pixels)
        return base_fail(VKN_BAD_INPUT, "%s: missing", copied->camera ? "pixels" : "camera");
    if ((unsigned)copied->split > VKN_SPLIT_TEST)
        return base_fail(VKN_BAD_INPUT, "split: %u is none of its values, 0 to %u",
                         (unsigned)copied->split, (unsigned)VKN_SPLIT_TEST);
    BASE_TRY(scene_read_camera(copied->camera, &view->camera));
    if (view->camera.width > SCENE_MAX_IMAGE_SIZE || view->camera.height > SCENE_MAX_IMAGE_SIZE)
        return base_fail(VKN_BAD_INPUT, "camera: width and height: %u x %u pixels: must be 1 to %u",
                         view->camera.width, view->camera.height, SCENE_MAX_IMAGE_SIZE);
    return VKN_OK;
}

static vkn_status read_views(const struct vkn_view *const *given, struct views *views)
{
    views->views = base_alloc(views->count, sizeof *views->views);
    if (!views->views)
        return VKN_ERROR;
    for (size_t i = 0; i < views->count; i++) {
        vkn_status status = check_view(given[i], &views->views[i]);
        if (status == VKN_OK)
            continue;
        char *message = base_format("%s", vkn_last_error());
        base_fail(status, "%s: view %zu: %s", views->name, i, message ? message : "out of memory");
        free(message);
        return status;
    }
    return VKN_OK;
}

static enum scene_split_name split_of(const struct view *view)
{
    return view->given.split == VKN_SPLIT_TEST  ? SCENE_TEST
           : view->given.split == VKN_SPLIT_VAL ? SCENE_VAL
                                                : SCENE_TRAIN;
}

/* ---- frames, as a file would give them ------------------------------------------------------- */

static vkn_status make_frame(const struct views *views, size_t index,
                             struct transforms_frame *frame)
{
    const struct vkn_camera *camera = &views->views[index].camera;
    *frame = (struct transforms_frame){
        .index = index,
        .file_path = base_format("view %zu", index),
        .image_path = base_format("%s: view %zu", views->name, index),
        .width = camera->width,
        .height = camera->height,
        .lens = {.focal = {camera->focal_x, camera->focal_y},
                 .center = {camera->center_x, camera->center_y},
                 .size = {camera->width, camera->height},
                 .kind = camera->lens,
                 .per_radian = true},
        .time = camera->time,
    };
    for (size_t i = 0; i < SCENE_COEFFICIENT_COUNT; i++)
        frame->lens.distortion[i] = lens_coefficient(camera, i);
    memcpy(frame->pose, camera->pose, sizeof frame->pose);
    return frame->file_path && frame->image_path ? VKN_OK : VKN_ERROR;
}

static vkn_status make_frames(const struct views *views, enum scene_split_name split,
                              struct transforms *file)
{
    *file = (struct transforms){.file = base_format("%s", views->name),
                                .list = "views",
                                .lens = lens_none,
                                .measures_space = true,
                                .image_factor = 1};
    file->frames = base_alloc(views->count, sizeof *file->frames);
    if (!file->file || !file->frames)
        return VKN_ERROR;
    for (size_t i = 0; i < views->count; i++)
        if (split_of(&views->views[i]) == split)
            BASE_TRY(make_frame(views, i, &file->frames[file->count++]));
    return VKN_OK;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static vkn_status downscale_pixels(struct vkn_scene *scene, const struct views *views,
                                   enum scene_split_name name)
{
    struct scene_split *split = &scene->splits[name];
    size_t next = 0;
    split->pixels = base_alloc((size_t)split->pixel_count, sizeof *split->pixels);
    if (!split->pixels)
        return VKN_ERROR;
    for (size_t i = 0; i < views->count; i++) {
        const struct view *view = &views->views[i];
        if (split_of(view) != name)
            continue;
        const struct scene_camera *camera = &split->cameras[next++];
        uint32_t *pixels = split->pixels + camera->first_pixel;
        split->has_alpha |=
            image_downscale(view->given.pixels, view->given.mask, view->camera.width,
                            view->camera.height, scene->load_downscale, pixels);
        mask_mark_outside_lens(camera, pixels);
    }
    return VKN_OK;
}

static vkn_status make_scene(const struct views *views, const struct scene_options *options,
                             struct vkn_scene *scene)
{
    struct transforms files[SCENE_SPLITS] = {{0}};
    vkn_status status = (scene->path = base_format("%s", views->name)) ? VKN_OK : VKN_ERROR;
    for (unsigned split = 0; split < SCENE_SPLITS && status == VKN_OK; split++)
        status = make_frames(views, split, &files[split]);
    if (status == VKN_OK)
        status = scene_assemble(scene, files, false, options);
    for (unsigned split = 0; split < SCENE_SPLITS; split++) {
        if (status == VKN_OK && files[split].count > 0)
            status = downscale_pixels(scene, views, split);
        transforms_free(&files[split]);
    }
    return status;
}

vkn_status vkn_scene_create(const char *name, const struct vkn_view *const *views, size_t count,
                            const vkn_config *config, vkn_scene **scene)
{
    BASE_C_LOCALE;
    BASE_NEED(scene);
    *scene = NULL;
    BASE_NEED(name);
    BASE_NEED(views);
    const struct scene_options options = scene_options_of(name, config_or_default(config));
    struct views copied = {.name = name, .count = count};
    struct vkn_scene *made = base_alloc(1, sizeof *made);
    vkn_status status = made ? read_views(views, &copied) : VKN_ERROR;
    if (status == VKN_OK)
        status = make_scene(&copied, &options, made);
    free(copied.views);
    if (status != VKN_OK)
        scene_close(&made);
    *scene = made;
    return status;
}
