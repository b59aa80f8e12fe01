/* vknerf eval RUN: how good a run's views are. */
#include <stdio.h>

#include "cli/cli.h"

static int print_result(const struct vkn_evaluation *evaluation, bool json)
{
    if (!json) {
        cli_print_evaluation(evaluation);
        return cli_finish_output();
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
        {OPTION("--split", "train|val|test", CHOICE, &params.split,
                "views to measure; default test, without such val, else train"),
         .choices = cli_splits},
        {OPTION("--background", "white|black", CHOICE, &params.background,
                "behind transparent pixels; default white, or black after training on black"),
         .choices = cli_backgrounds},
        CLI_PRECISION_OPTION(params.precision),
        {OPTION("--stride", "K", COUNT, &params.stride, "every K-th view only")},
        CLI_SCENE_OPTIONS(params.scene, params.format),
        CLI_TRUST_OPTION(trust),
        {OPTION("--json", NULL, FLAG, &json,
                "one JSON object on standard output, with every view")},
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
