/* Finds the sharpest frames of a video by the variance of the Laplacian (Pech-Pacheco et al. 2000,
 * "Diatom autofocusing in brightfield microscopy") of each frame's brightness. */
#include <stdlib.h>
#include <string.h>

#include "prepare/internal.h"

/* Size of the analysed frames. Small motion blur is still visible; most time goes into decoding. */
#define SIDE  640u
#define SCALE "scale=640:640:flags=area,format=gray"

struct search {
    struct preparation *preparation;
    uint64_t *best;    /* [window] sharpest frame so far */
    double *sharpness; /* [window] of that frame */
    uint32_t windows;
    uint64_t frame; /* index of the frame that is being read */
    size_t filled;  /* bytes of the frame that have been read */
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

static void end_frame(struct search *search)
{
    uint64_t frames = search->preparation->source.video.frames;
    uint64_t window = search->frame * search->windows / frames;
    double sharpness = laplacian_variance(search->pixels);
    /* Frames beyond the packet count belong to the last window. */
    window = window < search->windows ? window : search->windows - 1;
    if (sharpness > search->sharpness[window]) {
        search->sharpness[window] = sharpness;
        search->best[window] = search->frame;
    }
    search->frame++;
    search->filled = 0;
    report_progress_count(search->preparation->progress, "looking for sharp frames",
                          search->frame < frames ? search->frame : frames, frames);
}

static void add_bytes(void *context, const char *data, size_t size)
{
    struct search *search = context;
    while (size > 0) {
        size_t left = sizeof(search->pixels) - search->filled, added = size < left ? size : left;
        memcpy(search->pixels + search->filled, data, added);
        search->filled += added;
        data += added;
        size -= added;
        if (search->filled == sizeof(search->pixels))
            end_frame(search);
    }
}

vkn_status video_pick_sharpest(struct preparation *preparation, uint64_t *frames, uint32_t count)
{
    struct search *search = base_alloc(1, sizeof(*search));
    double *sharpness = base_alloc(count, sizeof(*sharpness));
    struct program ffmpeg = {.name = "ffmpeg", .bytes = add_bytes, .context = search};
    static const char *const input[] = {"ffmpeg",   "-hide_banner", "-loglevel",      "error",
                                        "-nostats", "-nostdin",     FFMPEG_ONE_VIDEO, "-i"};
    static const char *const output[] = {"-map", "0:v:0", "-fps_mode", "passthrough", "-vf",
                                         SCALE,  "-f",    "rawvideo",  "pipe:1"};
    vkn_status status = search != NULL && sharpness != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK) {
        search->preparation = preparation;
        search->best = frames;
        search->sharpness = sharpness;
        search->windows = count;
        for (size_t i = 0; i < BASE_COUNT(input); i++)
            arguments_add(&ffmpeg.arguments, "%s", input[i]);
        arguments_add(&ffmpeg.arguments, "file:%s", preparation->params->pictures);
        for (size_t i = 0; i < BASE_COUNT(output); i++)
            arguments_add(&ffmpeg.arguments, "%s", output[i]);
        status = program_run(preparation, &ffmpeg);
    }
    free(sharpness);
    free(search);
    return status;
}
