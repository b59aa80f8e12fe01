/* vknerf eval RUN: measures the quality of a run's views. */
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
    struct vkn_eval_params params = {.size = sizeof params, .job = &job};
    bool json = false;
    const char *trust = NULL;
    const struct option options[] = {
        {OPTION("--split", "train|val|test", CHOICE, &params.split,
                "split to measure; default test, else val, else train"),
         .choices = cli_splits},
        {OPTION("--background", "white|black", CHOICE, &params.background,
                "background; default the sky of scene.sky, else white, black if trained on black"),
         .choices = cli_backgrounds},
        CLI_PRECISION_OPTION(params.precision),
        {OPTION("--stride", "K", COUNT, &params.stride, "measure every K-th view only; default 1")},
        {OPTION("--aligned", NULL, FLAG, &params.aligned,
                "also measure every view at a pose aligned with the field; default if the run has\n"
                "refined cameras: at most 16 views")},
        CLI_SCENE_OPTIONS(params.scene, params.format),
        CLI_TRUST_OPTION(trust),
        {OPTION("--json", NULL, FLAG, &json, "print the result and every view as one JSON object")},
        CLI_JOB_OPTIONS(job),
    };
    const struct options_command command = {
        .name = "eval",
        .usage = "eval RUN [OPTION ...]",
        .summary = "Prints the mean PSNR and SSIM of the test views of RUN, a run directory or a\n"
                   "checkpoint. Views and images are composited on the background in sRGB space.",
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
