/* vknerf eval RUN: how good a run's views are. */
#include <stdio.h>

#include "cli/cli.h"

static int print_result(const struct vkn_evaluation *evaluation, bool json)
{
    if (!json) {
        cli_print_evaluation(evaluation);
        return cli_printed();
    }
    return cli_print_json(vkn_evaluation_json(evaluation));
}

int cmd_eval(int argc, char **argv)
{
    struct vkn_job job = {.stop = &cli_stop};
    struct vkn_eval_params params = {.job = &job};
    bool json = false;
    const char *trust = NULL;
    const struct option options[] = {
        {.name = "--split",
         .value = "train|val|test",
         .help = "views to measure; default test, without such val, else train",
         .kind = OPTION_CHOICE,
         .target = &params.split,
         .choices = cli_splits},
        {.name = "--background",
         .value = "white|black",
         .help = "behind transparent pixels; default white, or black after training on black",
         .kind = OPTION_CHOICE,
         .target = &params.background,
         .choices = cli_backgrounds},
        CLI_PRECISION_OPTION(params.precision),
        {.name = "--stride",
         .value = "K",
         .help = "every K-th view only",
         .kind = OPTION_COUNT,
         .target = &params.stride},
        CLI_SCENE_OPTIONS(params.scene, params.format),
        CLI_TRUST_OPTION(trust),
        {.name = "--json",
         .help = "one JSON object on standard output, with every view",
         .kind = OPTION_FLAG,
         .target = &json},
        CLI_JOB_OPTIONS(job),
    };
    const struct options_command command = {
        .name = "eval",
        .usage = "eval RUN [OPTION ...]",
        .summary =
            "Renders the test views of RUN, a run directory or a checkpoint, and prints the mean\n"
            "PSNR and SSIM against their images, composited in sRGB space on the background.",
        .options = options,
        .option_count = sizeof(options) / sizeof(options[0]),
        .argument = "RUN",
        .argument_required = true,
    };
    int code = options_parse(&command, argc, argv, &params.run);
    if (code != OPTIONS_GO_ON)
        return code;
    vkn_log_quiet(params.job->quiet);
    code = cli_trust(trust, params.run);
    if (code != OPTIONS_GO_ON)
        return code;
    struct vkn_evaluation *evaluation;
    vkn_status status = vkn_run_eval(&params, &evaluation);
    code = status == VKN_OK ? print_result(evaluation, json) : cli_status(status);
    vkn_evaluation_free(&evaluation);
    return code;
}
