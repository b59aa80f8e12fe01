/* Shaders compiled at run time with shaderc. */
#include "gpu/program_sources.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#if !VKNERF_RUNTIME_SHADERS

bool gpu_runtime_compile(const char *shader_dir, const struct gpu_program_source *program,
                         uint32_t **words, size_t *word_count, char *message, size_t message_size)
{
    (void)shader_dir, (void)program;
    *words = NULL;
    *word_count = 0;
    snprintf(message, message_size, "built without VKNERF_RUNTIME_SHADERS");
    return false;
}

#else

#include <shaderc/shaderc.h>

#define MAX_SHADER_BYTES ((size_t)4 << 20)

/* ---- includes -------------------------------------------------------------------------------- */

/* What an include gives shaderc: one block that owns its name and content. */
struct included {
    shaderc_include_result result;
    char *path, *content;
};

static char *find_include(const char *shader_dir, const char *requested, const char *requesting)
{
    char *folder = base_path_folder(requesting);
    char *path = folder ? base_path_join(folder, requested) : NULL;
    free(folder);
    if (path && base_file_exists(path))
        return path;
    free(path);
    return base_path_join(shader_dir, requested);
}

static shaderc_include_result *resolve_include(void *shader_dir, const char *requested, int type,
                                               const char *requesting, size_t depth)
{
    static shaderc_include_result no_memory = {"", 0, "out of memory", 13, NULL};
    (void)type, (void)depth;
    struct included *included = base_alloc(1, sizeof *included);
    if (!included)
        return &no_memory;
    size_t size = 0;
    included->path = find_include(shader_dir, requested, requesting);
    if (included->path &&
        base_file_read(included->path, MAX_SHADER_BYTES, &included->content, &size) == VKN_OK) {
        included->result.source_name = included->path;
        included->result.source_name_length = strlen(included->path);
        included->result.content = included->content;
        included->result.content_length = size;
    } else {
        /* An empty name tells shaderc that the content is an error message. */
        included->result.source_name = "";
        included->result.content = vkn_last_error();
        included->result.content_length = strlen(vkn_last_error());
    }
    included->result.user_data = included;
    return &included->result;
}

static void release_include(void *shader_dir, shaderc_include_result *result)
{
    (void)shader_dir;
    struct included *included = result->user_data;
    if (!included)
        return;
    free(included->path);
    free(included->content);
    free(included);
}

static pthread_once_t compiler_once = PTHREAD_ONCE_INIT;
static shaderc_compiler_t compiler; /* any thread may compile with it */

/* It stays: the symbols of the language, which take longer to make than most programs, go with the
 * last one. */
static void create_compiler(void)
{
    compiler = shaderc_compiler_initialize();
}

/* ---- options --------------------------------------------------------------------------------- */

static void add_defines(shaderc_compile_options_t options, const char *defines)
{
    while (*defines) {
        size_t length = strcspn(defines, " ");
        const char *equals = memchr(defines, '=', length);
        size_t name_length = equals ? (size_t)(equals - defines) : length;
        const char *value = equals ? equals + 1 : NULL;
        size_t value_length = equals ? length - name_length - 1 : 0;
        if (name_length)
            shaderc_compile_options_add_macro_definition(options, defines, name_length, value,
                                                         value_length);
        defines += length;
        defines += strspn(defines, " ");
    }
}

static uint32_t environment_version(const char *environment)
{
    if (strcmp(environment, "vulkan1.3") == 0)
        return shaderc_env_version_vulkan_1_3;
    return shaderc_env_version_vulkan_1_2;
}

static bool copy_words(shaderc_compilation_result_t result, uint32_t **words, size_t *word_count)
{
    size_t size = shaderc_result_get_length(result);
    *words = base_alloc(size / sizeof **words, sizeof **words);
    if (!*words)
        return false;
    memcpy(*words, shaderc_result_get_bytes(result), size);
    *word_count = size / sizeof **words;
    return true;
}

bool gpu_runtime_compile(const char *shader_dir, const struct gpu_program_source *program,
                         uint32_t **words, size_t *word_count, char *message, size_t message_size)
{
    bool done = false;
    char *text = NULL;
    size_t size = 0;
    shaderc_compilation_result_t result = NULL;
    *words = NULL;
    *word_count = 0;
    char *path = base_path_join(shader_dir, program->source);
    pthread_once(&compiler_once, create_compiler);
    shaderc_compile_options_t options = shaderc_compile_options_initialize();
    if (!path || !compiler || !options) {
        snprintf(message, message_size, "%s: shaderc cannot start", program->name);
        goto out;
    }
    if (base_file_read(path, MAX_SHADER_BYTES, &text, &size) != VKN_OK) {
        snprintf(message, message_size, "%s", vkn_last_error());
        goto out;
    }

    /* As the build does: no optimisation, which breaks cooperative matrices. */
    shaderc_compile_options_set_optimization_level(options, shaderc_optimization_level_zero);
    shaderc_compile_options_set_target_env(options, shaderc_target_env_vulkan,
                                           environment_version(program->environment));
    shaderc_compile_options_set_include_callbacks(options, resolve_include, release_include,
                                                  (void *)(uintptr_t)shader_dir);
    add_defines(options, program->defines);
    result = shaderc_compile_into_spv(compiler, text, size, shaderc_compute_shader, path, "main",
                                      options);
    if (shaderc_result_get_compilation_status(result) != shaderc_compilation_status_success)
        snprintf(message, message_size, "%s", shaderc_result_get_error_message(result));
    else if (!copy_words(result, words, word_count))
        snprintf(message, message_size, "%s", vkn_last_error());
    else
        done = true;

out:
    shaderc_result_release(result);
    shaderc_compile_options_release(options);
    free(text);
    free(path);
    return done;
}

#endif
