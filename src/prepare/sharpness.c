/* Finds the sharpest frames of a video by the variance of the Laplacian (Pech-Pacheco et al. 2000,
 * "Diatom autofocusing in brightfield microscopy") of each frame's brightness. */
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

/* Size of the analysed frames: motion blur of a pixel or two is still visible, and decoding
 * dominates the time. */
#define SIDE  640u
#define SCALE "scale=640:640:flags=area,format=gray"

struct looking {
    struct preparation *preparation;
    uint64_t *best; /* [window] sharpest frame so far */
    double *sharpness;
    uint32_t windows;
    uint64_t frame; /* index of the frame that is being read */
    size_t filled;  /* bytes of the frame that are read */
    uint8_t pixels[SIDE * SIDE];
};

static double laplacian_variance(const uint8_t *pixels)
{
    double sum = 0, squares = 0, count = (SIDE - 2.0) * (SIDE - 2.0);
    for (size_t y = 1; y + 1 < SIDE; y++) {
        const uint8_t *row = pixels + y * SIDE;
        int64_t row_sum = 0, row_squares = 0;
        for (size_t x = 1; x + 1 < SIDE; x++) {
            int value = 4 * row[x] - row[x - 1] - row[x + 1] - row[x - SIDE] - row[x + SIDE];
            row_sum += value;
            row_squares += (int64_t)value * value;
        }
        sum += (double)row_sum;
        squares += (double)row_squares;
    }
    double mean = sum / count;
    return squares / count - mean * mean;
}

static void end_frame(struct looking *looking)
{
    uint64_t frames = looking->preparation->source.video.frames;
    uint64_t window = looking->frame * looking->windows / frames;
    double sharpness = laplacian_variance(looking->pixels);
    /* Frames beyond the packet count belong to the last window. */
    window = window < looking->windows ? window : looking->windows - 1;
    if (sharpness > looking->sharpness[window]) {
        looking->sharpness[window] = sharpness;
        looking->best[window] = looking->frame;
    }
    looking->frame++;
    looking->filled = 0;
    report_progress_count(looking->preparation->progress, "looking for sharp frames",
                          looking->frame < frames ? looking->frame : frames, frames);
}

static void take(void *context, const char *data, size_t size)
{
    struct looking *looking = context;
    while (size > 0) {
        size_t room = sizeof(looking->pixels) - looking->filled, now = size < room ? size : room;
        memcpy(looking->pixels + looking->filled, data, now);
        looking->filled += now;
        data += now;
        size -= now;
        if (looking->filled == sizeof(looking->pixels))
            end_frame(looking);
    }
}

vkn_status video_pick_sharpest(struct preparation *preparation, uint64_t *frames, uint32_t count)
{
    struct looking *looking = base_alloc(1, sizeof(*looking));
    double *sharpness = base_alloc(count, sizeof(*sharpness));
    struct program ffmpeg = {.name = "ffmpeg", .bytes = take, .context = looking};
    static const char *const input[] = {"ffmpeg",   "-hide_banner", "-loglevel",      "error",
                                        "-nostats", "-nostdin",     FFMPEG_ONE_VIDEO, "-i"};
    static const char *const output[] = {"-map", "0:v:0", "-fps_mode", "passthrough", "-vf",
                                         SCALE,  "-f",    "rawvideo",  "pipe:1"};
    vkn_status status = looking != NULL && sharpness != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK) {
        looking->preparation = preparation;
        looking->best = frames;
        looking->sharpness = sharpness;
        looking->windows = count;
        for (size_t i = 0; i < BASE_COUNT(input); i++)
            arguments_add(&ffmpeg.arguments, "%s", input[i]);
        arguments_add(&ffmpeg.arguments, "file:%s", preparation->params->pictures);
        for (size_t i = 0; i < BASE_COUNT(output); i++)
            arguments_add(&ffmpeg.arguments, "%s", output[i]);
        status = program_run(preparation, &ffmpeg);
    }
    free(sharpness);
    free(looking);
    return status;
}
