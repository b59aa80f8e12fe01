/* vknerf render RUN: renders images and videos of a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cli/cli.h"

static const char *const map_names[] = {"rgb",     "depth",  "depth16", "depth_values",
                                        "opacity", "normal", NULL};

/* Parses a list of maps such as "rgb,depth". */
static int parse_maps(const char *maps, struct vkn_render_params *params)
{
    bool *const shown[] = {&params->color,        &params->depth,   &params->depth16,
                           &params->depth_values, &params->opacity, &params->normal};
    for (const char *item = maps;; item += strcspn(item, ",") + 1) {
        size_t length = strcspn(item, ","), i = 0;
        while (map_names[i] &&
               (strlen(map_names[i]) != length || strncmp(map_names[i], item, length) != 0))
            i++;
        if (!map_names[i])
            return cli_fail(VKN_BAD_INPUT,
                            "--maps: %.*s is none of rgb, depth, depth16, depth_values, "
                            "opacity, normal",
                            (int)length, item);
        *shown[i] = true;
        if (item[length] == 0)
            return OPTIONS_GO_ON;
    }
}

/* Parses the number of an option, unless `text` is NULL. */
static int parse_number(const char *name, const char *text, double least, double most,
                        double *number)
{
    char *end = NULL;
    if (!text)
        return OPTIONS_GO_ON;
    *number = strtod(text, &end);
    if (end == text || *end || !(*number >= least && *number <= most))
        return cli_fail(VKN_BAD_INPUT, "%s: %s is not a number from %g to %g", name, text, least,
                        most);
    return OPTIONS_GO_ON;
}

/* Names of the videos, one for each map with images: turn.mp4, turn_depth.mp4 and so on. */
#define VIDEOS 4
struct videos {
    char *names[VIDEOS]; /* NULL: none */
};

/* Inserts the map's suffix before the extension, as in the names of images. */
static char *video_name(const char *video, const char *kind)
{
    const char *slash = strrchr(video, '/'), *end = strrchr(slash ? slash : video, '.');
    size_t stem = end ? (size_t)(end - video) : strlen(video), size = strlen(video) + 16;
    char *name = malloc(size);
    if (name)
        snprintf(name, size, "%.*s%s%s", (int)stem, video, kind, video + stem);
    return name;
}

static int name_videos(const char *video, struct vkn_render_params *params, struct videos *videos)
{
    const struct {
        const char *kind;
        bool shown;
        const char **path;
    } maps[VIDEOS] = {{"", params->color, &params->video},
                      {"_depth", params->depth, &params->depth_video},
                      {"_opacity", params->opacity, &params->opacity_video},
                      {"_normal", params->normal, &params->normal_video}};
    bool any = false;
    for (size_t i = 0; i < VIDEOS; i++) {
        if (!maps[i].shown)
            continue;
        any = true;
        *maps[i].path = videos->names[i] = video_name(video, maps[i].kind);
        if (!videos->names[i])
            return cli_fail(VKN_ERROR, "out of memory");
    }
    return any ? OPTIONS_GO_ON
               : cli_fail(VKN_BAD_INPUT, "%s: no map is a picture that a video could show", video);
}

static int print_json(const struct vkn_render_params *params, const struct videos *videos,
                      const struct vkn_render_result *result)
{
    cJSON *json = cJSON_CreateObject(), *names = cJSON_AddArrayToObject(json, "videos");
    bool complete = cJSON_AddNumberToObject(json, "frames", (double)result->frames) &&
                    cJSON_AddStringToObject(json, "folder", params->out) && names;
    if (params->depth && result->depth_farthest > 0.0)
        complete = complete &&
                   cJSON_AddNumberToObject(json, "depth_nearest", result->depth_nearest) &&
                   cJSON_AddNumberToObject(json, "depth_farthest", result->depth_farthest);
    if (params->depth16 && result->depth_unit > 0.0)
        complete = complete &&
                   cJSON_AddNumberToObject(json, "depth_unit_scale_factor", result->depth_unit);
    for (size_t i = 0; i < VIDEOS && complete; i++)
        if (videos->names[i])
            complete = cJSON_AddItemToArray(names, cJSON_CreateString(videos->names[i]));
    return cli_print_object(json, complete);
}

static int print_result(const struct vkn_render_params *params, const struct videos *videos,
                        const struct vkn_render_result *result)
{
    printf("%zu frame%s in %s\n", result->frames, result->frames == 1 ? "" : "s", params->out);
    if (params->depth && result->depth_farthest > 0.0)
        printf("depth: 255 is %.9g, 1 is %.9g dataset units, 0 is nothing\n", result->depth_nearest,
               result->depth_farthest);
    if (params->depth16 && result->depth_unit > 0.0)
        printf("depth16: 1 is %.9g dataset units, 0 is nothing\n", result->depth_unit);
    for (size_t i = 0; i < VIDEOS; i++)
        if (videos->names[i])
            printf("video: %s\n", videos->names[i]);
    return cli_finish_output();
}

static int render(struct vkn_render_params *params, const char *video, bool json)
{
    struct videos videos = {0};
    struct vkn_render_result result = {.size = sizeof result};
    vkn_log_quiet(params->job->quiet);
    int code = video ? name_videos(video, params, &videos) : OPTIONS_GO_ON;
    if (code == OPTIONS_GO_ON) {
        vkn_status status = vkn_run_render(params, &result);
        code = status != VKN_OK ? cli_status(status)
               : json           ? print_json(params, &videos, &result)
                                : print_result(params, &videos, &result);
    }
    for (size_t i = 0; i < VIDEOS; i++)
        free(videos.names[i]);
    return code;
}

/* Indexed by enum vkn_lens. */
static const char *const lenses[] = {"", "", "equirectangular", NULL};

/* The values of cli_backgrounds, and a transparent background. */
enum { TRANSPARENT = VKN_BACKGROUND_BLACK + 1 };
static const char *const backgrounds[] = {"", "", "white", "black", "transparent", NULL};

int cmd_render(int argc, char **argv)
{
    unsigned background = 0;
    struct vkn_job job = {.size = sizeof job, .stop = &cli_stop};
    struct vkn_render_params params = {.size = sizeof params, .job = &job};
    bool json = false, progress = false;
    const char *maps = "rgb", *time = NULL, *fps = NULL, *video = NULL, *crop = NULL, *trust = NULL,
               *exposure = NULL;
    const struct option options[] = {
        {OPTION("--split", "train|val|test", CHOICE, &params.split,
                "views of a split; default test, else val, else train"),
         .choices = cli_splits},
        {OPTION("--orbit", "N", COUNT, &params.orbit, "N views on a circle around the scene")},
        {OPTION("--interpolate", "N", COUNT, &params.interpolate,
                "N views on a smooth path through the training cameras")},
        {OPTION("--path", "FILE", TEXT, &params.camera_path,
                "camera path in JSON: keyframes, a path of nerfstudio's viewer or of instant-ngp, "
                "or frames as in transforms.json")},
        {OPTION("--dataparser", "FILE", TEXT, &params.dataparser,
                "nerfstudio's dataparser_transforms.json; default the one beside the path")},
        CLI_TIME_OPTION(time, "time, 0 to 1, that all views show; default that of each camera"),
        {OPTION("--maps", "MAP[,MAP...]", TEXT, &maps,
                "images to write: rgb, depth, depth16 (16 bits), depth_values (.npy), opacity, "
                "normal; default rgb"),
         .choices = map_names},
        {OPTION("--out", "DIR", TEXT, &params.out, "folder for the images")},
        {OPTION("--video", "FILE", TEXT, &video,
                "also a video of each map: x.mp4 or x.gif, x_depth.mp4 and so on; needs ffmpeg")},
        {OPTION("--fps", "F", TEXT, &fps,
                "frames per second of videos; default that of the path, else 24")},
        {OPTION(
             "--background", "white|black|transparent", CHOICE, &background,
             "background; default sky, else white or black as trained; transparent: rgb has alpha"),
         .choices = backgrounds},
        {OPTION("--exposure", "EV", TEXT, &exposure,
                "stops by which the images are brighter than the mean of the training images")},
        CLI_PRECISION_OPTION(params.precision),
        {OPTION("--supersample", "1|2|4", COUNT, &params.supersample,
                "rays along a pixel's edge; default 1")},
        {OPTION("--lens", "equirectangular", CHOICE, &params.lens,
                "panoramas of 360 x 180 degrees at the views' positions"),
         .choices = lenses},
        {OPTION("--width", "PIXELS", COUNT, &params.width,
                "width of the images; default that of the views")},
        {OPTION("--height", "PIXELS", COUNT, &params.height,
                "height of the images; default that of the views")},
        {OPTION("--crop", CLI_CROP, TEXT, &crop,
                "box to show, in dataset units, rotated about its centre by degrees about x, then "
                "y, then z; default everything")},
        CLI_SCENE_OPTIONS(params.scene, params.format),
        CLI_TRUST_OPTION(trust),
        {OPTION("--json", NULL, FLAG, &json, "print the result as one JSON object")},
        CLI_PROGRESS_OPTION(progress),
        CLI_JOB_OPTIONS(job),
    };
    const struct options_command command = {
        .name = "render",
        .usage = "render RUN --out DIR [OPTION ...]",
        .summary =
            "Renders views of RUN, a run directory or a checkpoint, as DIR/frame_0000.png, ...\n"
            "Views of a split have the lenses of their cameras. Other views have a pinhole lens,\n"
            "unless the camera path or --lens sets another; if the training cameras are fisheyes\n"
            "or panoramas, it covers at most 90 degrees.",
        .options = options,
        .option_count = sizeof(options) / sizeof(options[0]),
        .argument = "RUN",
        .argument_required = true,
    };
    int code = options_parse(&command, argc, argv, &params.run);
    if (code == OPTIONS_GO_ON)
        code = parse_maps(maps, &params);
    if (code == OPTIONS_GO_ON)
        code = cli_parse_time(time, &params.has_time, &params.time);
    job.progress = progress ? cli_print_progress : NULL;
    params.transparent = background == TRANSPARENT;
    params.background = params.transparent ? 0 : (enum vkn_background)background;
    if (code == OPTIONS_GO_ON)
        code = cli_parse_crop(crop, &params.crop[0], &params.crop[3], params.crop_rotation);
    if (code == OPTIONS_GO_ON)
        code = parse_number("--fps", fps, 0.01, 1000, &params.fps);
    if (code == OPTIONS_GO_ON)
        code = parse_number("--exposure", exposure, -16, 16, &params.exposure);
    if (code == OPTIONS_GO_ON && params.supersample > 0 && params.supersample != 1 &&
        params.supersample != 2 && params.supersample != 4)
        code = cli_fail(VKN_BAD_INPUT, "--supersample: %u is not 1, 2 or 4", params.supersample);
    if (code == OPTIONS_GO_ON && !params.out)
        code = cli_fail(VKN_BAD_INPUT, "render: --out DIR is missing; see vknerf render --help");
    if (code == OPTIONS_GO_ON)
        code = cli_trust(trust, params.run);
    return code == OPTIONS_GO_ON ? render(&params, video, json) : code;
}
