/* Renders the caller's rays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "render/given.h"

static vkn_status check(const struct vkn_renderer *r, const struct vkn_rays *rays,
                        const struct vkn_picture_params *params)
{
    const struct given_array arrays[] = {
        {"origins", rays->origins, 3, GIVEN_FINITE, true},
        {"directions", rays->directions, 3, GIVEN_DIRECTION, true},
        {"nearest", rays->nearest, 1, GIVEN_DISTANCE, false},
        {"farthest", rays->farthest, 1, GIVEN_DISTANCE, false},
        {"times", rays->times, 1, GIVEN_TIME, false},
    };
    BASE_TRY(given_check("vkn_rays", rays->count, arrays, BASE_COUNT(arrays)));
    for (size_t i = 0; i < rays->count && rays->nearest && rays->farthest; i++)
        if (rays->nearest[i] > rays->farthest[i])
            return base_fail(VKN_BAD_INPUT,
                             "vkn_rays: nearest: element %zu is %g: must be at most farthest, %g",
                             i, rays->nearest[i], rays->farthest[i]);
    if (rays->normals && !r->finish_normals)
        return base_fail(VKN_BAD_INPUT,
                         "vkn_rays: normals: need vkn_renderer_enable_normals first");
    if (params->supersample > 1)
        return base_fail(VKN_BAD_INPUT, "vkn_render_rays: supersample: %u: must be 0 or 1",
                         params->supersample);
    return VKN_OK;
}

static void fill(const struct vkn_renderer *r, const struct vkn_rays *rays, size_t first,
                 uint32_t count, struct Ray *batch)
{
    const struct Config *constants = &r->setup.constants;
    double scale = r->setup.config.scene.scale;
    for (uint32_t i = 0; i < count; i++) {
        batch[i] = given_ray(r, rays->origins, rays->directions, rays->times, first + i);
        batch[i].step =
            rays->nearest ? (float)(rays->nearest[first + i] * scale) : constants->near_distance;
        batch[i].last = constants->far_distance;
        if (rays->farthest)
            batch[i].last = fminf(batch[i].last, (float)(rays->farthest[first + i] * scale));
    }
}

static void copy(float *to, const float *from, size_t first, uint32_t count, size_t width)
{
    if (to)
        memcpy(to + width * first, from, width * count * sizeof *to);
}

static vkn_status render_all(struct vkn_renderer *r, const struct vkn_rays *rays, bool transparent,
                             struct Ray *batch, struct vkn_picture *picture)
{
    for (size_t first = 0; first < rays->count; first += picture->width) {
        size_t left = rays->count - first;
        uint32_t count = left < picture->width ? (uint32_t)left : picture->width;
        fill(r, rays, first, count, batch);
        BASE_TRY(render_given_rays(r, batch, count, picture));
        if (transparent)
            render_unpremultiply(picture);
        copy(rays->colors, picture->color, first, count, 3);
        copy(rays->opacities, picture->opacity, first, count, 1);
        copy(rays->depths, picture->depth, first, count, 1);
        copy(rays->normals, picture->normal, first, count, 3);
    }
    return VKN_OK;
}

static vkn_status render(struct vkn_renderer *r, const struct vkn_rays *rays,
                         const struct vkn_picture_params *params, enum vkn_background background)
{
    uint32_t most = r->setup.constants.ray_capacity;
    uint32_t width = rays->count < most ? (uint32_t)rays->count : most;
    struct vkn_picture picture = {0};
    BASE_TRY(check(r, rays, params));
    if (rays->count == 0)
        return VKN_OK;
    BASE_TRY(render_begin_rays(r, background));
    struct Ray *batch = base_alloc(width, sizeof *batch);
    vkn_status status = batch ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK)
        status = render_allocate_picture(&picture, width, 1, rays->normals != NULL);
    if (status == VKN_OK)
        status = render_all(r, rays, params->transparent, batch, &picture);
    render_picture_free(&picture);
    free(batch);
    return status;
}

vkn_status vkn_render_rays(vkn_renderer *renderer, const struct vkn_rays *rays,
                           const struct vkn_picture_params *given)
{
    BASE_C_LOCALE;
    BASE_NEED(renderer);
    BASE_NEED(rays);
    BASE_USE(gpu_guard(renderer->device), renderer);
    struct vkn_rays own;
    struct vkn_picture_params params;
    enum vkn_background background;
    BASE_TRY(BASE_READ(__func__, vkn_rays, rays, &own, normals));
    rays = &own;
    vkn_status status = render_begin_params(renderer, __func__, given, &params, &background);
    if (status == VKN_OK)
        status = render(renderer, rays, &params, background);
    render_end_params(renderer);
    return status;
}
