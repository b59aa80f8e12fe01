/* Implements the library's functions on pictures: rendering, reading images, writing files. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/internal.h"
#include "render/write_view.h"

/* Moves *made into a new picture of the caller; frees *made after a failure. */
static vkn_status move_to_caller(struct vkn_picture *made, struct vkn_picture **picture)
{
    *picture = base_alloc(1, sizeof **picture);
    if (!*picture) {
        render_picture_free(made);
        return VKN_ERROR;
    }
    **picture = *made;
    return VKN_OK;
}

vkn_status render_crop(vkn_renderer *renderer, const struct scene_box *box)
{
    struct Config *constants = &renderer->setup.constants,
                  *coarse = &renderer->coarse_setup.constants;
    const struct vkn_config *config = &renderer->setup.config;
    BASE_TRY(scene_box_check(box));
    const struct scene_box_limits limits = scene_box_limits(box);
    bool is_given = scene_box_given(box);
    for (int k = 0; k < 3; k++) {
        double scale = config->scene.scale, offset = 0;
        for (int i = 0; i < 3; i++) {
            offset += limits.axes[k][i] * config->scene.offset[i];
            constants->crop_axes[3 * k + i] = (float)limits.axes[k][i];
        }
        constants->crop_low[k] = is_given ? (float)(limits.low[k] * scale + offset) : -FLT_MAX;
        constants->crop_high[k] = is_given ? (float)(limits.high[k] * scale + offset) : FLT_MAX;
    }
    memcpy(coarse->crop_low, constants->crop_low, sizeof coarse->crop_low);
    memcpy(coarse->crop_high, constants->crop_high, sizeof coarse->crop_high);
    memcpy(coarse->crop_axes, constants->crop_axes, sizeof coarse->crop_axes);
    return VKN_OK;
}

void render_unpremultiply(struct vkn_picture *picture)
{
    size_t pixels = (size_t)picture->width * picture->height;
    for (size_t i = 0; i < 3 * pixels; i++) {
        float opacity = picture->opacity[i / 3], color = picture->color[i];
        picture->color[i] = opacity > 0.0F ? fminf(color / opacity, 1.0F) : 0.0F;
    }
}

vkn_status render_begin_params(vkn_renderer *renderer, const char *what,
                               const struct vkn_picture_params *given,
                               struct vkn_picture_params *params, enum vkn_background *background)
{
    BASE_TRY(BASE_READ(what, vkn_picture_params, given, params, supersample));
    BASE_TRY(
        base_check_choice(what, "background", (unsigned)params->background, VKN_BACKGROUND_BLACK));
    const struct scene_box box =
        scene_box_of(params->crop, params->crop + 3, params->crop_rotation);
    *background = params->transparent
                      ? VKN_BACKGROUND_BLACK
                      : render_background(params->background, vkn_renderer_config(renderer));
    BASE_TRY(render_set_exposure(renderer, params->exposure));
    return render_crop(renderer, &box);
}

void render_end_params(vkn_renderer *renderer)
{
    render_crop(renderer, &(const struct scene_box){0});
    render_set_exposure(renderer, 0);
}

vkn_status vkn_render(vkn_renderer *renderer, const struct vkn_camera *camera,
                      const struct vkn_picture_params *given, struct vkn_picture **picture)
{
    BASE_C_LOCALE;
    BASE_NEED(picture);
    *picture = NULL;
    BASE_NEED(renderer);
    BASE_NEED(camera);
    BASE_USE(gpu_guard(renderer->device), renderer);
    const struct vkn_config *config = vkn_renderer_config(renderer);
    struct scene_camera view;
    BASE_TRY(scene_camera_from_public(camera, config->scene.scale, config->scene.offset, &view));
    struct vkn_picture made;
    struct vkn_picture_params params;
    enum vkn_background background;
    vkn_status status = render_begin_params(renderer, __func__, given, &params, &background);
    if (status == VKN_OK)
        status = render_picture(renderer, &view, background, params.supersample, &made);
    render_end_params(renderer);
    if (status == VKN_OK && params.transparent)
        render_unpremultiply(&made);
    return status == VKN_OK ? move_to_caller(&made, picture) : status;
}

void vkn_picture_free(struct vkn_picture **picture)
{
    if (!picture || !*picture)
        return;
    render_picture_free(*picture);
    free(*picture);
    *picture = NULL;
}

/* ---- images of the scene --------------------------------------------------------------------- */

/* Composites premultiplied RGBA8 pixels on a grey background, in sRGB space. */
static void composite(const uint32_t *pixels, size_t count, float background, float *rgb)
{
    for (size_t i = 0; i < count; i++) {
        float added = (1.0F - (float)(pixels[i] >> 24) / 255.0F) * background;
        for (size_t c = 0; c < 3; c++) {
            float value = (float)(pixels[i] >> 8 * c & 255) / 255.0F + added;
            rgb[3 * i + c] = value < 1.0F ? value : 1.0F;
        }
    }
}

vkn_status render_read_photograph(const struct vkn_scene *scene, enum scene_split_name split,
                                  size_t view, float background, struct vkn_picture *picture)
{
    const struct scene_camera *camera = &scene->splits[split].cameras[view];
    size_t count = (size_t)camera->width * camera->height;
    uint32_t *pixels = base_alloc(count, sizeof *pixels);
    *picture = (struct vkn_picture){.width = camera->width, .height = camera->height};
    picture->color = base_alloc(count, 3 * sizeof *picture->color);
    picture->opacity = base_alloc(count, sizeof *picture->opacity);
    picture->used = base_alloc(count, 1);
    vkn_status status = pixels && picture->color && picture->opacity && picture->used
                            ? scene_read_view(scene, split, view, 1, pixels)
                            : VKN_ERROR;
    if (status == VKN_OK)
        composite(pixels, count, background, picture->color);
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
    BASE_TRY(base_check_choice(__func__, "background", background, VKN_BACKGROUND_BLACK));
    BASE_TRY(scene_find_view(scene, split, view, &name));
    struct vkn_picture made;
    float grey = background == VKN_BACKGROUND_BLACK ? 0.0F : 1.0F;
    vkn_status status = render_read_photograph(scene, name, view, grey, &made);
    if (status == VKN_OK)
        return move_to_caller(&made, picture);
    render_picture_free(&made);
    return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static vkn_status write_normals(const struct vkn_picture *picture, const char *file)
{
    float *rgb = render_normal_colors(picture);
    vkn_status status =
        rgb ? render_write_color(file, rgb, picture->width, picture->height) : VKN_ERROR;
    free(rgb);
    return status;
}

static vkn_status write_rgba(const struct vkn_picture *picture, const char *file)
{
    uint8_t *rgba = base_alloc((size_t)picture->width * picture->height, 4);
    if (!rgba)
        return VKN_ERROR;
    render_rgba_bytes(picture, rgba);
    vkn_status status = scene_image_write_png(file, rgba, picture->width, picture->height, 4);
    free(rgba);
    return status;
}

vkn_status vkn_picture_write(const struct vkn_picture *picture, enum vkn_map map, const char *file)
{
    BASE_C_LOCALE;
    BASE_NEED(picture);
    BASE_NEED(file);
    uint32_t width = picture->width, height = picture->height;
    BASE_TRY(base_check_choice(__func__, "map", map, VKN_MAP_RGBA));
    if (width == 0 || height == 0)
        return base_fail(VKN_BAD_INPUT, "%s: picture: width and height: %u x %u pixels are none",
                         __func__, width, height);
    if (map == VKN_MAP_COLOR && picture->color)
        return render_write_color(file, picture->color, width, height);
    if (map == VKN_MAP_OPACITY && picture->opacity)
        return render_write_grey(file, picture->opacity, width, height);
    if (map == VKN_MAP_DEPTH && picture->depth && picture->opacity)
        return render_write_depth(file, picture);
    if (map == VKN_MAP_NORMAL && picture->normal && picture->opacity)
        return write_normals(picture, file);
    if (map == VKN_MAP_RGBA && picture->color && picture->opacity)
        return write_rgba(picture, file);
    return base_fail(VKN_BAD_INPUT, "%s: the picture has no such map", file);
}
