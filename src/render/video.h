/* Writes videos by an ffmpeg process that reads frames from a socket. Private to render. */
#ifndef RENDER_VIDEO_H
#define RENDER_VIDEO_H

#include "render/render.h"

#define RENDER_DEFAULT_FPS 24.0

/* A video that is being written. The file replaces `path` when render_video_end sees ffmpeg
 * succeed. Before that, and after a failure, an older file at `path` stays unchanged. */
struct render_video;

struct render_video_format {
    uint32_t width, height;
    uint32_t channels; /* 1 (grey) or 3 (RGB), one byte each */
    double fps;
};

/* Starts ffmpeg. VKN_BAD_INPUT when `path` cannot be written, ends in neither .mp4 nor .gif, or
 * names an MP4 less than 2 pixels wide or high. VKN_ERROR when PATH has no ffmpeg. */
vkn_status render_video_begin(const char *path, const struct render_video_format *format,
                              struct render_video **video);
/* Sends the next frame, rows from the top. Blocks while ffmpeg is busy. VKN_ERROR when ffmpeg has
 * ended; render_video_end returns the reason. */
vkn_status render_video_add(struct render_video *video, const uint8_t *pixels);
/* Waits for ffmpeg to finish, frees and nulls *video (which may be NULL). VKN_ERROR: its
 * message has ffmpeg's exit status and output. `keep` false: ends ffmpeg and writes no video. */
vkn_status render_video_end(struct render_video **video, bool keep);

#endif
