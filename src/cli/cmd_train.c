/* vknerf train SCENE: a run directory from photographs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/training.h"

static char *keys_help(void)
{
    static const char title[] =
        "Keys of --set and of --config files. default, in files also null, is the default; 0 is\n"
        "zero. Whole numbers may end in k, M or G (20k is 20000), bytes in K, M or G (of 1024),\n"
        "seconds in s, m or h (5m is 300).\n";
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
        return cli_fail(VKN_BAD_INPUT, "--memory-budget: is for --find-batch, which is missing");
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
                "that SCENE is written in; default what its files show"),
         .key = "scene.format", .choices = formats},
        {OPTION("--resume", "RUN", TEXT, &training->params.resume,
                "go on with a run; new --steps or --seconds replace its limits")},
        {OPTION("--init", "CHECKPOINT", TEXT, &training->params.init,
                "begin with the weights of a run or checkpoint")},
        {.name = "--scene",
         .value = "DIR",
         .help =
             "the scene of a resumed run, when it is no longer where it was; SCENE does the same",
         .kind = OPTION_TEXT,
         .target = (void *)&moved},
        CLI_TRUST_OPTION(training->trust),
        {OPTION("--find-batch", "use|fastest", MODE, &training->find_batch,
                "try batches, print them; train with the largest or fastest"),
         .choices = searches},
        {OPTION("--memory-budget", "SIZE", MEBIBYTES, &training->memory_budget,
                "device memory for --find-batch, such as 512M; default 90% of what is left")},
        {OPTION("--json", NULL, FLAG, &training->json,
                "the result, or what --find-batch finds, as one JSON object")},
    };
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        training_add_option(training, more[i]);
    const struct options_command command = {
        .name = "train",
        .usage = "train SCENE [OPTION ...]\n       vknerf train --resume RUN [OPTION ...]",
        .summary = "Trains on SCENE, a folder with transforms.json or transforms_train.json,\n"
                   "a COLMAP model (sparse/0), poses_bounds.npy (LLFF) or pose/ (NSVF) and\n"
                   "the images, and writes a run directory with configuration, metrics,\n"
                   "checkpoint, summary, views and report.html. Ctrl-C saves; --resume goes on.",
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
        code = training_run(&training);
    training_end(&training);
    return code;
}
