/* Extracts frames from a video with ffprobe and ffmpeg. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "prepare/internal.h"

#define DEFAULT_FRAMES 150u

/* ---- reading the video's properties ---------------------------------------------------------- */

static void append_text(void *context, const char *data, size_t size)
{
    base_text_add_bytes(context, data, size);
}

static vkn_status not_a_video(const char *path, const char *why)
{
    return base_fail(VKN_BAD_INPUT, "%s: neither a folder of photographs nor a video: %s", path,
                     why);
}

/* Reads {"streams": [{"color_transfer": "bt709", "nb_read_packets": "240"}]}; packets: frames. */
static vkn_status read_stream(const cJSON *json, const char *path, struct source_video *video)
{
    const cJSON *streams = cJSON_GetObjectItemCaseSensitive(json, "streams");
    const cJSON *stream = cJSON_GetArrayItem(streams, 0);
    const char *packets = NULL, *curve = "";
    if (stream == NULL)
        return not_a_video(path, "it has no pictures");
    BASE_TRY(base_json_string(stream, "nb_read_packets", path, false, &packets));
    BASE_TRY(base_json_string(stream, "color_transfer", path, false, &curve));
    video->frames = packets != NULL ? strtoull(packets, NULL, 10) : 0;
    video->is_hdr = strcmp(curve, "smpte2084") == 0 || strcmp(curve, "arib-std-b67") == 0;
    if (video->frames < MIN_FRAMES)
        return base_fail(VKN_BAD_INPUT, "%s: a video of %" PRIu64 " frames; at least %u are needed",
                         path, video->frames, MIN_FRAMES);
    return VKN_OK;
}

vkn_status video_probe(struct preparation *preparation, const char *path)
{
    struct base_text text = {0};
    struct program ffprobe = {.name = "ffprobe", .bytes = append_text, .context = &text};
    static const char *const options[] = {"ffprobe",
                                          "-v",
                                          "error",
                                          FFMPEG_ONE_VIDEO,
                                          "-select_streams",
                                          "v:0",
                                          "-count_packets",
                                          "-show_entries",
                                          "stream=nb_read_packets,color_transfer",
                                          "-of",
                                          "json",
                                          "-i"};
    for (size_t i = 0; i < BASE_COUNT(options); i++)
        arguments_add(&ffprobe.arguments, "%s", options[i]);
    arguments_add(&ffprobe.arguments, "file:%s", path);
    vkn_status status = program_require("ffprobe", "to read videos");
    if (status == VKN_OK) {
        status = program_run(preparation, &ffprobe);
        if (status == VKN_ERROR)
            status = not_a_video(path, vkn_last_error());
    } else {
        arguments_free(&ffprobe.arguments);
    }
    cJSON *json = NULL;
    if (status == VKN_OK && text.failed)
        status = base_fail(VKN_ERROR, "%s: out of memory", path);
    if (status == VKN_OK)
        status = base_json_parse(path, text.data != NULL ? text.data : "", text.size, &json);
    if (status == VKN_OK)
        status = read_stream(json, path, &preparation->source.video);
    cJSON_Delete(json);
    free(text.data);
    return status;
}

/* ---- extracting frames ----------------------------------------------------------------------- */

/* Progress of the extraction: ffmpeg prints lines "frame=12". */
struct counting {
    struct preparation *preparation;
    uint32_t count;
};

static void count_frames(void *context, const char *line)
{
    const struct counting *counting = context;
    size_t done = 0;
    if (strncmp(line, "frame=", 6) == 0)
        done = (size_t)strtoull(line + 6, NULL, 10);
    if (done > 0)
        report_progress_count(counting->preparation->progress, "extracting frames",
                              done < counting->count ? done : counting->count, counting->count);
}

/* Filters that convert colours to those of JPEG (BT.601, full range), and HDR to BT.709 by tone
 * mapping of linear light. */
static const char to_jpeg[] = "scale=flags=accurate_rnd+full_chroma_int,format=gbrp,"
                              "scale=out_color_matrix=bt601:out_range=pc,format=yuvj444p";
static const char from_hdr[] = "zscale=t=linear:npl=203,format=gbrpf32le,zscale=p=bt709,"
                               "tonemap=mobius:desat=0,zscale=t=bt709:m=bt709:r=tv,format=yuv444p,";

/* Appends the test "n is in `frames`" as a binary search: ffmpeg limits sums to 100 terms. */
static void add_choice(struct base_text *text, const uint64_t *frames, uint32_t count)
{
    if (count == 1) {
        base_text_add(text, "eq(n,%" PRIu64 ")", frames[0]);
        return;
    }
    base_text_add(text, "if(lt(n,%" PRIu64 "),", frames[count / 2]);
    add_choice(text, frames, count / 2);
    base_text_add(text, ",");
    add_choice(text, frames + count / 2, count - count / 2);
    base_text_add(text, ")");
}

/* Makes the filter that selects and converts the frames with these sorted numbers. */
static char *selection(const uint64_t *frames, uint32_t count, bool is_hdr)
{
    struct base_text text = {0};
    base_text_add(&text, "select='");
    add_choice(&text, frames, count);
    base_text_add(&text, "',%s%s", is_hdr ? from_hdr : "", to_jpeg);
    if (!text.failed)
        return text.data;
    free(text.data);
    return NULL;
}

/* Makes the pattern of the frames' paths; percent signs of the folder are escaped. */
static char *pattern_in(const char *folder)
{
    struct base_text text = {0};
    base_text_add(&text, "file:");
    for (; *folder != '\0'; folder++)
        base_text_add(&text, "%s%c", *folder == '%' ? "%" : "", *folder);
    base_text_add(&text, "/frame_%%05d.jpg");
    if (!text.failed)
        return text.data;
    free(text.data);
    return NULL;
}

static vkn_status extract(struct preparation *preparation, const uint64_t *frames, uint32_t count,
                          const char *folder)
{
    struct counting counting = {preparation, count};
    struct program ffmpeg = {.name = "ffmpeg", .line = count_frames, .context = &counting};
    char *filter = selection(frames, count, preparation->source.video.is_hdr);
    char *pattern = pattern_in(folder);
    static const char *const input[] = {"ffmpeg",   "-hide_banner",   "-loglevel", "error",
                                        "-nostats", "-nostdin",       "-y",        "-progress",
                                        "pipe:1",   FFMPEG_ONE_VIDEO, "-i"};
    static const char *const output[] = {"-map", "0:v:0", "-fps_mode", "passthrough", "-q:v",
                                         "1",    "-qmin", "1",         "-f",          "image2"};
    vkn_status status = filter != NULL && pattern != NULL ? VKN_OK : VKN_ERROR;
    if (status == VKN_OK) {
        for (size_t i = 0; i < BASE_COUNT(input); i++)
            arguments_add(&ffmpeg.arguments, "%s", input[i]);
        arguments_add(&ffmpeg.arguments, "file:%s", preparation->params->pictures);
        arguments_add(&ffmpeg.arguments, "-vf");
        arguments_add(&ffmpeg.arguments, "%s", filter);
        for (size_t i = 0; i < BASE_COUNT(output); i++)
            arguments_add(&ffmpeg.arguments, "%s", output[i]);
        arguments_add(&ffmpeg.arguments, "%s", pattern);
        status = program_run(preparation, &ffmpeg);
    }
    free(filter);
    free(pattern);
    return status;
}

vkn_status video_extract_frames(struct preparation *preparation, const char *folder)
{
    BASE_TRY(program_require("ffmpeg", "to extract frames of videos"));
    BASE_TRY(video_probe(preparation, preparation->params->pictures));
    uint64_t available = preparation->source.video.frames;
    uint32_t count = preparation->params->frames ? preparation->params->frames : DEFAULT_FRAMES;
    count = available < count ? (uint32_t)available : count;
    uint64_t *frames = base_alloc(count, sizeof(*frames));
    if (frames == NULL)
        return VKN_ERROR;
    /* The middle frame of each time window, unless the sharpest one is wanted. */
    for (uint32_t i = 0; i < count; i++)
        frames[i] = (2 * i + 1) * available / (2 * (uint64_t)count);
    vkn_status status = preparation->params->sharpest && count < available
                            ? video_pick_sharpest(preparation, frames, count)
                            : VKN_OK;
    if (status == VKN_OK)
        status = extract(preparation, frames, count, folder);
    free(frames);
    return status;
}
