/* vknerf report RUN ...: writes a page about one run, or one that compares several. */
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "cli/cli.h"

static int print_file(const char *file, bool json)
{
    if (!json) {
        printf("report: %s\n", file);
        return cli_finish_output();
    }
    cJSON *object = cJSON_CreateObject();
    bool complete = cJSON_AddStringToObject(object, "report", file) != NULL;
    return cli_print_object(object, complete);
}

static int write_report(const struct vkn_report_params *params, bool json)
{
    char *file = NULL;
    vkn_status status = vkn_run_report(params, &file);
    if (status != VKN_OK)
        return cli_status(status);
    int code = print_file(file, json);
    free(file);
    return code;
}

int cmd_report(int argc, char **argv)
{
    struct vkn_report_params params = {0};
    bool json = false;
    const struct option options[] = {
        {OPTION("--out", "FILE.html", TEXT, &params.out,
                "HTML file to write; default RUN/report.html, or comparison.html")},
        {OPTION("--json", NULL, FLAG, &json, "print the path of the page as one JSON object")},
    };
    const struct options_command command = {
        .name = "report",
        .usage = "report RUN [RUN ...] [OPTION ...]",
        .summary =
            "Writes a page about a run, or a page that compares several runs: loss and PSNR by\n"
            "step and time, loss scale, throughput, results, images under a slider, and the\n"
            "settings that differ. The page is one file; it needs no other file and no network.",
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
        code = write_report(&params, json);
    free((void *)runs);
    return code;
}
