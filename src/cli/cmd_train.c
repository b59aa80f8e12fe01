/* vknerf train SCENE: trains a field into a run directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/training.h"

static char *keys_help(void)
{
    static const char title[] =
        "Keys of --set and of --config files. Every key also accepts the value default, in files\n"
        "also null. 0 means zero. Whole numbers may end in k, M or G (20k is 20000), bytes in "
        "K, M or G\n(512M is 512 x 1024 x 1024), seconds in s, m or h (5m is 300).\n\n";
    char *keys = vkn_config_help();
    size_t size = keys ? sizeof(title) + strlen(keys) : 0;
    char *text = keys ? malloc(size) : NULL;
    if (text)
        snprintf(text, size, "%s%s", title, keys);
    free(keys);
    return text;
}

static const char *const searches[] = {"", "", "use", "fastest", NULL}; /* enum training_search */

static const char *const formats[] = {"auto", VKN_SCENE_FORMATS(VKN_NAME) NULL};

static int check_search(const struct training *training)
{
    if (training->find_batch == SEARCH_NOTHING && training->memory_budget > 0)
        return cli_fail(VKN_BAD_INPUT, "--memory-budget: only valid with --find-batch");
    return OPTIONS_GO_ON;
}

static int set_moved_scene(struct training *training, const char *scene)
{
    if (training->params.scene)
        return cli_fail(VKN_BAD_INPUT, "--scene: the scene is given twice, as %s and as %s",
                        training->params.scene, scene);
    training->params.scene = scene;
    return OPTIONS_GO_ON;
}

static int parse(struct training *training, int argc, char **argv)
{
    const char *moved = NULL;
    const struct option more[] = {
        {OPTION("--format", "auto" VKN_SCENE_FORMATS(CLI_OR_NAME), SETTING, &training->settings,
                NULL),
         .key = "scene.format", .choices = formats},
        {OPTION("--resume", "RUN", TEXT, &training->params.resume,
                "continue a run; a new --steps or --seconds replaces its limits")},
        {OPTION("--init", "CHECKPOINT", TEXT, &training->params.init,
                "initial weights from a run or checkpoint")},
        {OPTION("--scene", "DIR", TEXT, &moved,
                "new location of a resumed run's scene; SCENE does the same")},
        CLI_TRUST_OPTION(training->trust),
        {OPTION("--find-batch", "use|fastest", MODE, &training->find_batch,
                "try batch sizes, print them; train with the largest or fastest"),
         .choices = searches},
        {OPTION("--memory-budget", "SIZE", MEBIBYTES, &training->memory_budget,
                "device memory for --find-batch, such as 512M; default 90% of what is free")},
        {OPTION("--json", NULL, FLAG, &training->json,
                "print the result, or that of --find-batch, as one JSON object")},
    };
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        training_add_option(training, more[i]);
    const struct options_command command = {
        .name = "train",
        .usage = "train SCENE [OPTION ...]\n       vknerf train --resume RUN [OPTION ...]",
        .summary = "Trains a field on SCENE and writes a run directory: configuration, metrics,\n"
                   "checkpoint, summary, views and report.html. SCENE is a folder with images and\n"
                   "transforms.json or transforms_train.json, a COLMAP model (sparse/0),\n"
                   "poses_bounds.npy (LLFF) or pose/ (NSVF). Ctrl-C saves the run and ends it;\n"
                   "--resume continues it.",
        .options = training->options,
        .option_count = training->option_count,
        .argument = "SCENE",
        .more_help = keys_help,
    };
    int code = options_parse(&command, argc, argv, &training->params.scene);
    if (code == OPTIONS_GO_ON && moved)
        code = set_moved_scene(training, moved);
    if (code == OPTIONS_GO_ON && !training->params.scene && !training->params.resume)
        code = cli_fail(VKN_BAD_INPUT, "train: SCENE is missing; see vknerf train --help");
    return code == OPTIONS_GO_ON ? check_search(training) : code;
}

int cmd_train(int argc, char **argv)
{
    struct training training;
    int code = training_begin(&training, argc);
    if (code == OPTIONS_GO_ON)
        code = parse(&training, argc, argv);
    if (code == OPTIONS_GO_ON)
        code = training_view(&training, training_run(&training));
    training_end(&training);
    return code;
}
