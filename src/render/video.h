/* Inside of the render room: videos by ffmpeg, a program of its own that takes frames through a
 * pipe. */
#ifndef RENDER_VIDEO_H
#define RENDER_VIDEO_H

#include "render/render.h"

#define RENDER_DEFAULT_FPS 24.0

/* A video in the making. Frames go to `path` once render_video_end has seen ffmpeg succeed; until
 * then, and after any failure, an older file of that name stays. */
struct render_video;

struct render_video_format {
    uint32_t width, height;
    uint32_t channels; /* 1 (grey) or 3 (rgb), a byte each */
    double fps;
};

/* Starts ffmpeg. VKN_BAD_INPUT when `path` cannot be written or ends in neither .mp4 nor .gif, or
 * an MP4 would be less than 2 pixels wide or high; VKN_ERROR when there is no ffmpeg in PATH, with
 * a message that says what to install. */
vkn_status render_video_begin(const char *path, const struct render_video_format *format,
                              struct render_video **video);
/* The next frame, its pixels from the top. Waits while ffmpeg is behind. VKN_ERROR when ffmpeg
 * has ended: render_video_end knows why. */
vkn_status render_video_add(struct render_video *video, const uint8_t *pixels);
/* Waits for ffmpeg to finish, frees and nulls *video (which may be NULL). VKN_ERROR says how ffmpeg
 * ended and its first and last words. `keep` false: no video, whatever ffmpeg says. */
vkn_status render_video_end(struct render_video **video, bool keep);

#endif
