/* vknerf view RUN: shows a run in a browser. */
#include "cli/cli.h"

#include "viewer/viewer.h"

/* Checks that the run can be read before the viewer prints an address. */
static int check_run(const char *run)
{
    vkn_config *config = NULL;
    vkn_status status = vkn_config_create(&config);
    if (status == VKN_OK)
        status = vkn_run_config(run, config);
    vkn_config_destroy(&config);
    return status == VKN_OK ? OPTIONS_GO_ON : cli_status(status);
}

static int show(struct cli_view *view, const struct viewer_run *run)
{
    char message[VIEWER_MESSAGE];
    cli_stop_text = "\nstopping; once more to stop at once\n";
    vkn_log_quiet(run->job->quiet);
    int code = check_run(run->run);
    if (code == OPTIONS_GO_ON)
        code = cli_view_start(view, stdout);
    if (code != OPTIONS_GO_ON)
        return code;
    vkn_status status = viewer_show(view->viewer, run, message);
    viewer_stop(&view->viewer);
    return status == VKN_OK ? VKN_OK : cli_fail(status, "%s", message);
}

int cmd_view(int argc, char **argv)
{
    struct vkn_job job = {.stop = &cli_stop};
    struct viewer_run run = {.job = &job};
    struct cli_view view = {0};
    const char *trust = NULL;
    const struct option options[] = {
        {OPTION("--port", "N", PORT, &view.port,
                "port to listen on; 0: any; default 7007 or the next free one")},
        CLI_VIEW_ADDRESS_OPTION(view),
        CLI_PRECISION_OPTION(run.precision),
        CLI_SCENE_OPTIONS(run.scene, run.format),
        CLI_TRUST_OPTION(trust),
        CLI_JOB_OPTIONS(job),
    };
    const struct options_command command = {
        .name = "view",
        .usage = "view RUN [OPTION ...]",
        .summary =
            "Shows RUN, a run directory or a checkpoint, in a browser, at the printed address:\n"
            "free views, photographs, curves, and an editor of camera paths. A run that another\n"
            "process trains is updated from its checkpoints. Ctrl-C ends the viewer.",
        .options = options,
        .option_count = sizeof(options) / sizeof(options[0]),
        .argument = "RUN",
        .argument_required = true,
    };
    int code = options_parse(&command, argc, argv, &run.run);
    if (code == OPTIONS_GO_ON)
        code = cli_trust(trust, run.run);
    cli_view_add_option(&view, "--device", job.device);
    cli_view_add_option(&view, "--shader-dir", job.shader_dir);
    cli_view_add_option(&view, "--scene", run.scene);
    if (run.format != VKN_SCENE_AUTO)
        cli_view_add_option(&view, "--format", cli_formats[run.format]);
    cli_view_add_option(&view, "--trust", trust ? "" : NULL);
    return code == OPTIONS_GO_ON ? show(&view, &run) : code;
}
