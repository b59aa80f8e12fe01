/* Pictures as those who use the library have them: rendered, photographed, written. */
#include <stdlib.h>

#include "render/internal.h"
#include "render/write_view.h"

/* What it owns goes over to a picture of the caller's. */
static vkn_status hand_over(struct vkn_picture *made, struct vkn_picture **picture)
{
    *picture = base_alloc(1, sizeof **picture);
    if (!*picture) {
        render_picture_free(made);
        return VKN_ERROR;
    }
    **picture = *made;
    return VKN_OK;
}

vkn_status vkn_render(vkn_renderer *renderer, const struct vkn_camera *camera,
                      const struct vkn_picture_params *given, struct vkn_picture **picture)
{
    BASE_C_LOCALE;
    BASE_NEED(picture);
    *picture = NULL;
    BASE_NEED(renderer);
    BASE_NEED(camera);
    struct vkn_picture_params own, *params = &own;
    BASE_TRY(BASE_READ(__func__, given, params, supersample));
    const struct vkn_config *config = vkn_renderer_config(renderer);
    struct scene_camera view;
    BASE_TRY(scene_own_camera(camera, config->scene.scale, config->scene.offset, &view));
    struct vkn_picture made;
    BASE_TRY(render_picture(renderer, &view, render_background(params->background, config),
                            params->supersample, &made));
    return hand_over(&made, picture);
}

void vkn_picture_free(struct vkn_picture **picture)
{
    if (!picture || !*picture)
        return;
    render_picture_free(*picture);
    free(*picture);
    *picture = NULL;
}

/* ---- photographs ----------------------------------------------------------------------------- */

static vkn_status read_image(const vkn_scene *scene, enum scene_split_name split, size_t view,
                             float background, struct vkn_picture *picture)
{
    size_t count = (size_t)picture->width * picture->height;
    uint32_t *pixels = base_alloc(count, sizeof *pixels);
    picture->color = base_alloc(count, 3 * sizeof *picture->color);
    picture->opacity = base_alloc(count, sizeof *picture->opacity);
    picture->used = base_alloc(count, 1);
    vkn_status status = pixels && picture->color && picture->opacity && picture->used
                            ? scene_read_view(scene, split, view, 1, pixels)
                            : VKN_ERROR;
    if (status == VKN_OK)
        render_composite_pixels(pixels, count, background, picture->color);
    for (size_t i = 0; i < count && status == VKN_OK; i++) {
        picture->used[i] = pixels[i] != SCENE_IGNORED;
        picture->opacity[i] = picture->used[i] ? (float)(pixels[i] >> 24) / 255.0F : 0.0F;
    }
    free(pixels);
    return status;
}

vkn_status vkn_scene_image(vkn_scene *scene, enum vkn_split split, size_t view,
                           enum vkn_background background, struct vkn_picture **picture)
{
    BASE_C_LOCALE;
    BASE_NEED(picture);
    *picture = NULL;
    BASE_NEED(scene);
    enum scene_split_name name;
    BASE_TRY(scene_find_view(scene, split, view, &name));
    const struct scene_camera *camera = &scene->splits[name].cameras[view];
    struct vkn_picture made = {.width = camera->width, .height = camera->height};
    vkn_status status =
        read_image(scene, name, view, background == VKN_BACKGROUND_BLACK ? 0.0F : 1.0F, &made);
    if (status == VKN_OK)
        return hand_over(&made, picture);
    render_picture_free(&made);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static vkn_status write_normals(const struct vkn_picture *picture, const char *file)
{
    float *rgb = base_alloc((size_t)picture->width * picture->height, 3 * sizeof *rgb);
    if (!rgb)
        return VKN_ERROR;
    render_normal_colors(picture, rgb);
    vkn_status status = render_write_color(file, rgb, picture->width, picture->height);
    free(rgb);
    return status;
}

vkn_status vkn_picture_write(const struct vkn_picture *picture, enum vkn_map map, const char *file)
{
    BASE_C_LOCALE;
    BASE_NEED(picture);
    BASE_NEED(file);
    uint32_t width = picture->width, height = picture->height;
    if (map == VKN_MAP_COLOR && picture->color)
        return render_write_color(file, picture->color, width, height);
    if (map == VKN_MAP_OPACITY && picture->opacity)
        return render_write_grey(file, picture->opacity, width, height);
    if (map == VKN_MAP_DEPTH && picture->depth && picture->opacity)
        return render_write_depth(file, picture);
    if (map == VKN_MAP_NORMAL && picture->normal && picture->opacity)
        return write_normals(picture, file);
    return base_fail(VKN_BAD_INPUT, "%s: the picture has no such map", file);
}
