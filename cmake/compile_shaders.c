/* compile_shaders [-g] -IFOLDER [-IFOLDER ...] LIST
 *
 * Compiles the shaders of LIST to SPIR-V, validates it and writes it compressed. Each line is a
 * shader:
 *
 *   NAME  SOURCE  ENVIRONMENT  [DEFINE[=VALUE] ...]
 *
 * SOURCE is a compute shader in the first FOLDER. Writes NAME.spv.z, which src/gpu/packed.c reads,
 * into LIST's folder, without debug information and names of variables unless -g is given. Writes
 * the included files into LIST.d, in make's format. Compiles all shaders in one process, because a
 * GLSL compiler spends most of its time on building the symbols of the language. Exits with 1 if a
 * shader does not compile, after compiling the others; with 2 after wrong arguments. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "gpu/shaderc.h"

#define MAX_FOLDERS 8

static struct {
    const char *list;
    bool debug;
    const char *folders[MAX_FOLDERS];
    int folder_count;
} options;

static void *checked(void *memory)
{
    if (!memory) {
        fprintf(stderr, "compile_shaders: out of memory\n");
        exit(1);
    }
    return memory;
}

static int usage(void)
{
    fprintf(stderr, "usage: compile_shaders [-g] -IFOLDER [-IFOLDER ...] LIST\n");
    return 2;
}

/* Returns the content of a file, with a zero at its end, or NULL. The caller frees it. */
static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = NULL;
    size_t room = 4096;
    *size = 0;
    do {
        room *= 2;
        text = checked(realloc(text, room + 1));
        *size += fread(text + *size, 1, room - *size, file);
    } while (*size == room);
    text[*size] = '\0';
    fclose(file);
    return text;
}

/* Returns FOLDER/NAME followed by `ending`. The caller frees it. */
static char *join(const char *folder, size_t length, const char *name, const char *ending)
{
    char *path = NULL;
    if (asprintf(&path, "%.*s/%s%s", (int)length, folder, name, ending) < 0)
        path = NULL;
    return checked(path);
}

/* Returns the path of a shader's file, in the list's folder. The caller frees it. */
static char *packed_path(const char *name)
{
    const char *slash = strrchr(options.list, '/');
    return slash ? join(options.list, (size_t)(slash - options.list), name, ".spv.z")
                 : join(".", 1, name, ".spv.z");
}

/* ---- libraries ------------------------------------------------------------------------------- */

/* The functions of spirv-tools/libspirv.h that are used: X(name, result, parameters). SPIRV-Tools
 * is part of shaderc, a dependency of it or, on Windows, a library of its own. */
struct words {
    const uint32_t *code;
    size_t count;
};
#define SPIRV_FUNCTIONS(X)                                                  \
    X(spvParseTargetEnv, bool, (const char *name, int *environment))        \
    X(spvContextCreate, void *, (int environment))                          \
    X(spvContextDestroy, void, (void *context))                             \
    X(spvValidate, int, (void *context, struct words *words, void **found)) \
    X(spvDiagnosticPrint, int, (void *found))                               \
    X(spvDiagnosticDestroy, void, (void *found))

static struct shaderc shaderc;
static struct {
    SPIRV_FUNCTIONS(SHADERC_POINTER)
} spirv;

/* Returns false, with a message, if there is no shaderc with SPIRV-Tools. */
static bool load_libraries(void)
{
    static const char *const files[] = {"libSPIRV-Tools-shared.so", NULL};
    void *library = shaderc_load(&shaderc), *tools = library;
    bool complete = library != NULL;
    if (complete && !loading_find(library, "spvValidate", &spirv.spvValidate))
        tools = loading_open(files);
#define FIND(name, result, parameters) \
    complete = loading_find(tools, #name, &spirv.name) && complete;
    SPIRV_FUNCTIONS(FIND)
    if (!complete) {
        const char *why = library || dlopen("libshaderc.so.1", RTLD_NOW) ? NULL : dlerror();
        fprintf(stderr, "compile_shaders: no shaderc with SPIRV-Tools (libshaderc.so.1)%s%s\n",
                why ? ": " : "", why ? why : "");
    }
    return complete;
}

/* ---- includes -------------------------------------------------------------------------------- */

/* The result of an include for shaderc, which owns its path and content. */
struct included {
    shaderc_include_result result;
    char *path, *content;
};

/* The files of all shaders, each once. */
static struct {
    char **paths;
    size_t count;
} dependencies;

static void add_dependency(const char *path)
{
    for (size_t i = dependencies.count; i > 0; i--)
        if (strcmp(dependencies.paths[i - 1], path) == 0)
            return;
    dependencies.paths =
        checked(realloc(dependencies.paths, (dependencies.count + 1) * sizeof *dependencies.paths));
    dependencies.paths[dependencies.count++] = checked(strdup(path));
}

/* Searches the folder of the including file, then options.folders in their order. */
static void find_include(struct included *included, const char *requested, const char *requesting)
{
    const char *slash = strrchr(requesting, '/');
    for (int i = slash ? -1 : 0; i < options.folder_count && !included->content; i++) {
        const char *folder = i < 0 ? requesting : options.folders[i];
        free(included->path);
        included->path =
            join(folder, i < 0 ? (size_t)(slash - requesting) : strlen(folder), requested, "");
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
        add_dependency(included->path);
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

/* ---- SPIR-V ---------------------------------------------------------------------------------- */

/* Validates SPIR-V; prints the error. */
static bool is_valid(const char *name, const char *environment, struct words words)
{
    int number = 0;
    if (!spirv.spvParseTargetEnv(environment, &number))
        return false;
    void *context = checked(spirv.spvContextCreate(number)), *found = NULL;
    bool valid = spirv.spvValidate(context, &words, &found) == 0;
    if (!valid) {
        fprintf(stderr, "compile_shaders: %s: invalid SPIR-V: ", name);
        spirv.spvDiagnosticPrint(found);
    }
    spirv.spvDiagnosticDestroy(found);
    spirv.spvContextDestroy(context);
    return valid;
}

/* Instructions that drivers do not need: names, lines, source texts. */
static bool is_for_debugging(uint32_t instruction)
{
    enum { SOURCE_CONTINUED = 2, LINE = 8, NO_LINE = 317, MODULE_PROCESSED = 330 };
    uint32_t code = instruction & 0xffffu;
    return (code >= SOURCE_CONTINUED && code <= LINE) || code == NO_LINE ||
           code == MODULE_PROCESSED;
}

/* Copies the words without debug instructions and reduces *count. */
static uint32_t *strip(const uint32_t *words, size_t *count)
{
    enum { HEADER = 5 };
    uint32_t *kept = checked(malloc(*count * sizeof *kept));
    memcpy(kept, words, HEADER * sizeof *kept);
    size_t to = HEADER;
    for (size_t at = HEADER, length; at < *count; at += length) {
        length = words[at] >> 16;
        if (is_for_debugging(words[at]))
            continue;
        memcpy(kept + to, words + at, length * sizeof *kept);
        to += length;
    }
    *count = to;
    return kept;
}

/* Writes `count` words to NAME.spv.z: their number (u32), a checksum (u32) and a zlib stream of all
 * lowest bytes, then all second ones and so on, a tenth smaller than a stream of whole words. */
static bool write_packed(const char *name, const uint32_t *words, size_t count)
{
    enum { BYTES = 4 };
    unsigned char header[2 * BYTES], *bytes = checked(malloc(BYTES * count));
    for (size_t k = 0; k < BYTES; k++)
        for (size_t i = 0; i < count; i++)
            bytes[k * count + i] = (unsigned char)(words[i] >> 8 * k);
    uLong checksum = crc32(0, bytes, (uInt)(BYTES * count));
    for (size_t k = 0; k < BYTES; k++) {
        header[k] = (unsigned char)(count >> 8 * k);
        header[BYTES + k] = (unsigned char)(checksum >> 8 * k);
    }
    uLongf length = compressBound((uLong)(BYTES * count));
    Bytef *packed = checked(malloc(length));
    char *path = packed_path(name);
    FILE *file = NULL;
    bool written = compress(packed, &length, bytes, (uLong)(BYTES * count)) == Z_OK &&
                   (file = fopen(path, "wb")) != NULL &&
                   fwrite(header, 1, sizeof header, file) == sizeof header &&
                   fwrite(packed, 1, length, file) == length;
    if (file && fclose(file) != 0)
        written = false;
    if (!written)
        perror(path);
    free(bytes);
    free(packed);
    free(path);
    return written;
}

static bool take_result(const char *name, const char *environment,
                        shaderc_compilation_result_t result)
{
    const uint32_t *words = (const uint32_t *)(const void *)shaderc.result_get_bytes(result);
    size_t count = shaderc.result_get_length(result) / sizeof *words;
    if (!is_valid(name, environment, (struct words){words, count}))
        return false;
    if (options.debug)
        return write_packed(name, words, count);
    uint32_t *kept = strip(words, &count);
    bool written = write_packed(name, kept, count);
    free(kept);
    return written;
}

/* ---- shaders --------------------------------------------------------------------------------- */

static const char separators[] = " \r\n";

/* Returns the compile options for `environment`, with the rest of the line as macro definitions. */
static shaderc_compile_options_t read_options(const char *environment, char **rest)
{
    shaderc_compile_options_t compile = checked(shaderc.compile_options_initialize());
    /* Without optimisation, because spirv-opt breaks cooperative matrices. */
    shaderc.compile_options_set_optimization_level(compile, shaderc_optimization_level_zero);
    shaderc.compile_options_set_target_env(compile, shaderc_target_env_vulkan,
                                           strcmp(environment, "vulkan1.3") == 0
                                               ? shaderc_env_version_vulkan_1_3
                                               : shaderc_env_version_vulkan_1_2);
    shaderc.compile_options_set_include_callbacks(compile, resolve_include, release_include, NULL);
    if (options.debug)
        shaderc.compile_options_set_generate_debug_info(compile);
    for (char *define; (define = strtok_r(NULL, separators, rest));) {
        char *equals = strchr(define, '=');
        size_t length = equals ? (size_t)(equals - define) : strlen(define);
        shaderc.compile_options_add_macro_definition(
            compile, define, length, equals ? equals + 1 : NULL, equals ? strlen(equals + 1) : 0);
    }
    return compile;
}

/* Compiles the shader of a line. */
static bool compile_program(shaderc_compiler_t compiler, char *line)
{
    char *rest = NULL, *name = strtok_r(line, separators, &rest),
         *source = strtok_r(NULL, separators, &rest),
         *environment = strtok_r(NULL, separators, &rest);
    if (!environment)
        exit(usage());
    size_t size = 0;
    char *path = join(options.folders[0], strlen(options.folders[0]), source, ""),
         *text = read_file(path, &size);
    bool done = false;
    if (text) {
        add_dependency(path);
        shaderc_compile_options_t compile = read_options(environment, &rest);
        shaderc_compilation_result_t result = checked(shaderc.compile_into_spv(
            compiler, text, size, shaderc_compute_shader, path, "main", compile));
        fputs(shaderc.result_get_error_message(result), stderr); /* warnings too */
        done =
            shaderc.result_get_compilation_status(result) == shaderc_compilation_status_success &&
            take_result(name, environment, result);
        shaderc.result_release(result);
        shaderc.compile_options_release(compile);
    } else {
        perror(path);
    }
    if (!done)
        fprintf(stderr, "compile_shaders: %s: not compiled\n", name);
    free(text);
    free(path);
    return done;
}

/* Writes a path with the escapes that make requires. */
static void write_path(FILE *file, const char *path)
{
    for (; *path; path++) {
        if (*path == ' ' || *path == '#')
            fputc('\\', file);
        else if (*path == '$')
            fputc('$', file);
        fputc(*path, file);
    }
}

/* Writes the dependencies of all shaders as those of `shader`, the first one of the list. */
static bool write_dependencies(const char *shader)
{
    char *path = NULL, *packed = packed_path(shader);
    if (asprintf(&path, "%s.d", options.list) < 0)
        path = NULL;
    FILE *file = fopen(checked(path), "w");
    if (file) {
        write_path(file, packed);
        fputc(':', file);
    }
    for (size_t i = 0; i < dependencies.count; i++) {
        if (file) {
            fputs(" \\\n ", file);
            write_path(file, dependencies.paths[i]);
        }
        free(dependencies.paths[i]);
    }
    free(dependencies.paths);
    free(packed);
    bool written = file && fputc('\n', file) != EOF && !ferror(file);
    if (file && fclose(file) != 0)
        written = false;
    if (!written)
        perror(path);
    free(path);
    return written;
}

static bool compile_list(char *list)
{
    shaderc_compiler_t compiler = checked(shaderc.compiler_initialize());
    const char *first = NULL;
    char *rest = NULL;
    bool done = true;
    for (char *line = list; (line = strtok_r(line, "\n", &rest)); line = NULL) {
        done = compile_program(compiler, line) && done;
        if (!first)
            first = line; /* strtok_r has cut the line after the name */
    }
    return done && first && write_dependencies(first);
}

int main(int count, char *words[])
{
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "-g") == 0)
            options.debug = true;
        else if (strncmp(words[i], "-I", 2) == 0 && options.folder_count < MAX_FOLDERS)
            options.folders[options.folder_count++] = words[i] + 2;
        else if (!options.list && words[i][0] && words[i][0] != '-')
            options.list = words[i];
        else if (words[i][0])
            return usage();
    }
    if (!options.list || options.folder_count == 0)
        return usage();
    size_t size = 0;
    char *list = read_file(options.list, &size);
    if (!list) {
        perror(options.list);
        return 1;
    }
    bool done = load_libraries() && compile_list(list);
    free(list);
    return done ? 0 : 1;
}
