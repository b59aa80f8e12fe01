/* vknerf train SCENE: a run directory from photographs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/training.h"

static char *keys_help(void)
{
    static const char title[] = "Keys of --set and of --config files, where 0 means the default:\n";
    char *keys = vkn_config_help();
    size_t size = keys ? sizeof(title) + strlen(keys) : 0;
    char *text = keys ? malloc(size) : NULL;
    if (text)
        snprintf(text, size, "%s%s", title, keys);
    free(keys);
    return text;
}

static int parse(struct training *training, int argc, char **argv)
{
    const struct option more[] = {
        {.name = "--resume",
         .value = "RUN",
         .help = "go on with a run; new --steps or --seconds replace its limits",
         .kind = OPTION_TEXT,
         .target = (void *)&training->params.resume},
        {.name = "--init",
         .value = "CHECKPOINT",
         .help = "begin with the weights of a run or checkpoint",
         .kind = OPTION_TEXT,
         .target = (void *)&training->params.init},
    };
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        training_add_option(training, more[i]);
    const struct options_command command = {
        .name = "train",
        .usage = "train SCENE [OPTION ...]\n       vknerf train --resume RUN [OPTION ...]",
        .summary =
            "Trains on SCENE, a folder with transforms.json or transforms_train.json, or such a "
            "file,\nand writes a run directory with configuration, metrics, checkpoint, summary, "
            "views and\nreport.html. Ctrl-C saves; --resume goes on.",
        .options = training->options,
        .option_count = training->option_count,
        .argument = "SCENE",
        .more_help = keys_help,
    };
    int code = options_parse(&command, argc, argv, &training->params.scene);
    if (code == OPTIONS_GO_ON && !training->params.scene && !training->params.resume)
        code = cli_fail(VKN_BAD_INPUT, "train: SCENE is missing; see vknerf train --help");
    return code;
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
