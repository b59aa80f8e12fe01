/* vknerf demo: trains the bundled scene and renders an orbit around it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/training.h"

#define ORBIT_FRAMES 24

/* ---- training ------------------------------------------------------------------------------ */

/* Trains, resumes an interrupted training, or reports a finished one. */
static int train(struct training *training, bool force)
{
    struct vkn_train_params *params = &training->params;
    struct vkn_run_state state = {0};
    vkn_status status = vkn_run_inspect(params->out, &state);
    if (status != VKN_OK && !force)
        return cli_status(status);
    params->overwrite = force;
    if (state.exists && !force) {
        if (state.finished) {
            printf(
                "%s: already trained, %llu steps in %.1f s, PSNR %.2f dB; --force trains again\n",
                params->out, (unsigned long long)state.step, state.seconds, state.psnr);
            printf("report: %s/report.html\npictures: %s/views\n", params->out, params->out);
            if (training->view.port.given)
                printf("view it again: vknerf view %s\n", params->out);
            return cli_finish_output();
        }
        params->resume = params->out;
        return training_run(training);
    }
    char *scene = NULL;
    int found = cli_find_bundled(&scene);
    if (found != VKN_OK)
        return found;
    params->scene = scene;
    int code = training_run(training);
    free(scene);
    return code;
}

/* Returns whether `file` exists and is not older than `model`. */
static bool is_current(const char *file, const char *model)
{
    struct stat made, trained;
    if (stat(file, &made) != 0 || stat(model, &trained) != 0)
        return false;
    return made.st_mtim.tv_sec > trained.st_mtim.tv_sec ||
           (made.st_mtim.tv_sec == trained.st_mtim.tv_sec &&
            made.st_mtim.tv_nsec >= trained.st_mtim.tv_nsec);
}

/* Renders an orbit, unless its last frame is newer than the checkpoint. */
static int render_orbit(const struct training *training)
{
    char *out = cli_format_path(training->params.out, "/orbit");
    char *last = out ? cli_format_path(out, "/frame_0023.png") : NULL;
    char *model = cli_format_path(training->params.out, "/checkpoint.safetensors");
    struct vkn_render_params params = {
        .job = &training->job,
        .run = training->params.out,
        .orbit = ORBIT_FRAMES,
        .out = out,
    };
    int code = VKN_OK;
    struct vkn_render_result result = {0};
    if (!last || !model)
        code = cli_fail(VKN_ERROR, "out of memory");
    else if (!is_current(last, model))
        code = cli_status(vkn_run_render(&params, &result));
    if (code == VKN_OK)
        printf("orbit: %s\n", out);
    free(last);
    free(model);
    free(out);
    return code == VKN_OK ? cli_finish_output() : code;
}

/* ---- the command --------------------------------------------------------------------------- */

static int parse(struct training *training, int argc, char **argv, bool *force)
{
    training_set_help(training, "--steps", "number of training steps; default 10000");
    training_set_help(training, "--seconds", "limit on the training time, in seconds; default 2m");
    training_set_help(training, "--out", "run directory; default runs/demo");
    training_set_help(training, "--set",
                      "any setting by its key, see vknerf train --help; repeatable");
    training_add_option(training,
                        (struct option){OPTION("--force", NULL, FLAG, force,
                                               "train again, and replace an existing run")});
    const struct options_command command = {
        .name = "demo",
        .usage = "demo [OPTION ...]",
        .summary =
            "Trains the bundled scene into runs/demo, renders an orbit around it and prints where\n"
            "the images and the report are. An interrupted demo is continued; a finished one is\n"
            "left as it is.",
        .options = training->options,
        .option_count = training->option_count,
    };
    const char *none;
    return options_parse(&command, argc, argv, &none);
}

int cmd_demo(int argc, char **argv)
{
    struct training training;
    bool force = false;
    int code = training_begin(&training, argc);
    if (code == OPTIONS_GO_ON) {
        training.params.out = "runs/demo";
        /* A GPU reaches the number of steps first, a CPU device the time. */
        (void)vkn_config_set(training.config, NULL, "steps", "10000");
        (void)vkn_config_set(training.config, NULL, "seconds", "120");
        code = parse(&training, argc, argv, &force);
    }
    if (code == OPTIONS_GO_ON) {
        code = train(&training, force);
        if (code == VKN_OK)
            code = render_orbit(&training);
        code = training_view(&training, code);
    }
    training_end(&training);
    return code;
}
