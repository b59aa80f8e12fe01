/* vkn_run_render: pictures of a run as numbered PNG files. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "render/video.h"
#include "render/views.h"
#include "train/evaluate.h"
#include "train/run_open.h"

struct rendering {
    const struct vkn_render_params *params;
    struct vkn_render_result *result;
    struct run_opened opened;
    struct scene_path views;
    enum vkn_background background;
    struct render_video *video; /* NULL: none, no longer */
    char *no_video;             /* why there is none although one is wanted */
    FILE *depths; /* depth maps of the frames so far, raw: their scale is known at the end */
};

/* ---- files --------------------------------------------------------------------------------- */

/* `kind`: what follows the frame's number. */
static char *frame_path(const struct rendering *r, size_t frame, const char *kind)
{
    char *name = base_format("frame_%04zu%s", frame, kind);
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
static vkn_status keep_depth(struct rendering *r, size_t frame, const struct vkn_picture *picture)
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
    vkn_status status = VKN_OK;
    if (r->depths && fwrite(depths, sizeof(*depths), pixels, r->depths) != pixels)
        status = base_fail(VKN_ERROR, "%s: no room for the depth maps", r->params->out);
    char *path = frame_path(r, frame, "_depth.npy");
    if (status == VKN_OK && r->params->depth_values)
        status = path ? render_write_npy(path, depths, picture->width, picture->height) : VKN_ERROR;
    free(path);
    free(depths);
    return status;
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
    char *path = frame_path(r, frame, "_depth.png");
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

/* ---- video --------------------------------------------------------------------------------- */

/* The frames go on without it; the error comes at the end. */
static vkn_status lose_video(struct rendering *r)
{
    r->no_video = base_format("%s", vkn_last_error());
    if (!r->no_video)
        return VKN_ERROR;
    base_log(BASE_LOG_WARNING, "%s", r->no_video);
    return VKN_OK;
}

static vkn_status begin_video(struct rendering *r)
{
    const struct scene_camera *cameras = r->views.cameras;
    double fps = r->params->fps > 0.0 ? r->params->fps : r->views.fps;
    for (size_t i = 1; i < r->views.count; i++)
        if (cameras[i].width != cameras[0].width || cameras[i].height != cameras[0].height)
            return base_fail(VKN_BAD_INPUT,
                             "%s: frame %zu has %ux%u pixels and the first %ux%u; a video needs "
                             "one width and height for all",
                             r->params->video, i, cameras[i].width, cameras[i].height,
                             cameras[0].width, cameras[0].height);
    vkn_status status = render_video_begin(r->params->video, cameras[0].width, cameras[0].height,
                                           fps > 0.0 ? fps : RENDER_DEFAULT_FPS, &r->video);
    return status == VKN_ERROR ? lose_video(r) : status;
}

static vkn_status add_to_video(struct rendering *r, const struct vkn_picture *picture)
{
    size_t count = (size_t)picture->width * picture->height * 3;
    uint8_t *rgb = base_alloc(count, 1);
    if (!rgb)
        return VKN_ERROR;
    render_to_bytes(picture->color, count, rgb);
    vkn_status status = render_video_add(r->video, rgb);
    free(rgb);
    if (status == VKN_OK)
        return VKN_OK;
    render_video_end(&r->video, true); /* says why */
    return lose_video(r);
}

/* Of the frames so far, unless something else went wrong. */
static vkn_status end_video(struct rendering *r, bool keep)
{
    if (render_video_end(&r->video, keep && r->result->frames > 0) != VKN_OK)
        BASE_TRY(lose_video(r));
    if (!r->no_video)
        return VKN_OK;
    return base_fail(VKN_ERROR, "%s; the frames are in %s", r->no_video, r->params->out);
}

/* ---- frames -------------------------------------------------------------------------------- */

static bool wants_color(const struct vkn_render_params *params)
{
    return params->color ||
           !(params->depth || params->depth_values || params->opacity || params->normal);
}

static vkn_status write_frame(struct rendering *r, size_t frame, const struct vkn_picture *picture)
{
    const struct vkn_render_params *params = r->params;
    bool color = wants_color(params);
    char *color_path = frame_path(r, frame, ".png"),
         *opacity_path = frame_path(r, frame, "_opacity.png");
    char *normal_path = frame_path(r, frame, "_normal.png");
    vkn_status status = color_path && opacity_path && normal_path ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK && color)
        status = render_write_color(color_path, picture->color, picture->width, picture->height);
    if (status == VKN_OK && params->opacity)
        status = render_write_grey(opacity_path, picture->opacity, picture->width, picture->height);
    if (status == VKN_OK && params->normal)
        status = render_write_normals(normal_path, picture);
    if (status == VKN_OK && (params->depth || params->depth_values))
        status = keep_depth(r, frame, picture);
    if (status == VKN_OK && r->video)
        status = add_to_video(r, picture);
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
    if (params->video && render_video_kind(params->video) == RENDER_VIDEO_NONE)
        return base_fail(VKN_BAD_INPUT, "%s: a video's name ends in .mp4 or .gif", params->video);
    if (params->video && !wants_color(params))
        return base_fail(VKN_BAD_INPUT, "%s: shows rgb, which is not among the maps",
                         params->video);
    if (params->fps > 0.0 && !params->video)
        return base_fail(VKN_BAD_INPUT, "frames a second are only of use with a video");
    if (!params->out)
        return base_fail(VKN_BAD_INPUT, "no folder is given for the pictures");
    return VKN_OK;
}

struct outcome {
    vkn_status status; /* the first that is not VKN_OK */
    char *message;
};

static void note(struct outcome *outcome, vkn_status status)
{
    if (outcome->status != VKN_OK || status == VKN_OK)
        return;
    outcome->status = status;
    outcome->message = base_format("%s", vkn_last_error());
}

/* What remains to be done with the frames; an interruption leaves it no less complete. */
static vkn_status finish(struct rendering *r, vkn_status rendered)
{
    struct outcome outcome = {VKN_OK, NULL};
    bool proper = rendered == VKN_OK || rendered == VKN_INTERRUPTED;
    note(&outcome, rendered);
    if (proper && r->depths)
        note(&outcome, write_depths(r));
    note(&outcome, end_video(r, proper));
    if (outcome.status != VKN_OK)
        base_fail(outcome.status, "%s", outcome.message ? outcome.message : "out of memory");
    free(outcome.message);
    return outcome.status;
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
    if (params->video)
        BASE_TRY(begin_video(r));
    return finish(r, render_frames(r));
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
    free(r.no_video);
    free(r.views.cameras);
    run_close(&r.opened);
    return status;
}
