/* Runs ffmpeg to write videos. */
#include "render/video.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

struct render_video {
    char *path;
    struct base_file_writer file; /* ffmpeg writes the temporary file of this writer */
    FILE *messages;               /* ffmpeg's standard error, an unnamed file */
    int input;                    /* ffmpeg's standard input; -1: closed */
    struct base_process process;  /* number 0: none */
    size_t frame_size;            /* bytes */
    bool broken;                  /* ffmpeg closed its input before the last frame */
};

enum render_video_kind render_video_kind(const char *path)
{
    size_t length = strlen(path);
    const char *end = length > 4 ? path + length - 4 : "";
    return strcasecmp(end, ".mp4") == 0   ? RENDER_VIDEO_MP4
           : strcasecmp(end, ".gif") == 0 ? RENDER_VIDEO_GIF
                                          : RENDER_VIDEO_NONE;
}

/* ---- ffmpeg -------------------------------------------------------------------------------- */

/* Players need 4:2:0 and therefore even widths and heights: an odd last row or column is cropped.
 * Most players assume BT.709. ffmpeg keeps all frames of a GIF in memory, for a common palette. */
static char mp4_filter[] = "crop=trunc(iw/2)*2:trunc(ih/2)*2:0:0,"
                           "scale=out_color_matrix=bt709:out_range=tv,format=yuv420p";
static char gif_filter[] = "split[a][b];[a]palettegen[p];[b][p]paletteuse=dither=sierra2_4a";

#define MOST_ARGUMENTS 40
#define MAX_MESSAGE    200 /* bytes of a line of ffmpeg's messages */

static char **append(char **at, char *const *arguments, size_t count)
{
    memcpy(at, arguments, count * sizeof(*at));
    return at + count;
}

/* Lists ffmpeg's arguments, NULL at the end. `size`, `fps` and `output` must outlive the list. */
static void list_arguments(enum render_video_kind kind, uint32_t channels, char *size, char *fps,
                           char *output, char *arguments[MOST_ARGUMENTS])
{
    char *pixels = channels == 1 ? "gray" : "rgb24";
    /* clang-format off */
    char *const input[] = {
        "ffmpeg", "-hide_banner", "-loglevel", "error", "-nostats", "-y",
        "-f", "rawvideo", "-pix_fmt", pixels, "-s:v", size, "-r", fps, "-i", "pipe:0",
    };
    char *const mp4[] = {
        "-vf", mp4_filter, "-colorspace", "bt709", "-color_primaries", "bt709",
        "-color_trc", "iec61966-2-1", "-movflags", "+faststart", "-f", "mp4",
    };
    char *const gif[] = {"-filter_complex", gif_filter, "-f", "gif"};
    char *const last[] = {output, NULL};
    /* clang-format on */
    char **at = append(arguments, input, BASE_COUNT(input));
    at = kind == RENDER_VIDEO_MP4 ? append(at, mp4, BASE_COUNT(mp4))
                                  : append(at, gif, BASE_COUNT(gif));
    append(at, last, BASE_COUNT(last));
}

static vkn_status start(struct render_video *video, const char *program,
                        enum render_video_kind kind, const struct render_video_format *format)
{
    char size[32], rate[32], *arguments[MOST_ARGUMENTS];
    const char *file = video->file.temporary != NULL ? video->file.temporary : video->path;
    snprintf(size, sizeof(size), "%ux%u", format->width, format->height);
    snprintf(rate, sizeof(rate), "%.6g", format->fps);
    /* The prefix "file:" keeps ffmpeg from reading a name as an option or a protocol. */
    char *output = base_format("file:%s", file);
    if (output == NULL)
        return VKN_ERROR;
    list_arguments(kind, format->channels, size, rate, output, arguments);
    int ends[2], error = base_input_pipe(ends) != 0 ? errno : 0;
    if (error == 0) {
        video->input = ends[1];
        const int streams[3] = {ends[0], -1, fileno(video->messages)};
        error = base_program_start(program, arguments, streams, -1, &video->process);
        close(ends[0]);
    }
    if (error != 0)
        video->process.number = 0;
    free(output);
    return error == 0 ? VKN_OK
                      : base_fail(VKN_ERROR, "%s: %s cannot be started: %s", video->path, program,
                                  strerror(error));
}

/* ---- frames -------------------------------------------------------------------------------- */

static vkn_status begin(struct render_video *video, const char *path,
                        const struct render_video_format *format)
{
    enum render_video_kind kind = render_video_kind(path);
    if (kind == RENDER_VIDEO_NONE)
        return base_fail(VKN_BAD_INPUT, "%s: a video's name ends in .mp4 or .gif", path);
    if (kind == RENDER_VIDEO_MP4 && (format->width < 2 || format->height < 2))
        return base_fail(VKN_BAD_INPUT,
                         "%s: %ux%u pixels are too few for MP4, which takes 2x2; GIF takes any",
                         path, format->width, format->height);
    video->path = base_format("%s", path);
    video->frame_size = (size_t)format->width * format->height * format->channels;
    if (video->path == NULL)
        return VKN_ERROR;
    BASE_TRY(base_file_begin(&video->file, path));
    char *program = base_program_find("ffmpeg");
    if (program == NULL)
        return base_fail(VKN_ERROR,
                         "%s: no ffmpeg in PATH; install it (apt-get install ffmpeg, or "
                         "https://ffmpeg.org) to get a video",
                         path);
    video->messages = tmpfile();
    vkn_status status = video->messages != NULL ? start(video, program, kind, format)
                                                : base_fail(VKN_ERROR, "%s: no temporary file: %s",
                                                            path, strerror(errno));
    free(program);
    return status;
}

vkn_status render_video_begin(const char *path, const struct render_video_format *format,
                              struct render_video **made)
{
    struct render_video *video = *made = base_alloc(1, sizeof(*video));
    if (video == NULL)
        return VKN_ERROR;
    video->input = -1;
    vkn_status status = begin(video, path, format);
    if (status == VKN_OK)
        return VKN_OK;
    char *message = base_format("%s", vkn_last_error());
    render_video_end(made, false);
    base_fail(status, "%s", message != NULL ? message : "out of memory");
    free(message);
    return status;
}

vkn_status render_video_add(struct render_video *video, const uint8_t *pixels)
{
    for (size_t sent = 0; sent < video->frame_size;) {
        ssize_t written = base_input_write(video->input, pixels + sent, video->frame_size - sent);
        video->broken = written < 0 && errno != EINTR;
        if (video->broken)
            return base_fail(VKN_ERROR, "%s: ffmpeg takes no more frames: %s", video->path,
                             strerror(errno));
        sent += written > 0 ? (size_t)written : 0;
    }
    return VKN_OK;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Reads the first non-empty line, which mostly names the cause, and the last one. */
static void summarize_messages(FILE *messages, char summary[2 * MAX_MESSAGE])
{
    char line[MAX_MESSAGE], last[MAX_MESSAGE] = "";
    snprintf(summary, MAX_MESSAGE, "it says nothing");
    rewind(messages);
    for (unsigned lines = 0; fgets(line, sizeof(line), messages) != NULL;) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] != '\0' && lines++ == 0)
            memcpy(summary, line, sizeof(line));
        else if (line[0] != '\0')
            memcpy(last, line, sizeof(line));
    }
    if (last[0] != '\0')
        snprintf(summary + strlen(summary), MAX_MESSAGE, " ... %s", last);
}

/* Waits for ffmpeg and returns an error with its exit status and messages if it failed. */
static vkn_status end_process(struct render_video *video)
{
    char exit_text[BASE_HOW_SIZE];
    base_program_ended(&video->process, true, exit_text);
    video->process.number = 0;
    if (exit_text[0] == '\0')
        return video->broken ? base_fail(VKN_ERROR, "%s: ffmpeg ended too early", video->path)
                             : VKN_OK;
    char summary[2 * MAX_MESSAGE];
    summarize_messages(video->messages, summary);
    return base_fail(VKN_ERROR, "%s: ffmpeg failed (%s): %s", video->path, exit_text, summary);
}

vkn_status render_video_end(struct render_video **ending, bool keep)
{
    struct render_video *video = *ending;
    vkn_status status = VKN_OK;
    *ending = NULL;
    if (video == NULL)
        return VKN_OK;
    if (video->process.number != 0 && !keep)
        base_program_end(&video->process, false);
    if (video->input >= 0)
        close(video->input); /* ffmpeg sees the end of its input */
    if (video->process.number != 0)
        status = end_process(video);
    if (video->messages != NULL)
        fclose(video->messages);
    if (status == VKN_OK && keep)
        status = base_file_commit(&video->file);
    else
        base_file_abort(&video->file);
    free(video->path);
    free(video);
    return keep ? status : VKN_OK;
}
