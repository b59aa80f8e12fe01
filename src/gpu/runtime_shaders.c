/* Shaders compiled at run time from a folder of sources. */
#include "gpu/program_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

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

bool gpu_runtime_compile(const char *shader_dir, const struct gpu_program_source *program,
                         uint32_t **words, size_t *word_count, char *message, size_t message_size)
{
    bool done = false;
    char *text = NULL, *path = base_path_join(shader_dir, program->source);
    size_t size = 0;
    *words = NULL;
    *word_count = 0;
    if (path && base_text_read(path, MAX_SHADER_BYTES, &text, &size) == VKN_OK) {
        const struct gpu_glsl glsl = {
            path, text, size, program->defines, program->environment, read_include, shader_dir};
        done = gpu_compile(&glsl, words, word_count, message, message_size);
    } else {
        snprintf(message, message_size, "%s", vkn_last_error());
    }
    free(text);
    free(path);
    return done;
}
