/* vknerf report RUN ...: a page about one run, or one that compares several. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

static int write_report(const struct vkn_report_params *params)
{
    char *file = NULL;
    vkn_status status = vkn_run_report(params, &file);
    if (status != VKN_OK)
        return cli_status(status);
    printf("report: %s\n", file);
    free(file);
    return cli_printed();
}

int cmd_report(int argc, char **argv)
{
    struct vkn_report_params params = {0};
    const struct option options[] = {
        {.name = "--out",
         .value = "FILE.html",
         .help = "page to write; default RUN/report.html, or comparison.html",
         .kind = OPTION_TEXT,
         .target = (void *)&params.out},
    };
    const struct options_command command = {
        .name = "report",
        .usage = "report RUN [RUN ...] [OPTION ...]",
        .summary =
            "Writes a page about a run directory, or one that compares several: loss and PSNR by "
            "step\nand time, loss scale, throughput, results, pictures under a slider, and the "
            "settings that\ndiffer. The page is one file that needs no other, and no network.",
        .options = options,
        .option_count = sizeof(options) / sizeof(options[0]),
        .argument = "RUN",
        .argument_required = true,
        .argument_repeats = true,
    };
    const char **runs = calloc((size_t)argc, sizeof(*runs));
    if (!runs)
        return cli_fail(VKN_ERROR, "out of memory");
    int code = options_parse(&command, argc, argv, runs);
    params.runs = runs;
    while (params.run_count + 1 < (size_t)argc && runs[params.run_count])
        params.run_count++;
    if (code == OPTIONS_GO_ON)
        code = write_report(&params);
    free((void *)runs);
    return code;
}
