/* Creates the cameras of a rendering: a split, an orbit, an interpolation or a camera path. */
#include "render/render.h"

#include <math.h>
#include <stdlib.h>

static vkn_status split_views(const vkn_renderer *renderer, const struct vkn_scene *scene,
                              enum vkn_split split, struct scene_camera_path *views)
{
    enum scene_split_name name;
    BASE_TRY(scene_find_split(scene, split, &name));
    views->count = scene->splits[name].camera_count;
    return render_split_cameras(renderer, scene, name, &views->cameras);
}

/* Makes an orbit, or an interpolation, from the training views as the renderer's training has
 * refined them. */
static vkn_status path_views(const vkn_renderer *renderer, const struct vkn_scene *scene,
                             const struct vkn_render_params *params,
                             struct scene_camera_path *views)
{
    struct vkn_scene refined = *scene;
    struct scene_camera **cameras = &refined.splits[SCENE_TRAIN].cameras;
    BASE_TRY(render_split_cameras(renderer, scene, SCENE_TRAIN, cameras));
    vkn_status status = params->orbit > 0
                            ? scene_orbit(&refined, params->orbit, &views->cameras)
                            : scene_interpolate(&refined, params->interpolate, &views->cameras);
    free(*cameras);
    return status;
}

/* Replaces the cameras by panoramas at their positions. Panoramas of generated cameras (orbit,
 * interpolation) are level, since their roll and tilt have no meaning. */
static vkn_status make_panoramas(const struct vkn_scene *scene,
                                 const struct vkn_render_params *params,
                                 struct scene_camera_path *views)
{
    bool level = params->orbit > 0 || params->interpolate > 0;
    double up[3];
    if (params->lens != VKN_LENS_EQUIRECTANGULAR)
        return base_fail(VKN_BAD_INPUT, "lens: %u is not supported; only equirectangular is",
                         (unsigned)params->lens);
    if (params->width > SCENE_MAX_IMAGE_SIZE || params->height > SCENE_MAX_IMAGE_SIZE / 2)
        return base_fail(VKN_BAD_INPUT, "a panorama of %u x %u pixels is larger than %ux%u",
                         params->width, params->height, SCENE_MAX_IMAGE_SIZE,
                         SCENE_MAX_IMAGE_SIZE / 2);
    scene_up(&scene->splits[SCENE_TRAIN], up);
    for (size_t i = 0; i < views->count; i++)
        views->cameras[i] =
            scene_panorama(&views->cameras[i], params->width, params->height, level ? up : NULL);
    return VKN_OK;
}

/* Sets another size with the same vertical field of view: a wider picture shows more at its sides.
 * A panorama keeps its full field of view. */
static vkn_status resize(struct scene_camera *camera, uint32_t width, uint32_t height)
{
    double aspect = (double)camera->width / camera->height;
    if (width == 0)
        width = (uint32_t)fmax(1.0, round(height * aspect));
    if (height == 0)
        height = (uint32_t)fmax(1.0, round(width / aspect));
    if (width > SCENE_MAX_IMAGE_SIZE || height > SCENE_MAX_IMAGE_SIZE)
        return base_fail(VKN_BAD_INPUT, "a picture of %ux%u pixels is larger than %ux%u", width,
                         height, SCENE_MAX_IMAGE_SIZE, SCENE_MAX_IMAGE_SIZE);
    float ratio = (float)height / (float)camera->height;
    camera->center_x *= (float)width / (float)camera->width;
    camera->center_y *= ratio;
    camera->focal_x *=
        scene_is_panoramic(camera->lens) ? (float)width / (float)camera->width : ratio;
    camera->focal_y *= ratio;
    camera->width = width;
    camera->height = height;
    return VKN_OK;
}

vkn_status render_views(const vkn_renderer *renderer, const struct vkn_scene *scene,
                        const struct vkn_render_params *params, struct scene_camera_path *views)
{
    *views = (struct scene_camera_path){.count = params->orbit > 0 ? params->orbit
                                                                   : params->interpolate};
    vkn_status status = VKN_OK;
    if (views->count > SCENE_MAX_FRAMES)
        return base_fail(VKN_BAD_INPUT, "%zu views are more than %d", views->count,
                         SCENE_MAX_FRAMES);
    if (params->camera_path)
        status =
            scene_read_camera_path(scene, params->camera_path, params->dataparser, NULL, views);
    else if (params->orbit > 0 || params->interpolate > 0)
        status = path_views(renderer, scene, params, views);
    else
        status = split_views(renderer, scene, params->split, views);
    bool panoramas = params->lens != VKN_LENS_PERSPECTIVE;
    bool other_size = !panoramas && (params->width > 0 || params->height > 0);
    if (status == VKN_OK && panoramas)
        status = make_panoramas(scene, params, views);
    for (size_t i = 0; i < views->count && status == VKN_OK && other_size; i++)
        status = resize(&views->cameras[i], params->width, params->height);
    if (status != VKN_OK) {
        free(views->cameras);
        *views = (struct scene_camera_path){0};
    }
    return status;
}
