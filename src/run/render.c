/* Implements vkn_run_render: renders images of a run as numbered files and videos. */
#include <float.h>
#include <stdlib.h>

#include "render/render.h"
#include "run/internal.h"
#include "run/open.h"

#define MOST_FRAMES 1e6 /* limit of the list of frames, render/listing.c */
#define MOST_FPS    1e3

struct rendering {
    const struct vkn_render_params *params;
    struct run_opened opened;
    struct scene_camera_path views;
    enum vkn_background background;
    struct render_frames *frames;
};

static vkn_status render_frames(struct rendering *r)
{
    const volatile sig_atomic_t *stop = r->params->job->stop;
    uint32_t supersample = r->params->supersample > 0 ? r->params->supersample : 1;
    for (size_t frame = 0; frame < r->views.count; frame++) {
        report_progress_count(r->opened.progress, "rendering", frame, r->views.count);
        if (base_stop_asked(stop))
            return base_fail(VKN_INTERRUPTED, "interrupted after %zu of %zu frames", frame,
                             r->views.count);
        struct vkn_picture picture = {0};
        BASE_TRY(render_picture(r->opened.renderer, &r->views.cameras[frame], r->background,
                                supersample, &picture));
        if (r->params->transparent)
            render_unpremultiply(&picture);
        vkn_status status = render_frames_add(r->frames, &picture);
        render_picture_free(&picture);
        BASE_TRY(status);
    }
    report_progress_count(r->opened.progress, "rendering", r->views.count, r->views.count);
    return VKN_OK;
}

/* ---- a rendering --------------------------------------------------------------------------- */

static vkn_status check_video(const char *path, bool shown, const char *map)
{
    if (path && render_video_kind(path) == RENDER_VIDEO_NONE)
        return base_fail(VKN_BAD_INPUT, "%s: a video's name ends in .mp4 or .gif", path);
    if (path && !shown)
        return base_fail(VKN_BAD_INPUT, "%s: shows %s, which is not among the maps", path, map);
    return VKN_OK;
}

static struct scene_box box_of(const struct vkn_render_params *params)
{
    return scene_box_of(params->crop, params->crop + 3, params->crop_rotation);
}

static vkn_status check_params(const struct vkn_render_params *params)
{
    int sources = (params->split != VKN_SPLIT_DEFAULT) + (params->orbit > 0) +
                  (params->interpolate > 0) + (params->camera_path != NULL);
    if (sources > 1)
        return base_fail(VKN_BAD_INPUT, "give only one of a split, an orbit, an interpolation and "
                                        "a path");
    if (params->dataparser && !params->camera_path)
        return base_fail(VKN_BAD_INPUT, "%s: only of use with a path", params->dataparser);
    BASE_TRY(check_video(params->video, render_wants_color(params), "rgb"));
    BASE_TRY(check_video(params->depth_video, params->depth, "depth"));
    BASE_TRY(check_video(params->opacity_video, params->opacity, "opacity"));
    BASE_TRY(check_video(params->normal_video, params->normal, "normals"));
    if (params->video && params->transparent)
        return base_fail(VKN_BAD_INPUT,
                         "%s: a video is not transparent; its background is white or black",
                         params->video);
    if (params->fps > 0.0 && !params->video && !params->depth_video && !params->opacity_video &&
        !params->normal_video)
        return base_fail(VKN_BAD_INPUT, "frames per second: only of use with a video");
    if (!params->out)
        return base_fail(VKN_BAD_INPUT, "no folder is given for the pictures");
    const struct scene_box box = box_of(params);
    return scene_box_check(&box);
}

/* Applies crop box and background of a camera path, unless the caller gives them. */
static vkn_status apply_path_settings(struct rendering *r)
{
    const struct vkn_render_params *params = r->params;
    const struct scene_box box = box_of(params);
    if (params->background == VKN_BACKGROUND_DEFAULT && !params->transparent &&
        r->views.background != VKN_BACKGROUND_DEFAULT)
        r->background = r->views.background;
    BASE_TRY(render_set_exposure(r->opened.renderer, params->exposure));
    return render_crop(r->opened.renderer, scene_box_given(&box) ? &box : &r->views.crop);
}

static vkn_status render_run(struct rendering *r, struct vkn_render_result *result)
{
    const struct vkn_render_params *params = r->params;
    if (params->has_time)
        BASE_TRY(run_set_time(&r->opened, params->time));
    BASE_TRY(render_views(r->opened.renderer, r->opened.scene, params, &r->views));
    BASE_TRY(apply_path_settings(r));
    if (params->normal)
        BASE_TRY(vkn_renderer_enable_normals(r->opened.renderer));
    BASE_TRY(render_frames_begin(params, &r->views, &r->frames));
    vkn_status status = render_frames(r);
    report_progress_pause(r->opened.progress); /* render_frames_end logs */
    return render_frames_end(&r->frames, status, result);
}

vkn_status vkn_run_render(const struct vkn_render_params *given, struct vkn_render_result *result)
{
    BASE_C_LOCALE;
    struct vkn_render_params own, *params = &own;
    struct vkn_render_result none = {0}, *made = &none;
    struct vkn_job job;
    BASE_NEED(result);
    BASE_TRY(BASE_FILL(vkn_render_result, made, result, depth_farthest));
    BASE_TRY(BASE_READ(__func__, vkn_render_params, given, params, height));
    BASE_CHOICE(params, format, VKN_SCENE_NSVF);
    BASE_CHOICE(params, split, VKN_SPLIT_TEST);
    BASE_CHOICE(params, background, VKN_BACKGROUND_BLACK);
    BASE_CHOICE(params, precision, VKN_PRECISION_COOPMAT);
    BASE_CHOICE(params, lens, VKN_LENS_EQUIRECTANGULAR);
    BASE_RANGE(params, orbit, 0, MOST_FRAMES);
    BASE_RANGE(params, interpolate, 0, MOST_FRAMES);
    BASE_RANGE(params, fps, 0, MOST_FPS);
    BASE_RANGE(params, supersample, 0, 4);
    BASE_RANGE(params, exposure, -(double)SCENE_MOST_EXPOSURE, (double)SCENE_MOST_EXPOSURE);
    for (size_t i = 0; i < BASE_COUNT(params->crop); i++)
        BASE_RANGE(params, crop[i], -DBL_MAX, DBL_MAX);
    BASE_TRY(run_read_job(&params->job, &job));
    struct rendering r = {.params = params};
    BASE_TRY(check_params(params));
    BASE_TRY(
        run_open(&job, params->run, params->scene, params->format, params->precision, &r.opened));
    r.background = params->transparent ? VKN_BACKGROUND_BLACK
                                       : render_background(params->background,
                                                           vkn_renderer_config(r.opened.renderer));
    vkn_status status = render_run(&r, made);
    free(r.views.cameras);
    run_close(&r.opened);
    BASE_TRY(BASE_FILL(vkn_render_result, made, result, depth_farthest));
    return status;
}
