/* Renders pictures, and the colours of given rays, in batches of rays. */
#include "render/internal.h"

#include <stdlib.h>
#include <string.h>

#include "volume/volume.h"

/* Rays [first, first + rays) of a view. A pixel has 4^log2_side rays. */
struct batch {
    struct vkn_renderer *r;
    uint32_t first, rays, log2_side;
    const struct gpu_pipeline *generate; /* pass that makes the rays */
};

static uint32_t ray_groups(const struct batch *batch)
{
    return (batch->rays + PASS_LOCAL_SIZE - 1) / PASS_LOCAL_SIZE;
}

static void record_rays(const struct batch *batch, struct gpu_recording *recording)
{
    const struct vkn_renderer *r = batch->r;
    struct Push view = {.b = batch->first, .c = batch->rays, .d = batch->log2_side};
    gpu_record_dispatch(recording, batch->generate, r->bindings, &view, sizeof view,
                        ray_groups(batch));
}

static void record_pixels(const struct batch *batch, struct gpu_recording *recording)
{
    const struct vkn_renderer *r = batch->r;
    uint32_t per_pixel = 1u << (2 * batch->log2_side);
    struct Push finish = {.a = batch->rays / per_pixel, .b = per_pixel};
    gpu_record_dispatch(recording, r->finish_normals ? r->finish_normals : r->finish_pixels,
                        r->bindings, &finish, sizeof finish, ray_groups(batch));
}

static void record_batch(const struct batch *batch, struct gpu_recording *recording)
{
    struct vkn_renderer *r = batch->r;
    record_rays(batch, recording);
    render_record_march(r, recording, batch->rays, NULL,
                        r->finish_normals ? r->composite_normals : r->composite_view);
    record_pixels(batch, recording);
}

static vkn_status run_batch(const struct batch *batch,
                            void (*record)(const struct batch *, struct gpu_recording *))
{
    GPU_ONCE(batch->r->device, "view batch");
    record(batch, recording);
    return gpu_run_once(&recording);
}

static void read_pixels(const struct vkn_renderer *r, struct vkn_picture *picture, uint64_t first,
                        uint32_t count)
{
    const struct Output *output = r->buffers.at[BIND_OUTPUT].mapped;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&picture->color[3 * (first + i)], output[i].color, sizeof output[i].color);
        picture->opacity[first + i] = output[i].opacity;
        picture->depth[first + i] = output[i].depth / (float)r->setup.config.scene.scale;
        if (picture->normal)
            memcpy(&picture->normal[3 * (first + i)], output[i].normal, sizeof output[i].normal);
    }
}

static vkn_status render_batch(const struct batch *batch)
{
    struct vkn_renderer *r = batch->r;
    if (r->evaluate) {
        BASE_TRY(run_batch(batch, record_rays));
        BASE_TRY(render_march_with_evaluator(r, batch->rays));
        return run_batch(batch, record_pixels);
    }
    double began = base_seconds();
    BASE_TRY(run_batch(batch, record_batch));
    render_choose_submit_size(r, base_seconds() - began);
    return VKN_OK;
}

vkn_status render_allocate_picture(struct vkn_picture *picture, uint32_t width, uint32_t height,
                                   bool normals)
{
    size_t pixels = (size_t)width * height;
    *picture = (struct vkn_picture){.width = width, .height = height};
    BASE_TRY(base_memory_check(pixels * (normals ? 8 : 5) * sizeof(float), "a picture",
                               "its width and height (--width, --height)"));
    picture->color = base_alloc(3 * pixels, sizeof *picture->color);
    picture->opacity = base_alloc(pixels, sizeof *picture->opacity);
    picture->depth = base_alloc(pixels, sizeof *picture->depth);
    if (normals)
        picture->normal = base_alloc(3 * pixels, sizeof *picture->normal);
    return picture->color && picture->opacity && picture->depth && (picture->normal || !normals)
               ? VKN_OK
               : VKN_ERROR;
}

static vkn_status render_all(struct vkn_renderer *r, struct vkn_picture *picture,
                             uint32_t log2_side)
{
    uint64_t pixels = (uint64_t)picture->width * picture->height;
    uint32_t batch = r->setup.constants.ray_capacity >> (2 * log2_side);
    for (uint64_t first = 0; first < pixels; first += batch) {
        uint64_t left = pixels - first;
        uint32_t count = left < batch ? (uint32_t)left : batch;
        const struct batch next = {r, (uint32_t)first << (2 * log2_side), count << (2 * log2_side),
                                   log2_side, r->generate_view_rays};
        BASE_TRY(render_batch(&next));
        read_pixels(r, picture, first, count);
    }
    return VKN_OK;
}

/* Copies the sky of the step, whose field is rendered. */
static vkn_status copy_sky(const struct vkn_renderer *r)
{
    const uint64_t offset = sizeof(struct State);
    if (!r->step)
        return VKN_OK;
    GPU_ONCE(r->device, "sky");
    gpu_record_copy(recording, &r->step->buffers.at[BIND_STATE], offset, &r->buffers.at[BIND_STATE],
                    offset, SKY_CELLS * sizeof(struct ErrorCell));
    return gpu_run_once(&recording);
}

static vkn_status begin(struct vkn_renderer *r, enum vkn_background background)
{
    struct Config *constants = &r->setup.constants;
    float value = background == VKN_BACKGROUND_BLACK ? 0.0f : 1.0f;
    bool has_sky = volume_sky_cells(&r->setup.config) > 0;
    constants->picture_sky = has_sky && background == VKN_BACKGROUND_DEFAULT;
    for (int c = 0; c < 3; c++)
        constants->render_background[c] = value;
    BASE_TRY(render_upload_constants(r));
    return constants->picture_sky ? copy_sky(r) : VKN_OK;
}

vkn_status render_picture(vkn_renderer *renderer, const struct scene_camera *camera,
                          enum vkn_background background, uint32_t supersample,
                          struct vkn_picture *picture)
{
    BASE_C_LOCALE;
    *picture = (struct vkn_picture){0};
    uint32_t side = supersample ? supersample : 1;
    if (side != 1 && side != 2 && side != 4)
        return base_fail(VKN_BAD_INPUT, "supersample: %u is not 1, 2 or 4", side);
    if (camera->width == 0 || camera->height == 0 ||
        (uint64_t)camera->width * camera->height > UINT32_MAX / (side * side))
        return base_fail(
            VKN_BAD_INPUT,
            "camera: width and height: %u x %u pixels: must be 1 to %u in all, with %u "
            "rays a pixel",
            camera->width, camera->height, UINT32_MAX / (side * side), side * side);
    BASE_TRY(render_upload_camera(renderer, camera));
    BASE_TRY(begin(renderer, background));
    vkn_status status = render_allocate_picture(picture, camera->width, camera->height,
                                                renderer->finish_normals != NULL);
    if (status == VKN_OK)
        status = render_all(renderer, picture, side == 4 ? 2 : side - 1);
    if (status != VKN_OK)
        render_picture_free(picture);
    return status;
}

void render_picture_free(struct vkn_picture *picture)
{
    free(picture->color);
    free(picture->opacity);
    free(picture->depth);
    free(picture->normal);
    free(picture->used);
    *picture = (struct vkn_picture){0};
}

/* ---- given rays ------------------------------------------------------------------------------ */

vkn_status render_begin_rays(struct vkn_renderer *r, enum vkn_background background)
{
    if (!r->given_rays) {
        const struct field_pass_request pass = {"given_rays", &r->given_rays, FIELD_NO_VARIANT};
        BASE_TRY(render_create_passes(r, &pass, 1));
    }
    return begin(r, background);
}

vkn_status render_given_rays(struct vkn_renderer *r, const struct Ray *rays, uint32_t count,
                             struct vkn_picture *picture)
{
    const struct batch batch = {.r = r, .rays = count, .generate = r->given_rays};
    BASE_TRY(gpu_upload(r->device, &r->buffers.at[BIND_RAYS], 0, rays, count * sizeof *rays));
    BASE_TRY(render_batch(&batch));
    read_pixels(r, picture, 0, count);
    return VKN_OK;
}
