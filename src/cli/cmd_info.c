/* vknerf info: describes the devices, a scene or a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "cli/cli.h"

#define LINE_WIDTH 100
#define NAME_WIDTH 24

/* Prints "max_shared_memory" as "max shared memory", as a heading or in front of a value. */
static void print_name(const char *indent, const char *name, bool is_heading)
{
    char text[40];
    snprintf(text, sizeof(text), "%s", name);
    for (char *c = text; *c; c++)
        if (*c == '_')
            *c = ' ';
    if (is_heading)
        printf("%s%s\n", indent, text);
    else
        printf("%s%-*s ", indent, NAME_WIDTH, text);
}

static void print_bytes(double bytes)
{
    if (bytes >= 1024.0 * 1024.0)
        printf("%.0f MiB\n", bytes / (1024.0 * 1024.0));
    else
        printf("%.0f KiB\n", bytes / 1024.0);
}

static bool is_bytes(const char *name)
{
    return strstr(name, "memory") != NULL || strstr(name, "range") != NULL;
}

/* Writes a number to `text`, with all digits if users may set it. */
static void write_number(char text[32], const char *name, int digits, double number)
{
    if (name && (strcmp(name, "scale") == 0 || strcmp(name, "offset") == 0 ||
                 strcmp(name, "unit_length") == 0))
        cli_print_number(text, number);
    else
        snprintf(text, 32, "%.*g", digits, number);
}

/* Prints a list with line breaks. */
static void print_list(const char *indent, const cJSON *list)
{
    size_t begin = strlen(indent) + NAME_WIDTH + 1, at = begin;
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        char number[32];
        write_number(number, list->string, 4, item->valuedouble);
        const char *text = cJSON_IsString(item) ? item->valuestring : number;
        size_t size = strlen(text) + 2;
        bool is_full = at > begin && at + size > LINE_WIDTH;
        if (is_full)
            printf(",\n%*s", (int)begin, "");
        printf("%s%s", is_full || at == begin ? "" : ", ", text);
        at = is_full ? begin + size : at + size;
    }
    puts(at == begin ? "none" : "");
}

#define MOST_COLUMNS 8

static int write_cell(char *text, size_t size, const cJSON *cell)
{
    bool is_whole = cJSON_IsNumber(cell) && cell->valuedouble == (int)cell->valuedouble;
    if (cJSON_IsNumber(cell))
        return snprintf(text, size, is_whole ? "%.0f" : "%.3g", cell->valuedouble);
    return snprintf(text, size, "%s", cJSON_IsString(cell) ? cell->valuestring : "");
}

/* Prints a list of objects as a table with a column for each member that any object has. */
static void print_table(const char *indent, const cJSON *list)
{
    const char *names[MOST_COLUMNS];
    int widths[MOST_COLUMNS] = {0}, columns = 0;
    const cJSON *row, *cell;
    char text[512];
    cJSON_ArrayForEach (row, list) {
        cJSON_ArrayForEach (cell, row) {
            int i = 0, width = write_cell(text, sizeof(text), cell);
            while (i < columns && strcmp(names[i], cell->string) != 0)
                i++;
            if (i == MOST_COLUMNS)
                continue;
            if (i == columns) {
                names[columns++] = cell->string;
                widths[i] = (int)strlen(cell->string);
            }
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    printf("%s  ", indent);
    for (int i = 0; i < columns; i++)
        printf("%-*s%s", i + 1 < columns ? widths[i] : 0, names[i], i + 1 < columns ? "  " : "\n");
    cJSON_ArrayForEach (row, list) {
        printf("%s  ", indent);
        for (int i = 0; i < columns; i++) {
            write_cell(text, sizeof(text), cJSON_GetObjectItemCaseSensitive(row, names[i]));
            printf("%-*s%s", i + 1 < columns ? widths[i] : 0, text, i + 1 < columns ? "  " : "\n");
        }
    }
}

static void print_fields(const char *indent, const cJSON *object);

static void print_field(const char *indent, const cJSON *field)
{
    bool is_table = cJSON_IsArray(field) && cJSON_IsObject(field->child);
    print_name(indent, field->string, is_table || cJSON_IsObject(field));
    if (cJSON_IsObject(field)) {
        print_fields("    ", field);
    } else if (is_table) {
        print_table(indent, field);
    } else if (cJSON_IsArray(field)) {
        print_list(indent, field);
    } else if (cJSON_IsBool(field)) {
        puts(cJSON_IsTrue(field) ? "yes" : "no");
    } else if (cJSON_IsString(field)) {
        puts(field->valuestring);
    } else if (cJSON_IsNumber(field) && is_bytes(field->string)) {
        print_bytes(field->valuedouble);
    } else {
        char number[32];
        write_number(number, field->string, 6, field->valuedouble);
        puts(number);
    }
}

static void print_fields(const char *indent, const cJSON *object)
{
    static const char *const hidden[] = {"index", "name", "chosen",
                                         "per_view"}; /* in the heading, or too many */
    const cJSON *field;
    cJSON_ArrayForEach (field, object) {
        bool skipped = false;
        for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
            skipped = skipped || strcmp(field->string, hidden[i]) == 0;
        if (!skipped)
            print_field(indent, field);
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

static void print_devices(const cJSON *info)
{
    printf("vknerf %s (%s)\n", vkn_version(), vkn_commit());
    const cJSON *devices = cJSON_GetObjectItemCaseSensitive(info, "devices"), *device;
    if (cJSON_GetArraySize(devices) == 0)
        puts("no Vulkan device");
    cJSON_ArrayForEach (device, devices) {
        const cJSON *index = cJSON_GetObjectItemCaseSensitive(device, "index");
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(device, "name");
        const cJSON *chosen = cJSON_GetObjectItemCaseSensitive(device, "chosen");
        printf("\ndevice %g: %s%s\n", index ? index->valuedouble : 0.0,
               cJSON_IsString(name) ? name->valuestring : "?",
               cJSON_IsTrue(chosen) ? " (chosen)" : "");
        print_fields("  ", device);
    }
}

/* Cleans all strings for a terminal: names of files and devices may contain control characters. */
static void clean_strings(cJSON *info)
{
    cJSON *item = NULL;
    if (cJSON_IsString(info))
        vkn_clean_line(info->valuestring);
    cJSON_ArrayForEach (item, info)
        clean_strings(item);
}

/* Prints JSON of the library: unchanged if `json`, else by `print`. */
static int print_info(const char *text, bool json, void (*print)(const cJSON *info))
{
    if (json) {
        puts(text);
        return cli_finish_output();
    }
    cJSON *info = cJSON_Parse(text);
    if (!info)
        return cli_fail(VKN_ERROR, "out of memory");
    clean_strings(info);
    print(info);
    cJSON_Delete(info);
    return cli_finish_output();
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void print_scene(const cJSON *info)
{
    const cJSON *field;
    cJSON_ArrayForEach (field, info) {
        if (strcmp(field->string, "problems") != 0)
            print_field("", field);
    }
    const cJSON *problems = cJSON_GetObjectItemCaseSensitive(info, "problems"), *problem;
    if (cJSON_GetArraySize(problems) == 0)
        puts("\nno problems found");
    cJSON_ArrayForEach (problem, problems) {
        printf("\nproblem: %s\n  to do: %s\n", cli_text_of(problem, "problem"),
               cli_text_of(problem, "advice"));
    }
}

static int device_info(const struct vkn_context_params *context, bool json)
{
    char *text = NULL;
    vkn_status status = vkn_info_json(context, &text);
    int code = 0, failure = status == VKN_OK ? 0 : cli_status(status);
    if (text)
        code = print_info(text, json, print_devices);
    free(text);
    return code != 0 ? code : failure;
}

static int scene_info(const struct vkn_scene_info_params *params, bool json)
{
    char *text = NULL;
    vkn_status status = vkn_scene_info_json(params, &text);
    int code = status == VKN_OK ? print_info(text, json, print_scene) : cli_status(status);
    free(text);
    if (code != 0 || json || params->unit_length == 0)
        return code;
    char number[32];
    cli_print_number(number, params->unit_length);
    printf("\nto export in metres: vknerf train --set scene.unit_length=%s, or vknerf export "
           "--unit-length %s\n",
           number, number);
    return cli_finish_output();
}

/* ---- runs ------------------------------------------------------------------------------------ */

static bool holds(const char *folder, const char *file)
{
    char name[4096];
    snprintf(name, sizeof(name), "%s/%s", folder, file);
    return access(name, F_OK) == 0;
}

/* Returns whether the path is a run directory or a checkpoint, by files that no scene has. */
static bool is_run(const char *path)
{
    static const char ending[] = ".safetensors";
    size_t length = strlen(path), stem = sizeof ending - 1;
    return holds(path, "checkpoint.safetensors") ||
           (holds(path, "metrics.jsonl") && holds(path, "summary.json")) ||
           (length > stem && strcmp(path + length - stem, ending) == 0);
}

static void print_run(const cJSON *info)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, info) {
        if (cJSON_IsObject(item)) {
            print_name("", item->string, false);
            printf("%.0f bytes of GLSL, SHA-256 %s\n", cli_number_of(item, "bytes"),
                   cli_text_of(item, "sha256"));
        } else {
            print_field("", item);
        }
    }
}

static int run_info(const char *run, bool json)
{
    char *text = NULL;
    vkn_status status = vkn_run_info_json(run, &text);
    int code = status == VKN_OK ? print_info(text, json, print_run) : cli_status(status);
    free(text);
    return code;
}

/* Prints the GLSL of a run, unchanged into files and pipes, without control characters on a
 * terminal. */
static int print_glsl(const char *run)
{
    char *text = NULL;
    vkn_status status = run ? vkn_run_field(run, &text, NULL) : VKN_OK;
    if (status != VKN_OK)
        return cli_status(status);
    if (!text)
        return cli_fail(VKN_BAD_INPUT, "--field: %s%s",
                        run ? run : "the name of the run is missing",
                        run ? ": the field of this run is not in GLSL" : "");
    if (!isatty(STDOUT_FILENO))
        fputs(text, stdout);
    for (char *line = text, *end; isatty(STDOUT_FILENO) && *line; line = end) {
        size_t length = strcspn(line, "\n");
        end = line + length + (line[length] == '\n');
        line[length] = 0;
        vkn_clean_line(line);
        puts(line);
    }
    free(text);
    return cli_finish_output();
}

int cmd_info(int argc, char **argv)
{
    struct vkn_job job = {.stop = &cli_stop};
    struct vkn_scene_info_params params = {.size = sizeof params};
    bool json = false, prints_glsl = false;
    const char *distance = NULL;
    const struct option options[] = {
        {OPTION("--json", NULL, FLAG, &json, "print everything as one JSON object")},
        {OPTION("--svg", "FILE", TEXT, &params.svg, "drawing of the cameras of SCENE to write")},
        {OPTION("--field", NULL, FLAG, &prints_glsl,
                "print the GLSL of the checkpoint of RUN, without running it")},
        CLI_FORMAT_OPTION(params.format),
        {OPTION("--downscale", "K", COUNT, &params.downscale,
                "show sizes and focal lengths after reduction by K; default 1")},
        CLI_DISTANCE_OPTION(distance, "two points in dataset units and the distance between them: "
                                      "prints the length of a dataset unit"),
        CLI_JOB_OPTIONS(job),
    };
    const struct options_command command = {
        .name = "info",
        .usage = "info [SCENE|RUN] [OPTION ...]",
        .summary =
            "Prints the Vulkan devices, their capabilities, and which capabilities vknerf uses.\n"
            "With SCENE: its cameras, sizes, lenses, bounds, splits and problems.\n"
            "With RUN, a run directory or a checkpoint: its scene, step and model, and the\n"
            "SHA-256 of a field in GLSL.",
        .options = options,
        .option_count = sizeof(options) / sizeof(options[0]),
        .argument = "SCENE|RUN",
    };
    int code = options_parse(&command, argc, argv, &params.scene);
    if (code != OPTIONS_GO_ON)
        return code;
    code = cli_parse_distance(distance, &params.unit_length);
    if (code != OPTIONS_GO_ON)
        return code;
    vkn_log_quiet(job.quiet);
    if (prints_glsl && !distance)
        return print_glsl(params.scene);
    if (params.scene == NULL && params.svg != NULL)
        return cli_fail(VKN_BAD_INPUT, "--svg: the name of the scene is missing");
    if (distance != NULL && (params.scene == NULL || prints_glsl || is_run(params.scene)))
        return cli_fail(VKN_BAD_INPUT, "--distance: %s",
                        params.scene ? "name the scene, not a run" : "the scene is missing");
    if (params.scene != NULL && is_run(params.scene))
        return run_info(params.scene, json);
    const struct vkn_context_params context = {.size = sizeof context,
                                               .device = job.device,
                                               .shader_dir = job.shader_dir,
                                               .low_priority = job.low_priority};
    return params.scene != NULL ? scene_info(&params, json) : device_info(&context, json);
}
