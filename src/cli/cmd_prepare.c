/* vknerf prepare PICTURES: makes a scene from photographs, a video or another program's capture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cli/cli.h"

static const char *const matchers[] = {"", VKN_MATCHERS(VKN_NAME) NULL};
static const char *const camera_models[] = {"", VKN_CAMERA_MODELS(VKN_NAME) NULL};

/* The refinement that may follow. */
struct refining {
    const char *out;     /* --refine; NULL: none */
    const char *seconds; /* --refine-seconds; NULL: the default number of steps */
    vkn_config *config;
};

/* ---- result --------------------------------------------------------------------- */

static void print_problems(const cJSON *info)
{
    const cJSON *problems = cJSON_GetObjectItemCaseSensitive(info, "problems"), *problem;
    cJSON_ArrayForEach (problem, problems) {
        char line[1024];
        snprintf(line, sizeof(line), "%s", cli_text_of(problem, "problem"));
        vkn_clean_line(line);
        printf("problem: %s\n", line);
        snprintf(line, sizeof(line), "%s", cli_text_of(problem, "advice"));
        vkn_clean_line(line);
        printf("  to do: %s\n", line);
    }
    if (cJSON_GetArraySize(problems) == 0)
        puts("no problems found");
}

static int print_next(const char *out)
{
    cli_print_command("next: vknerf train", out, "");
    cli_print_command("or refine its poses first: vknerf refine", out, " --out REFINED");
    return cli_finish_output();
}

/* Refines the poses of the scene. Prints the verdict, or adds it to a JSON object. */
static int refine(const struct vkn_prepare_params *params, const struct refining *refining,
                  cJSON *object)
{
    const struct vkn_train_params train = {
        .job = params->job, .scene = params->out, .out = refining->out, .config = refining->config};
    const struct vkn_refine_params given = {.train = &train};
    struct vkn_refine_result result = {.size = sizeof(result)};
    if (!getenv("VKNERF_MEASURE"))
        vkn_prefer_wide_vectors();
    if (!object)
        return cli_refine(&given, false);
    vkn_status status = vkn_refine(&given, &result);
    if (status != VKN_OK)
        return cli_status(status);
    char *text = vkn_refine_json(refining->out);
    if (!text)
        return cli_status(VKN_ERROR);
    bool added = cJSON_AddItemToObject(object, "refinement", cJSON_Parse(text));
    free(text);
    return added ? VKN_OK : cli_fail(VKN_ERROR, "out of memory");
}

/* Prints one object: the result, the scene as `vknerf info --json` describes it, and the verdict
 * of a refinement. */
static int print_json(const struct vkn_prepare_params *params,
                      const struct vkn_prepare_result *result, const struct refining *refining,
                      cJSON *info)
{
    cJSON *object = cJSON_CreateObject();
    bool complete = cJSON_AddStringToObject(object, "scene", params->out) &&
                    cJSON_AddNumberToObject(object, "pictures", (double)result->pictures) &&
                    cJSON_AddNumberToObject(object, "registered", (double)result->registered) &&
                    cJSON_AddNumberToObject(object, "points", (double)result->points) &&
                    cJSON_AddNumberToObject(object, "models", (double)result->models) &&
                    cJSON_AddNumberToObject(object, "seconds", result->seconds);
    cJSON_AddItemToObject(object, "info", info);
    int code = refining->out && complete ? refine(params, refining, object) : VKN_OK;
    if (code == VKN_OK)
        return cli_print_object(object, complete);
    cJSON_Delete(object);
    return code;
}

/* Prints the result, and refines, or names the next commands. */
static int print_text(const struct vkn_prepare_params *params,
                      const struct vkn_prepare_result *result, const struct refining *refining,
                      cJSON *info)
{
    unsigned seconds = (unsigned)(result->seconds + 0.5);
    printf("%zu of %zu pictures have poses, %zu points, %u:%02u minutes\n", result->registered,
           result->pictures, result->points, seconds / 60, seconds % 60);
    if (result->models > 1)
        printf("COLMAP made %zu separate models; the largest one is used\n", result->models);
    print_problems(info);
    cJSON_Delete(info);
    int code = cli_finish_output();
    if (code != VKN_OK)
        return code;
    return refining->out ? refine(params, refining, NULL) : print_next(params->out);
}

static int print_result(const struct vkn_prepare_params *params,
                        const struct vkn_prepare_result *result, const struct refining *refining,
                        bool json)
{
    const struct vkn_scene_info_params scene = {.scene = params->out};
    char *text = NULL;
    vkn_status status = vkn_scene_info_json(&scene, &text);
    if (status != VKN_OK)
        return cli_status(status);
    cJSON *info = cJSON_Parse(text);
    free(text);
    if (!info)
        return cli_fail(VKN_ERROR, "out of memory");
    return (json ? print_json : print_text)(params, result, refining, info);
}

/* ---- the command --------------------------------------------------------------------------- */

static int parse(int argc, char **argv, struct vkn_prepare_params *params,
                 struct refining *refining, bool *json, bool *quiet)
{
    const char *distance = NULL;
    const struct option options[] = {
        {OPTION("--out", "SCENE", TEXT, &params->out,
                "folder of the scene; steps that are complete there are skipped")},
        {OPTION("--overwrite", NULL, FLAG, &params->overwrite,
                "replace a SCENE that was made from other images")},
        {OPTION("--masks", "DIR", TEXT, &params->masks,
                "folder of masks, white where pixels are used; default PICTURES/masks")},
        {OPTION("--frames", "N", COUNT, &params->frames,
                "number of frames from a video, evenly spaced; default 150")},
        {OPTION("--sharpest", NULL, FLAG, &params->sharpest,
                "take the sharpest frame of each of N windows of the video")},
        {OPTION("--equirectangular", NULL, FLAG, &params->equirectangular,
                "the images are panoramas: make eight views of each")},
        {OPTION("--matcher", CLI_NAMES(VKN_MATCHERS), CHOICE, &params->matcher,
                "image pairs to match; default exhaustive up to 200 images"),
         .choices = matchers},
        {OPTION("--camera-model", "MODEL", CHOICE, &params->camera_model,
                "COLMAP's camera model; default OPENCV for one camera, else SIMPLE_RADIAL"),
         .choices = camera_models},
        CLI_DISTANCE_OPTION(distance, "two points of another program's capture, in its units, and "
                                      "the distance between them: exports are then in metres"),
        {OPTION("--refine", "DIR", TEXT, &refining->out,
                "then refine the poses into this folder, as vknerf refine SCENE --out DIR does")},
        {OPTION("--refine-seconds", "S", TEXT, &refining->seconds,
                "limit on the time of the first training of --refine")},
        {OPTION("--json", NULL, FLAG, json,
                "print the result as one JSON object, with the verdict of --refine")},
        {OPTION("--quiet", NULL, FLAG, quiet, "print only warnings and results")},
    };
    const struct options_command command = {
        .name = "prepare",
        .usage = "prepare PICTURES|VIDEO --out SCENE [OPTION ...]",
        .summary =
            "Makes a scene for vknerf train from a folder of photographs or from a video: images,\n"
            "smaller copies, masks, and camera poses by COLMAP. After an interruption\n"
            "the same command continues. Needs colmap, and ffmpeg for videos. Poses of captures\n"
            "of Metashape, RealityCapture, Polycam, Record3D, OpenSfM and Pix4D (OPF) are kept.",
        .options = options,
        .option_count = sizeof(options) / sizeof(options[0]),
        .argument = "PICTURES",
        .argument_required = true,
    };
    int code = options_parse(&command, argc, argv, &params->pictures);
    if (code == OPTIONS_GO_ON && !params->out)
        return cli_fail(VKN_BAD_INPUT,
                        "prepare: --out SCENE is missing; see vknerf prepare --help");
    if (code == OPTIONS_GO_ON && refining->seconds && !refining->out)
        return cli_fail(VKN_BAD_INPUT, "--refine-seconds: only valid with --refine");
    return code == OPTIONS_GO_ON ? cli_parse_distance(distance, &params->unit_length) : code;
}

static int configure(struct refining *refining)
{
    vkn_status status = vkn_config_create(&refining->config);
    if (status == VKN_OK && refining->seconds)
        status = vkn_config_set(refining->config, "--refine-seconds", "seconds", refining->seconds);
    return status == VKN_OK ? OPTIONS_GO_ON : cli_status(status);
}

static int prepare(const struct vkn_prepare_params *params, const struct refining *refining,
                   bool json)
{
    struct vkn_prepare_result result = {0};
    vkn_status status = vkn_prepare(params, &result);
    if (status != VKN_OK)
        return cli_status(status);
    return print_result(params, &result, refining, json);
}

int cmd_prepare(int argc, char **argv)
{
    struct vkn_job job = {.stop = &cli_stop};
    struct vkn_prepare_params params = {.size = sizeof params, .job = &job};
    struct refining refining = {0};
    bool json = false;
    int code = parse(argc, argv, &params, &refining, &json, &job.quiet);
    if (code == OPTIONS_GO_ON)
        code = configure(&refining);
    if (code == OPTIONS_GO_ON) {
        vkn_log_quiet(job.quiet);
        code = prepare(&params, &refining, json);
    }
    vkn_config_destroy(&refining.config);
    return code;
}
