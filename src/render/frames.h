/* The files of a rendering: pictures of every frame's maps, and a video of each map. */
#ifndef RENDER_FRAMES_H
#define RENDER_FRAMES_H

#include <vknerf/run.h>

#include "scene/scene.h"

struct render_frames;

/* Whether the colours are written: when they are asked for, or no map is. */
bool render_wants_color(const struct vkn_render_params *params);

/* Makes the folder and starts the videos of these views. One that ffmpeg does not make is a warning now
 * and an error at the end. Both outlive *frames. VKN_BAD_INPUT when a file cannot be written or the
 * sizes of a video's frames differ; *frames is then NULL. */
vkn_status render_frames_begin(const struct vkn_render_params *params,
                               const struct scene_camera_path *views,
                               struct render_frames **frames);
/* The next view's picture, with normals where they are wanted. */
vkn_status render_frames_add(struct render_frames *frames, const struct vkn_picture *picture);
/* What remains to be done with the frames so far: depths, which need the range of all, and the ends of
 * the videos; an interruption leaves them no less complete, another failure leaves none. After all
 * frames, those of an earlier rendering in the folder are removed. `rendered` is
 * how it came to the end. Frees and nulls *frames. The first error, `rendered` before all, counts. */
vkn_status render_frames_end(struct render_frames **frames, vkn_status rendered,
                             struct vkn_render_result *result);

#endif
