/* Compiles GLSL to SPIR-V by shaderc, which is loaded at first use. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "gpu/shaders.h"
#include "gpu/shaderc.h"

/* ---- the library ----------------------------------------------------------------------------- */

static struct shaderc shaderc;
static shaderc_compiler_t compiler; /* callable from any thread; NULL: not installed */

/* The compiler is never released: shaderc frees the symbols of the language with its last compiler,
 * and creating them takes longer than compiling most shaders. */
static void load(void)
{
    if (shaderc_load(&shaderc))
        compiler = shaderc.compiler_initialize();
}

static bool is_loaded(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return compiler != NULL;
}

/* ---- includes -------------------------------------------------------------------------------- */

/* An included file, held until shaderc releases it. */
struct held {
    shaderc_include_result result;
    struct gpu_included included;
};

static shaderc_include_result *resolve_include(void *glsl, const char *requested, int type,
                                               const char *requesting, size_t depth)
{
    static shaderc_include_result no_memory = {"", 0, "out of memory", 13, NULL};
    const struct gpu_glsl *source = glsl;
    (void)type, (void)depth;
    struct held *held = base_alloc(1, sizeof *held);
    if (!held)
        return &no_memory;
    if (source->include(source->context, requested, requesting, &held->included) == VKN_OK) {
        held->result.source_name = held->included.name;
        held->result.source_name_length = strlen(held->included.name);
        held->result.content = held->included.text;
        held->result.content_length = held->included.size;
    } else {
        /* An empty name tells shaderc that the content is an error message. */
        held->result.source_name = "";
        held->result.content = vkn_last_error();
        held->result.content_length = strlen(vkn_last_error());
    }
    held->result.user_data = held;
    return &held->result;
}

static void release_include(void *glsl, shaderc_include_result *result)
{
    (void)glsl;
    struct held *held = result->user_data;
    if (!held)
        return;
    free(held->included.name);
    free(held->included.text);
    free(held);
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
            shaderc.compile_options_add_macro_definition(options, defines, name_length, value,
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

/* Counts the threads in the compiler. A process forked while a thread is in the compiler would find
 * the compiler's locks held for ever. A rwlock would not do, because a child could not unlock it.
 */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t left;
    size_t count;
} inside = {.lock = PTHREAD_MUTEX_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

void gpu_compiler_lock(void)
{
    pthread_mutex_lock(&inside.lock);
    while (inside.count > 0)
        pthread_cond_wait(&inside.left, &inside.lock);
}

void gpu_compiler_unlock(void)
{
    pthread_mutex_unlock(&inside.lock);
}

static void count_inside(int change)
{
    pthread_mutex_lock(&inside.lock);
    inside.count += (size_t)change;
    pthread_cond_broadcast(&inside.left);
    pthread_mutex_unlock(&inside.lock);
}

static shaderc_compile_options_t make_options(const struct gpu_glsl *glsl)
{
    shaderc_compile_options_t options = is_loaded() ? shaderc.compile_options_initialize() : NULL;
    if (!options)
        return NULL;
    /* No optimisation, as in the build: shaderc's optimiser breaks cooperative matrices. */
    shaderc.compile_options_set_optimization_level(options, shaderc_optimization_level_zero);
    shaderc.compile_options_set_target_env(options, shaderc_target_env_vulkan,
                                           environment_version(glsl->environment));
    shaderc.compile_options_set_include_callbacks(options, resolve_include, release_include,
                                                  (void *)(uintptr_t)glsl);
    add_defines(options, glsl->defines);
    return options;
}

/* ---- compiling ------------------------------------------------------------------------------- */

static bool copy_result(shaderc_compilation_result_t result, char **bytes, size_t *size)
{
    *size = shaderc.result_get_length(result);
    *bytes = base_alloc(*size + 1, 1);
    if (*bytes)
        memcpy(*bytes, shaderc.result_get_bytes(result), *size);
    return *bytes != NULL;
}

/* Compiles or preprocesses; the caller frees *bytes. */
static bool run_compiler(const struct gpu_glsl *glsl, bool preprocess, char **bytes, size_t *size,
                         char *message, size_t message_size)
{
    *bytes = NULL;
    *size = 0;
    shaderc_compile_options_t options = make_options(glsl);
    if (!options) {
        snprintf(message, message_size,
                 "shaderc, which compiles GLSL at run time, is not installed: install libshaderc1 "
                 "(libshaderc.so.1)");
        return false;
    }
    count_inside(1);
    shaderc_compilation_result_t result =
        (preprocess ? shaderc.compile_into_preprocessed_text : shaderc.compile_into_spv)(
            compiler, glsl->text, glsl->size, shaderc_compute_shader, glsl->name, "main", options);
    bool done = false;
    if (shaderc.result_get_compilation_status(result) != shaderc_compilation_status_success)
        snprintf(message, message_size, "%s", shaderc.result_get_error_message(result));
    else if (!copy_result(result, bytes, size))
        snprintf(message, message_size, "%s", vkn_last_error());
    else
        done = true;
    shaderc.result_release(result);
    shaderc.compile_options_release(options);
    count_inside(-1);
    return done;
}

bool gpu_compile(const struct gpu_glsl *glsl, uint32_t **words, size_t *word_count, char *message,
                 size_t message_size)
{
    char *bytes = NULL;
    size_t size = 0;
    bool done = run_compiler(glsl, false, &bytes, &size, message, message_size);
    *words = (uint32_t *)(void *)bytes; /* malloc aligns for any type */
    *word_count = size / sizeof **words;
    return done;
}

bool gpu_preprocess(const struct gpu_glsl *glsl, char **text, char *message, size_t message_size)
{
    size_t size = 0;
    return run_compiler(glsl, true, text, &size, message, message_size);
}

/* ---- sources in a folder --------------------------------------------------------------------- */

#define MAX_SHADER_BYTES ((size_t)4 << 20)

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

static vkn_status read_include(const void *shader_dir, const char *requested,
                               const char *requesting, struct gpu_included *included)
{
    included->name = find_include(shader_dir, requested, requesting);
    return included->name
               ? base_text_read(included->name, MAX_SHADER_BYTES, &included->text, &included->size)
               : VKN_ERROR;
}

bool gpu_runtime_compile(const char *shader_dir, const struct gpu_shader *shader, uint32_t **words,
                         size_t *word_count, char *message, size_t message_size)
{
    bool done = false;
    char *text = NULL, *path = base_path_join(shader_dir, shader->source);
    size_t size = 0;
    *words = NULL;
    *word_count = 0;
    if (path && base_text_read(path, MAX_SHADER_BYTES, &text, &size) == VKN_OK) {
        const struct gpu_glsl glsl = {
            path, text, size, shader->defines, shader->environment, read_include, shader_dir};
        done = gpu_compile(&glsl, words, word_count, message, message_size);
    } else {
        snprintf(message, message_size, "%s", vkn_last_error());
    }
    free(text);
    free(path);
    return done;
}
