/* Writes the picture files and the videos of a rendering. */
#include "render/render.h"

#include <stdlib.h>

#include "render/depths.h"
#include "render/listing.h"
#include "render/video.h"
#include "render/write_view.h"
#include "render/writer.h"

enum map { MAP_COLOR, MAP_DEPTH, MAP_OPACITY, MAP_NORMAL, MAPS };

/* Kind of file and bytes per pixel of each map. */
static const struct {
    enum render_kind kind;
    uint32_t channels;
} maps[MAPS] = {{RENDER_KIND_COLOR, 3},
                {RENDER_KIND_DEPTH, 1},
                {RENDER_KIND_OPACITY, 1},
                {RENDER_KIND_NORMAL, 3}};

struct render_frames {
    const struct vkn_render_params *params;
    const struct scene_camera_path *views;
    bool wanted[MAPS];
    struct render_listing listing;
    struct render_video *videos[MAPS]; /* NULL: not wanted or failed */
    char *failure;                     /* error of the first video that failed */
    struct render_depths depths;
    struct render_writer writer;
    size_t count; /* frames added so far */
};

bool render_wants_color(const struct vkn_render_params *params)
{
    return params->color || !(params->depth || params->depth16 || params->depth_values ||
                              params->opacity || params->normal);
}

/* ---- videos -------------------------------------------------------------------------------- */

/* Warns of a failed video. Frames are still written; end_videos returns the error. */
static vkn_status fail_video(struct render_frames *frames)
{
    base_log(BASE_LOG_WARNING, "%s", vkn_last_error());
    if (!frames->failure)
        frames->failure = base_format("%s", vkn_last_error());
    return frames->failure ? VKN_OK : VKN_ERROR;
}

static vkn_status check_sizes(const struct scene_camera_path *views, const char *video)
{
    const struct scene_camera *cameras = views->cameras;
    for (size_t i = 1; i < views->count; i++)
        if (cameras[i].width != cameras[0].width || cameras[i].height != cameras[0].height)
            return base_fail(VKN_BAD_INPUT,
                             "%s: frame %zu has %ux%u pixels and the first %ux%u; a video needs "
                             "one width and height for all",
                             video, i, cameras[i].width, cameras[i].height, cameras[0].width,
                             cameras[0].height);
    return VKN_OK;
}

static vkn_status begin_videos(struct render_frames *frames)
{
    const struct vkn_render_params *params = frames->params;
    const char *const paths[MAPS] = {params->video, params->depth_video, params->opacity_video,
                                     params->normal_video};
    const struct scene_camera *first = &frames->views->cameras[0];
    double fps = params->fps > 0.0 ? params->fps : frames->views->fps;
    struct render_video_format format = {
        .width = first->width,
        .height = first->height,
        .fps = fps > 0.0 ? fps : RENDER_DEFAULT_FPS,
    };
    /* If ffmpeg cannot be started for one video, it cannot be started for the others. */
    for (unsigned map = 0; map < MAPS && !frames->failure; map++) {
        if (!paths[map])
            continue;
        BASE_TRY(check_sizes(frames->views, paths[map]));
        format.channels = maps[map].channels;
        vkn_status status = render_video_begin(paths[map], &format, &frames->videos[map]);
        if (status == VKN_ERROR)
            status = fail_video(frames);
        BASE_TRY(status);
    }
    return VKN_OK;
}

static vkn_status add_to_video(struct render_frames *frames, enum map map, const uint8_t *pixels)
{
    if (!frames->videos[map] || render_video_add(frames->videos[map], pixels) == VKN_OK)
        return VKN_OK;
    render_video_end(&frames->videos[map], true); /* sets vkn_last_error to ffmpeg's message */
    return fail_video(frames);
}

/* ---- frames -------------------------------------------------------------------------------- */

static size_t pixels_of(const struct render_frames *frames, size_t frame)
{
    const struct scene_camera *camera = &frames->views->cameras[frame];
    return (size_t)camera->width * camera->height;
}

/* Writes a picture file. Takes ownership of `pixels`; NULL means out of memory. */
static vkn_status write_pixels(struct render_frames *frames, size_t frame, enum render_kind kind,
                               void *pixels, uint32_t channels, uint32_t bits)
{
    const struct scene_camera *camera = &frames->views->cameras[frame];
    const struct render_file file = {.path = render_frame_path(frames->params->out, frame, kind),
                                     .pixels = pixels,
                                     .width = camera->width,
                                     .height = camera->height,
                                     .channels = channels,
                                     .bits = bits};
    return render_writer_add(&frames->writer, &file);
}

/* Writes a map as a picture file and as a frame of its video. */
static vkn_status write_map(struct render_frames *frames, size_t frame, enum map map,
                            const float *values)
{
    size_t count = pixels_of(frames, frame) * maps[map].channels;
    uint8_t *bytes = base_alloc(count, 1);
    if (!bytes)
        return VKN_ERROR;
    render_to_bytes(values, count, bytes);
    vkn_status status = add_to_video(frames, map, bytes);
    if (status == VKN_OK)
        return write_pixels(frames, frame, maps[map].kind, bytes, maps[map].channels, 8);
    free(bytes);
    return status;
}

static vkn_status write_colors(struct render_frames *frames, const struct vkn_picture *picture)
{
    if (!frames->params->transparent)
        return write_map(frames, frames->count, MAP_COLOR, picture->color);
    uint8_t *rgba = base_alloc(pixels_of(frames, frames->count), 4);
    if (rgba)
        render_rgba_bytes(picture, rgba);
    return write_pixels(frames, frames->count, RENDER_KIND_COLOR, rgba, 4, 8);
}

static vkn_status write_normals(struct render_frames *frames, const struct vkn_picture *picture)
{
    float *rgb = render_normal_colors(picture);
    vkn_status status = rgb ? write_map(frames, frames->count, MAP_NORMAL, rgb) : VKN_ERROR;
    free(rgb);
    return status;
}

static vkn_status add_depth(struct render_frames *frames, const struct vkn_picture *picture)
{
    BASE_TRY(render_depths_add(&frames->depths, picture));
    if (!frames->params->depth_values)
        return VKN_OK;
    char *path = render_frame_path(frames->params->out, frames->count, RENDER_KIND_DEPTH_VALUES);
    vkn_status status =
        path ? render_write_npy(path, frames->depths.values, picture->width, picture->height)
             : VKN_ERROR;
    free(path);
    return status;
}

vkn_status render_frames_add(struct render_frames *frames, const struct vkn_picture *picture)
{
    if (frames->wanted[MAP_COLOR])
        BASE_TRY(write_colors(frames, picture));
    if (frames->wanted[MAP_OPACITY])
        BASE_TRY(write_map(frames, frames->count, MAP_OPACITY, picture->opacity));
    if (frames->wanted[MAP_NORMAL])
        BASE_TRY(write_normals(frames, picture));
    if (frames->wanted[MAP_DEPTH] || frames->params->depth16 || frames->params->depth_values)
        BASE_TRY(add_depth(frames, picture));
    frames->count++;
    return VKN_OK;
}

static vkn_status write_depth16(struct render_frames *frames, size_t frame)
{
    size_t pixels = pixels_of(frames, frame);
    uint16_t *values = base_alloc(pixels, sizeof(*values));
    if (values)
        render_depths_quantize(&frames->depths, pixels, values);
    return write_pixels(frames, frame, RENDER_KIND_DEPTH16, values, 1, 16);
}

static vkn_status write_depths(struct render_frames *frames)
{
    BASE_TRY(render_depths_rewind(&frames->depths));
    for (size_t frame = 0; frame < frames->count; frame++) {
        size_t pixels = pixels_of(frames, frame);
        BASE_TRY(render_depths_next(&frames->depths, pixels));
        if (frames->params->depth16)
            BASE_TRY(write_depth16(frames, frame));
        if (!frames->wanted[MAP_DEPTH])
            continue;
        render_depths_shade(&frames->depths, pixels);
        BASE_TRY(write_map(frames, frame, MAP_DEPTH, frames->depths.values));
    }
    return VKN_OK;
}

/* ---- begin and end ------------------------------------------------------------------------- */

static vkn_status begin_listing(struct render_frames *frames)
{
    frames->listing.folder = frames->params->out;
    frames->listing.wanted[RENDER_KIND_DEPTH_VALUES] = frames->params->depth_values;
    frames->listing.wanted[RENDER_KIND_DEPTH16] = frames->params->depth16;
    for (unsigned map = 0; map < MAPS; map++)
        frames->listing.wanted[maps[map].kind] = frames->wanted[map];
    return render_listing_begin(&frames->listing, frames->views->count);
}

static vkn_status begin(struct render_frames *frames)
{
    const struct vkn_render_params *params = frames->params;
    frames->wanted[MAP_COLOR] = render_wants_color(params);
    frames->wanted[MAP_DEPTH] = params->depth;
    frames->wanted[MAP_OPACITY] = params->opacity;
    frames->wanted[MAP_NORMAL] = params->normal;
    BASE_TRY(base_make_last_folder(params->out));
    BASE_TRY(render_depths_open(params->out, params->depth || params->depth16, &frames->depths));
    BASE_TRY(begin_videos(frames));
    return begin_listing(frames);
}

vkn_status render_frames_begin(const struct vkn_render_params *params,
                               const struct scene_camera_path *views, struct render_frames **made)
{
    struct render_frames *frames = *made = base_alloc(1, sizeof(*frames));
    if (!frames)
        return VKN_ERROR;
    frames->params = params;
    frames->views = views;
    vkn_status status = begin(frames);
    struct vkn_render_result none;
    return status == VKN_OK ? VKN_OK : render_frames_end(made, status, &none);
}

struct outcome {
    vkn_status status; /* first one that is not VKN_OK */
    char *message;
};

static void keep_first_error(struct outcome *outcome, vkn_status status)
{
    if (outcome->status != VKN_OK || status == VKN_OK)
        return;
    outcome->status = status;
    outcome->message = base_format("%s", vkn_last_error());
}

/* Ends all videos; `keep` false: discards them. */
static vkn_status end_videos(struct render_frames *frames, bool keep)
{
    for (unsigned map = 0; map < MAPS; map++)
        if (render_video_end(&frames->videos[map], keep && frames->count > 0) != VKN_OK)
            BASE_TRY(fail_video(frames));
    if (!keep || !frames->failure)
        return VKN_OK;
    return base_fail(VKN_ERROR, "%s; the frames are in %s", frames->failure, frames->params->out);
}

vkn_status render_frames_end(struct render_frames **ending, vkn_status rendered,
                             struct vkn_render_result *result)
{
    struct render_frames *frames = *ending;
    struct outcome outcome = {VKN_OK, NULL};
    bool usable = rendered == VKN_OK || rendered == VKN_INTERRUPTED;
    *ending = NULL;
    keep_first_error(&outcome, rendered);
    if (usable && frames->depths.maps)
        keep_first_error(&outcome, write_depths(frames));
    keep_first_error(&outcome, render_writer_finish(&frames->writer));
    if (outcome.status == rendered && usable)
        keep_first_error(&outcome,
                         render_listing_end(&frames->listing, frames->count, rendered == VKN_OK));
    keep_first_error(&outcome, end_videos(frames, usable));
    *result = (struct vkn_render_result){.frames = frames->count,
                                         .depth_nearest = frames->depths.nearest,
                                         .depth_farthest = frames->depths.farthest,
                                         .depth_unit = render_depths_unit(&frames->depths)};
    render_depths_close(&frames->depths);
    free(frames->failure);
    free(frames);
    if (outcome.status != VKN_OK)
        base_fail(outcome.status, "%s", outcome.message ? outcome.message : "out of memory");
    free(outcome.message);
    return outcome.status;
}
