/* compile_programs SOURCE [-g] [-IFOLDER ...] [--depfile FILE]
 *     (-o OUTPUT [--target-env ENVIRONMENT] [-DNAME[=VALUE] ...]) ...
 * Compiles the compute shader SOURCE to SPIR-V once for every OUTPUT, with the options that follow
 * its name. Most of what a GLSL compiler does in a process is to build the symbols of the language,
 * which here is done once. FILE gets what SOURCE includes, in the form of make. Exits 1 when a
 * program does not compile, after trying the others; 2 when it is called wrongly. */
#define _GNU_SOURCE
#include <shaderc/shaderc.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FOLDERS 8

/* What an include gives shaderc: one block that owns its name and content. */
struct included {
    shaderc_include_result result;
    char *path, *content;
};

static struct {
    const char *source, *depfile;
    bool debug;
    const char *folders[MAX_FOLDERS];
    int folder_count;
} options;

static FILE *dependencies;

static void *checked(void *memory)
{
    if (!memory) {
        fprintf(stderr, "compile_programs: out of memory\n");
        exit(1);
    }
    return memory;
}

static int usage(void)
{
    fprintf(stderr, "usage: compile_programs SOURCE [-g] [-IFOLDER ...] [--depfile FILE]\n"
                    "    (-o OUTPUT [--target-env ENVIRONMENT] [-DNAME[=VALUE] ...]) ...\n");
    return 2;
}

/* The text in a file, in fresh memory, or NULL. */
static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    char *text = NULL;
    size_t room = 0;
    ssize_t length = getdelim(&text, &room, 0, file);
    *size = length > 0 ? (size_t)length : 0;
    fclose(file);
    return checked(text);
}

static char *join(const char *folder, size_t length, const char *name)
{
    size_t size = length + strlen(name) + 2;
    char *path = checked(malloc(size));
    snprintf(path, size, "%.*s/%s", (int)length, folder, name);
    return path;
}

/* ---- includes -------------------------------------------------------------------------------- */

/* Beside what includes it, or in the folders in their order. */
static void find_include(struct included *included, const char *requested, const char *requesting)
{
    const char *slash = strrchr(requesting, '/');
    for (int i = slash ? -1 : 0; i < options.folder_count && !included->content; i++) {
        const char *folder = i < 0 ? requesting : options.folders[i];
        free(included->path);
        included->path =
            join(folder, i < 0 ? (size_t)(slash - requesting) : strlen(folder), requested);
        included->content = read_file(included->path, &included->result.content_length);
    }
}

static shaderc_include_result *resolve_include(void *unused, const char *requested, int type,
                                               const char *requesting, size_t depth)
{
    (void)unused, (void)type, (void)depth;
    struct included *included = checked(calloc(1, sizeof *included));
    shaderc_include_result *result = &included->result;
    result->user_data = included;
    find_include(included, requested, requesting);
    if (included->content) {
        result->source_name = included->path;
        result->content = included->content;
        if (dependencies)
            fprintf(dependencies, " \\\n %s", included->path);
    } else { /* an empty name tells shaderc that the content is an error message */
        result->source_name = "";
        result->content = "no such file";
        result->content_length = strlen(result->content);
    }
    result->source_name_length = strlen(result->source_name);
    return result;
}

static void release_include(void *unused, shaderc_include_result *result)
{
    (void)unused;
    struct included *included = result->user_data;
    free(included->path);
    free(included->content);
    free(included);
}

/* ---- programs -------------------------------------------------------------------------------- */

static bool write_words(const char *path, shaderc_compilation_result_t result)
{
    FILE *file = fopen(path, "wb");
    size_t size = shaderc_result_get_length(result);
    bool written = file && fwrite(shaderc_result_get_bytes(result), 1, size, file) == size;
    if (file && fclose(file) != 0)
        written = false;
    if (!written)
        perror(path);
    return written;
}

/* Takes an option of a program; whether it is one. */
static bool set_option(shaderc_compile_options_t compile, char **arguments[])
{
    const char *argument = *(*arguments)++;
    if (strncmp(argument, "-D", 2) == 0) {
        const char *name = argument + 2, *equals = strchr(name, '=');
        shaderc_compile_options_add_macro_definition(
            compile, name, equals ? (size_t)(equals - name) : strlen(name),
            equals ? equals + 1 : NULL, equals ? strlen(equals + 1) : 0);
        return true;
    }
    if (strcmp(argument, "--target-env") != 0 || !**arguments)
        return false;
    const char *environment = *(*arguments)++;
    bool newer = strcmp(environment, "vulkan1.3") == 0;
    shaderc_compile_options_set_target_env(compile, shaderc_target_env_vulkan,
                                           newer ? shaderc_env_version_vulkan_1_3
                                                 : shaderc_env_version_vulkan_1_2);
    return newer || strcmp(environment, "vulkan1.2") == 0;
}

/* The program whose OUTPUT `arguments` stands at; leaves it at the next one's -o, or at the end. */
static bool compile_program(shaderc_compiler_t compiler, const char *text, size_t size,
                            char **arguments[])
{
    const char *output = *(*arguments)++;
    if (!output)
        exit(usage());
    shaderc_compile_options_t compile = checked(shaderc_compile_options_initialize());
    /* Nothing optimises: spirv-opt breaks cooperative matrices. */
    shaderc_compile_options_set_optimization_level(compile, shaderc_optimization_level_zero);
    shaderc_compile_options_set_include_callbacks(compile, resolve_include, release_include, NULL);
    if (options.debug)
        shaderc_compile_options_set_generate_debug_info(compile);
    while (**arguments && strcmp(**arguments, "-o") != 0) {
        const char *argument = **arguments;
        if (!set_option(compile, arguments)) {
            fprintf(stderr, "compile_programs: %s: unknown or without its value\n", argument);
            exit(2);
        }
    }
    shaderc_compilation_result_t result = checked(shaderc_compile_into_spv(
        compiler, text, size, shaderc_compute_shader, options.source, "main", compile));
    bool done = shaderc_result_get_compilation_status(result) == shaderc_compilation_status_success;
    fputs(shaderc_result_get_error_message(result), stderr); /* warnings too */
    if (!done)
        fprintf(stderr, "compile_programs: %s: not compiled\n", output);
    done = done && write_words(output, result);
    shaderc_result_release(result);
    shaderc_compile_options_release(compile);
    return done;
}

/* Those of the source; leaves `arguments` at the first -o. Whether they are right. */
static bool read_options(char **arguments[])
{
    for (; **arguments && strcmp(**arguments, "-o") != 0; ++*arguments) {
        const char *argument = **arguments;
        if (strcmp(argument, "-g") == 0)
            options.debug = true;
        else if (strncmp(argument, "-I", 2) == 0 && options.folder_count < MAX_FOLDERS)
            options.folders[options.folder_count++] = argument + 2;
        else if (strcmp(argument, "--depfile") == 0 && (*arguments)[1])
            options.depfile = *++*arguments;
        else if (!options.source && argument[0] != '-')
            options.source = argument;
        else
            return false;
    }
    return options.source && **arguments;
}

int main(int count, char *words[])
{
    char **arguments = words + (count > 0);
    if (!read_options(&arguments))
        return usage();
    size_t size;
    char *text = read_file(options.source, &size);
    if (!text) {
        perror(options.source);
        return 1;
    }
    if (options.depfile)
        dependencies = fopen(options.depfile, "w");
    if (dependencies)
        fprintf(dependencies, "%s: %s", arguments[1] ? arguments[1] : "", options.source);
    shaderc_compiler_t compiler = checked(shaderc_compiler_initialize());
    bool done = true;
    while (*arguments) {
        arguments++; /* -o */
        done = compile_program(compiler, text, size, &arguments) && done;
    }
    shaderc_compiler_release(compiler);
    free(text);
    if (options.depfile &&
        (!dependencies || fputc('\n', dependencies) == EOF || fclose(dependencies))) {
        perror(options.depfile);
        done = false;
    }
    return done ? 0 : 1;
}
