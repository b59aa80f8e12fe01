/* Runs the command line program: dispatches commands, prints usage and the man page. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "cli/cli.h"

static const struct command {
    const char *name, *help;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"info", "list devices and their capabilities, or describe a scene or run", cmd_info},
    {"prepare", "make a scene from photographs or a video", cmd_prepare},
    {"refine", "refine the cameras of a scene, and judge them", cmd_refine},
    {"train", "train a scene into a run directory", cmd_train},
    {"eval", "measure a run on its test views", cmd_eval},
    {"render", "render views of a run as images and videos", cmd_render},
    {"view", "show a run in a browser", cmd_view},
    {"report", "write a page about a run, or compare several on one page", cmd_report},
    {"export", "write a mesh, points or splats from a run", cmd_export},
    {"bench", "measure the device: matrix products, MLPs, hash grid, training step", cmd_bench},
    {"certify", "test the device, and write its certificate", cmd_certify},
    {"demo", "train and render the bundled scene", cmd_demo},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- shared -------------------------------------------------------------------------------- */

const char *const *cli_arguments;
size_t cli_argument_count;

const char *const cli_backgrounds[] = {"", "", "white", "black", NULL};
const char *const cli_precisions[] = {"", VKN_PRECISIONS(VKN_NAME) NULL};
const char *const cli_formats[] = {"", VKN_SCENE_FORMATS(VKN_NAME) NULL};
const char *const cli_splits[] = {"", "train", "val", "test", NULL};

int cli_fail(int code, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    vkn_clean_line(message); /* arguments may contain control characters */
    fprintf(stderr, "vknerf: %s\n", message);
    return code;
}

int cli_status(vkn_status status)
{
    return status == VKN_OK ? VKN_OK : cli_fail(status, "%s", vkn_last_error());
}

int cli_parse_time(const char *text, bool *given, double *value)
{
    char *end = NULL;
    *given = text != NULL;
    *value = text ? strtod(text, &end) : 0.0;
    if (text && (end == text || *end || !(*value >= 0.0 && *value <= 1.0)))
        return cli_fail(VKN_BAD_INPUT, "--time: %s is not a number from 0 to 1", text);
    return OPTIONS_GO_ON;
}

int cli_finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return VKN_OK;
    return cli_fail(VKN_ERROR, "standard output: cannot be written");
}

int cli_print_json(char *text)
{
    if (!text)
        return cli_status(VKN_ERROR);
    puts(text);
    free(text);
    return cli_finish_output();
}

int cli_print_object(cJSON *object, bool complete)
{
    char *printed = complete ? cJSON_Print(object) : NULL;
    char *text = printed ? vkn_to_utf8(printed) : NULL; /* file names may be any bytes */
    cJSON_free(printed);
    cJSON_Delete(object);
    return text ? cli_print_json(text) : cli_fail(VKN_ERROR, "out of memory");
}

void cli_print_evaluation(const struct vkn_evaluation *evaluation)
{
    char ssim[48] = "no SSIM: views are smaller than its window";
    if (isfinite(evaluation->ssim))
        snprintf(ssim, sizeof(ssim), "SSIM %.4f", evaluation->ssim);
    char background[48] = "";
    if (isfinite(evaluation->background_psnr))
        snprintf(background, sizeof(background), " (background alone: %.2f dB)",
                 evaluation->background_psnr);
    char aligned[48] = "";
    if (isfinite(evaluation->psnr_aligned))
        snprintf(aligned, sizeof(aligned), " (views aligned: %.2f dB)", evaluation->psnr_aligned);
    char corrected[96] = "";
    if (isfinite(evaluation->psnr_affine) && isfinite(evaluation->psnr_quadratic))
        snprintf(corrected, sizeof(corrected),
                 " (colours corrected: affine %.2f dB, quadratic %.2f dB)", evaluation->psnr_affine,
                 evaluation->psnr_quadratic);
    char floaters[96] = "";
    if (isfinite(evaluation->floaters))
        snprintf(floaters, sizeof(floaters), ", floaters %.3f %%", 100.0 * evaluation->floaters);
    char depth[96] = "";
    if (isfinite(evaluation->depth_error))
        snprintf(depth, sizeof(depth), ", depth error %.2f %% (%zu depths, %.0f %% within 5 %%)",
                 100.0 * evaluation->depth_error, evaluation->depths,
                 100.0 * evaluation->depth_inliers);
    printf("PSNR %.2f dB%s%s%s, %s%s%s (%zu %s view%s, %s background, sRGB, step %llu)\n",
           evaluation->psnr, background, aligned, corrected, ssim, floaters, depth,
           evaluation->view_count, cli_splits[evaluation->split],
           evaluation->view_count == 1 ? "" : "s",
           evaluation->background ? cli_backgrounds[evaluation->background] : "sky",
           (unsigned long long)evaluation->step);
}

/* ---- main ---------------------------------------------------------------------------------- */

#define TAGLINE "neural radiance fields on any Vulkan device"

static int print_usage(void)
{
    printf("vknerf %s: " TAGLINE "\n\n"
           "usage: vknerf COMMAND [ARGUMENT ...]\n"
           "       vknerf SCENE [ARGUMENT ...], short for vknerf train SCENE\n\n",
           vkn_version());
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-8s %s\n", commands[i].name, commands[i].help);
    printf("\nvknerf help COMMAND (or COMMAND --help) lists the options of a command; vknerf\n"
           "--version prints the version and commit.\n");
    return cli_finish_output();
}

static bool is_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return true;
    return false;
}

static bool is_folder(const char *path)
{
    struct stat information;
    return stat(path, &information) == 0 && S_ISDIR(information.st_mode);
}

static int unknown_command(const char *name)
{
    const char *names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *nearest = vkn_nearest_name(name, names, COMMANDS);
    if (nearest)
        return cli_fail(VKN_BAD_INPUT, "%s: unknown command; did you mean %s?", name, nearest);
    return cli_fail(VKN_BAD_INPUT, "%s: unknown command; see vknerf --help", name);
}

/* argv[0] is the command's name. */
static int run(int argc, char **argv)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(argv[0], commands[i].name) == 0)
            return commands[i].run(argc, argv);
    return unknown_command(argv[0]);
}

/* Prints the man page; cmake/man_page.awk adds sections from the manual. */
static int print_man(void)
{
    char option[] = OPTIONS_MAN;
    int code = VKN_OK;
    printf(".TH VKNERF 1 @DATE@ \"vknerf %s\"\n.ds AD l\n.ad l\n"
           ".SH NAME\nvknerf \\- " TAGLINE "\n"
           ".SH SYNOPSIS\n"
           "\\fBvknerf\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR ...]\n.br\n"
           "\\fBvknerf\\fR \\fISCENE\\fR [\\fIARGUMENT\\fR ...]\n.br\n"
           "\\fBvknerf help\\fR [\\fICOMMAND\\fR]\n.br\n"
           "\\fBvknerf \\-\\-version\\fR\n"
           ".SH COMMANDS\n",
           vkn_version());
    for (size_t i = 0; i < COMMANDS; i++) {
        printf(".TP\n\\fB%s\\fR\n", commands[i].name);
        options_print_roff(commands[i].help);
        putchar('\n');
    }
    for (size_t i = 0; i < COMMANDS && code == VKN_OK; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%s", commands[i].name);
        char *arguments[] = {name, option, NULL};
        code = commands[i].run(2, arguments);
    }
    return code;
}

/* Completes LAST of `vknerf help --complete [WORD ...] LAST`, a command line without "vknerf". */
static int complete(int argc, char **argv)
{
    static char option[] = OPTIONS_COMPLETE;
    const char *last = argv[argc - 1];
    if (argc == 3 || (argc == 4 && strcmp(argv[2], "help") == 0)) {
        for (size_t i = 0; i < COMMANDS; i++)
            options_print_candidate(last, 0, commands[i].name, commands[i].help);
        if (argc == 3)
            options_print_candidate(last, 0, "help", "list the options of a command");
        return cli_finish_output();
    }
    argv[1] = argv[2];
    argv[2] = option;
    return run(argc - 1, argv + 1);
}

/* Runs `vknerf help [COMMAND]` as `vknerf [COMMAND] --help`. */
static int help(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[2], "--man") == 0)
        return print_man();
    if (argc > 3 && strcmp(argv[2], "--complete") == 0)
        return complete(argc - 1, argv + 1);
    char option[] = "--help";
    char *arguments[] = {argv[argc > 2 ? 2 : 1], option, NULL};
    if (argc > 3)
        return cli_fail(VKN_BAD_INPUT, "%s: one argument too many; vknerf help COMMAND", argv[3]);
    bool has_command = argc > 2 && argv[2][0] != '-' && strcmp(argv[2], "help") != 0;
    return has_command ? run(2, arguments) : print_usage();
}

/* Waits before a failed rank exits: Open MPI 5 then ends all other processes at once (Open MPI 4
 * waits for a second). Meanwhile the rank with the error prints it, and rank 0 removes unfinished
 * files. */
static void wait_for_other_ranks(void)
{
    const struct timespec first = {.tv_nsec = 200000000}, others = {.tv_nsec = 600000000};
    (void)nanosleep(cli_is_rank_0() ? &first : &others, NULL);
}

static int run_program(int argc, char **argv)
{
    if (argc < 2) {
        print_usage();
        return VKN_BAD_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_usage();
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0 ||
        strcmp(argv[1], "version") == 0) {
        printf("vknerf %s (%s)\n", vkn_version(), vkn_commit());
        return cli_finish_output();
    }
    if (strcmp(argv[1], "help") == 0)
        return help(argc, argv);
    bool is_scene = !is_command(argv[1]) && is_folder(argv[1]);
    int code = is_scene ? cmd_train(argc, argv) : run(argc - 1, argv + 1);
    if (code != VKN_OK && cli_rank())
        wait_for_other_ranks();
    return code;
}

int main(int argc, char **argv)
{
    struct cli_words given = cli_prepare_process(argc, argv);
    cli_arguments = (const char *const *)given.words;
    cli_argument_count = (size_t)given.count;
    int code = run_program(given.count, given.words);
    cli_keep_window();
    return code;
}
