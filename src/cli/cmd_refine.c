/* vknerf refine SCENE: refines the cameras of a scene, and judges them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "cli/training.h"

#define NAMED_VIEWS 20 /* most views that a line lists */

/* ---- result --------------------------------------------------------------------------------- */

void cli_print_command(const char *command, const char *scene, const char *options)
{
    char *word = vkn_shell_word(scene);
    printf("%s %s%s%s\n", command, scene[0] == '-' ? "./" : "", word ? word : "?", options);
    free(word);
}

/* Prints the command that trains on the better cameras, with the format if it was given. */
static void print_training(const struct vkn_refine_params *params, const char *scene)
{
    char *format = NULL, options[64] = "";
    if (params->train->config &&
        vkn_config_get(params->train->config, "scene.format", &format) == VKN_OK &&
        strcmp(format, "auto") != 0)
        snprintf(options, sizeof(options), " --format %s", format);
    cli_print_command("next: vknerf train", scene, options);
    vkn_free(format);
}

/* Prints which views are rolled back, by their indices. `json`: the verdict. */
static void print_rolled_back(const cJSON *json, size_t count)
{
    const cJSON *view;
    size_t index = 0, named = 0;
    printf("views that keep their cameras, as they are at refine.limit or do not fit: %zu (view",
           count);
    cJSON_ArrayForEach (view, cJSON_GetObjectItemCaseSensitive(json, "views")) {
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(view, "rolled_back")) &&
            named++ < NAMED_VIEWS)
            printf("%s %zu", named > 1 ? "," : "", index);
        index++;
    }
    printf("%s), see the report\n", named > NAMED_VIEWS ? ", ..." : "");
}

static void print_verdict(const struct vkn_refine_params *params,
                          const struct vkn_refine_result *result, const cJSON *json)
{
    const char *other = params->cameras ? "other" : "refined";
    unsigned seconds = (unsigned)(result->seconds + 0.5);
    if (isfinite(result->pixels))
        printf("%zu views have moved by %.3f pixels in the mean\n",
               result->views - result->rolled_back, result->pixels);
    if (result->rolled_back > 0)
        print_rolled_back(json, result->rolled_back);
    printf("PSNR of test views: original cameras %.2f dB, %s cameras %.2f dB: %+.2f dB, noise %.2f "
           "dB (%llu steps, %u:%02u minutes)\n",
           result->psnr[0], other, result->psnr[1], result->difference, result->noise,
           (unsigned long long)result->steps, seconds / 60, seconds % 60);
    if (result->verdict == VKN_REFINE_EQUAL)
        printf("verdict: keep the original cameras: differences up to %.2f dB may be noise\n",
               result->threshold);
    else
        printf("verdict: keep the %s cameras\n",
               result->verdict == VKN_REFINE_REFINED ? other : "original");
    printf("report: %s/report.html\n", params->train->out);
    print_training(params, result->verdict == VKN_REFINE_REFINED
                               ? cli_text_of(json, "refined_scene")
                               : params->train->scene);
}

int cli_refine(const struct vkn_refine_params *params, bool json)
{
    struct vkn_refine_result result = {.size = sizeof result};
    vkn_status status = vkn_refine(params, &result);
    if (status != VKN_OK)
        return cli_status(status);
    char *text = vkn_refine_json(params->train->out);
    if (json)
        return cli_print_json(text);
    cJSON *verdict = cJSON_Parse(text);
    print_verdict(params, &result, verdict);
    cJSON_Delete(verdict);
    free(text);
    return cli_finish_output();
}

/* ---- the command ---------------------------------------------------------------------------- */

static int check(const struct training *training, const char *cameras, bool lenses)
{
    if (cameras && lenses)
        return cli_fail(VKN_BAD_INPUT, "refine: --lenses and --only-verdict exclude each other");
    if (!training->params.scene)
        return cli_fail(VKN_BAD_INPUT, "refine: SCENE is missing; see vknerf refine --help");
    if (!training->params.out)
        return cli_fail(VKN_BAD_INPUT,
                        "refine: --out REFINED is missing; see vknerf refine --help");
    if (cli_rank())
        return cli_fail(VKN_BAD_INPUT,
                        "refine: runs as one process; for several devices use --devices");
    return OPTIONS_GO_ON;
}

static int parse(struct training *training, int argc, char **argv, struct vkn_refine_params *params,
                 bool *lenses)
{
    static const char *const unused[] = {"--view",    "--view-address", "--view-exit",
                                         "--profile", "--field",        "--model"};
    for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
        training_remove_option(training, unused[i]);
    training_set_help(training, "--steps", "number of steps of each training; default 20000");
    training_set_help(training, "--seconds",
                      "limit on the time of the first training; the others take as many steps");
    training_set_help(training, "--out",
                      "folder of the scene with refined cameras, and the report");
    training_set_help(training, "--seed", "seed of the first training");
    training_set_help(training, "--set",
                      "any setting by its key, see vknerf train --help; repeatable");
    const struct option more[] = {
        {OPTION("--only-verdict", "SCENE", TEXT, &params->cameras,
                "compare with the cameras of this scene; refine nothing")},
        {OPTION("--lenses", NULL, FLAG, lenses,
                "also refine lenses: focal length, principal point, distortion")},
        {OPTION("--seeds", "N", COUNT, &params->seeds,
                "number of trainings with each set of cameras; default 2")},
        {OPTION("--json", NULL, FLAG, &training->json, "print the verdict as one JSON object")},
    };
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        training_add_option(training, more[i]);
    const struct options_command command = {
        .name = "refine",
        .usage = "refine SCENE --out REFINED [OPTION ...]",
        .summary =
            "Refines the camera poses of SCENE in a training of all views. Then trains with the\n"
            "original and with the refined cameras, with equal seeds and steps, and prints which\n"
            "are better by the PSNR of test views. REFINED gets the scene with refined cameras, "
            "in\n"
            "the format of SCENE and with links to its images, verdict.json and report.html.\n"
            "SCENE is not changed. After an interruption the same command continues.",
        .options = training->options,
        .option_count = training->option_count,
        .argument = "SCENE",
    };
    int code = options_parse(&command, argc, argv, &training->params.scene);
    return code == OPTIONS_GO_ON ? check(training, params->cameras, *lenses) : code;
}

int cmd_refine(int argc, char **argv)
{
    struct training training;
    struct vkn_refine_params params = {.train = &training.params};
    bool lenses = false;
    int code = training_begin(&training, argc);
    if (code == OPTIONS_GO_ON)
        code = parse(&training, argc, argv, &params, &lenses);
    if (code == OPTIONS_GO_ON)
        code = training_configure(&training);
    if (code == OPTIONS_GO_ON && lenses &&
        vkn_config_set(training.config, "--lenses", "scene.refine", "all") != VKN_OK)
        code = cli_status(VKN_BAD_INPUT);
    if (code == OPTIONS_GO_ON)
        code = cli_refine(&params, training.json);
    training_end(&training);
    return code;
}
