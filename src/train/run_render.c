/* vkn_run_render: pictures of a run as numbered PNG files. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "render/views.h"
#include "train/evaluate.h"
#include "train/run_open.h"

struct rendering {
    const struct vkn_render_params *params;
    struct vkn_render_result *result;
    struct run_opened opened;
    struct scene_path views;
    enum vkn_background background;
    FILE *depths; /* depth maps of the frames so far, raw: their scale is known at the end */
};

/* ---- files --------------------------------------------------------------------------------- */

static char *frame_path(const struct rendering *r, size_t frame, const char *kind)
{
    char *name = base_format("frame_%04zu%s.png", frame, kind);
    char *path = name ? base_path_join(r->params->out, name) : NULL;
    free(name);
    return path;
}

/* A file without a name, so that it goes whatever happens. */
static vkn_status open_depths(struct rendering *r)
{
    char *path = base_format("%s/.depth.%ld", r->params->out, (long)getpid());
    if (!path)
        return VKN_ERROR;
    r->depths = fopen(path, "w+b");
    if (r->depths)
        unlink(path);
    vkn_status status =
        r->depths ? VKN_OK : base_fail(VKN_BAD_INPUT, "%s: cannot be written", path);
    free(path);
    return status;
}

static void widen_range(struct vkn_render_result *result, double depth)
{
    bool first = result->depth_farthest == 0.0;
    if (first || depth < result->depth_nearest)
        result->depth_nearest = depth;
    if (first || depth > result->depth_farthest)
        result->depth_farthest = depth;
}

/* Haze in front of the background is no surface: it counts as nothing. */
static vkn_status keep_depth(struct rendering *r, const struct vkn_picture *picture)
{
    size_t pixels = (size_t)picture->width * picture->height;
    float *depths = base_alloc(pixels, sizeof(*depths));
    if (!depths)
        return VKN_ERROR;
    for (size_t i = 0; i < pixels; i++) {
        if (!(picture->opacity[i] >= RENDER_SOLID_OPACITY) || !(picture->depth[i] > 0.0F))
            continue;
        depths[i] = picture->depth[i];
        widen_range(r->result, (double)depths[i]);
    }
    bool written = fwrite(depths, sizeof(*depths), pixels, r->depths) == pixels;
    free(depths);
    return written ? VKN_OK
                   : base_fail(VKN_ERROR, "%s: no room for the depth maps", r->params->out);
}

/* Near is bright; black is where nothing was hit. */
static float depth_shade(float depth, float nearest, float farthest)
{
    if (!(depth > 0.0F))
        return 0.0F;
    float range = farthest - nearest;
    float share = range > 0.0F ? (depth - nearest) / range : 0.0F;
    float clamped = share < 0.0F ? 0.0F : share < 1.0F ? share : 1.0F;
    return (255.0F - 254.0F * clamped) / 255.0F;
}

static vkn_status write_depth(struct rendering *r, size_t frame)
{
    const struct scene_camera *camera = &r->views.cameras[frame];
    size_t pixels = (size_t)camera->width * camera->height;
    float *values = base_alloc(pixels, sizeof(*values));
    char *path = frame_path(r, frame, "_depth");
    vkn_status status = values && path ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && fread(values, sizeof(*values), pixels, r->depths) != pixels)
        status = base_fail(VKN_ERROR, "%s: the depth maps cannot be read again", r->params->out);
    for (size_t i = 0; i < pixels && status == VKN_OK; i++)
        values[i] = depth_shade(values[i], (float)r->result->depth_nearest,
                                (float)r->result->depth_farthest);
    if (status == VKN_OK)
        status = render_write_grey(path, values, camera->width, camera->height);
    free(values);
    free(path);
    return status;
}

static vkn_status write_depths(struct rendering *r)
{
    rewind(r->depths);
    for (size_t frame = 0; frame < r->result->frames; frame++)
        BASE_TRY(write_depth(r, frame));
    return VKN_OK;
}

/* ---- frames -------------------------------------------------------------------------------- */

static vkn_status write_frame(struct rendering *r, size_t frame, const struct vkn_picture *picture)
{
    const struct vkn_render_params *params = r->params;
    bool color = params->color || !(params->depth || params->opacity || params->normal);
    char *color_path = frame_path(r, frame, ""), *opacity_path = frame_path(r, frame, "_opacity");
    char *normal_path = frame_path(r, frame, "_normal");
    vkn_status status = color_path && opacity_path && normal_path ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && color)
        status = render_write_color(color_path, picture->color, picture->width, picture->height);
    if (status == VKN_OK && params->opacity)
        status = render_write_grey(opacity_path, picture->opacity, picture->width, picture->height);
    if (status == VKN_OK && params->normal)
        status = render_write_normals(normal_path, picture);
    if (status == VKN_OK && params->depth)
        status = keep_depth(r, picture);
    free(color_path);
    free(opacity_path);
    free(normal_path);
    return status;
}

static vkn_status render_frames(struct rendering *r)
{
    const volatile sig_atomic_t *stop = r->params->job.stop;
    uint32_t supersample = r->params->supersample > 0 ? r->params->supersample : 1;
    for (size_t frame = 0; frame < r->views.count; frame++) {
        report_progress_count(r->opened.progress, "rendering", frame, r->views.count);
        if (stop && *stop)
            return base_fail(VKN_INTERRUPTED, "interrupted after %zu of %zu frames", frame,
                             r->views.count);
        struct vkn_picture picture = {0};
        BASE_TRY(vkn_render(r->opened.renderer, &r->views.cameras[frame], r->background,
                            supersample, &picture));
        vkn_status status = write_frame(r, frame, &picture);
        vkn_picture_free(&picture);
        BASE_TRY(status);
        r->result->frames++;
    }
    report_progress_count(r->opened.progress, "rendering", r->views.count, r->views.count);
    return VKN_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static vkn_status check_params(const struct vkn_render_params *params)
{
    int sources = (params->split != VKN_SPLIT_DEFAULT) + (params->orbit > 0) +
                  (params->interpolate > 0) + (params->path != NULL);
    if (sources > 1)
        return base_fail(VKN_BAD_INPUT, "views come from a split, an orbit, an interpolation or a "
                                        "path, not from two");
    if (params->dataparser && !params->path)
        return base_fail(VKN_BAD_INPUT, "%s: only of use with a path", params->dataparser);
    if (!params->out)
        return base_fail(VKN_BAD_INPUT, "no folder is given for the pictures");
    return VKN_OK;
}

static vkn_status render_run(struct rendering *r)
{
    const struct vkn_render_params *params = r->params;
    BASE_TRY(render_views(r->opened.scene, params, &r->views));
    BASE_TRY(base_make_folder(params->out));
    if (params->normal)
        BASE_TRY(vkn_renderer_want_normals(r->opened.renderer));
    if (params->depth)
        BASE_TRY(open_depths(r));
    vkn_status status = render_frames(r);
    if (params->depth && (status == VKN_OK || status == VKN_INTERRUPTED)) {
        char *message = base_format("%s", vkn_last_error());
        vkn_status written = write_depths(r);
        if (written != VKN_OK)
            status = written;
        else if (status != VKN_OK)
            base_fail(status, "%s", message ? message : "interrupted");
        free(message);
    }
    return status;
}

vkn_status vkn_run_render(const struct vkn_render_params *params, struct vkn_render_result *result)
{
    *result = (struct vkn_render_result){0};
    struct rendering r = {.params = params, .result = result};
    BASE_TRY(check_params(params));
    BASE_TRY(run_open(&params->job, params->run, params->scene, params->format, params->precision,
                      &r.opened));
    r.background = evaluate_background(params->background, vkn_renderer_config(r.opened.renderer));
    vkn_status status = render_run(&r);
    if (r.depths)
        fclose(r.depths);
    free(r.views.cameras);
    run_close(&r.opened);
    return status;
}
