/* Programs with a snippet of a user's: a template of shaders/ that includes it. */
#include <stdlib.h>
#include <string.h>

#include "gpu/internal.h"
#include "gpu/program_sources.h"

struct snippet_program {
    struct gpu_program_source source;
    struct snippet_program *next;
};

/* What is in the list stays as it is, but for the words of what has not been compiled. */
static struct {
    pthread_mutex_t lock;
    struct snippet_program *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the list -------------------------------------------------------------------------------- */

static const struct gpu_program_source *find(const char *name)
{
    const struct snippet_program *program = all.first;
    while (program && strcmp(program->source.name, name) != 0)
        program = program->next;
    return program ? &program->source : NULL;
}

const struct gpu_program_source *gpu_snippet_find(const char *name)
{
    pthread_mutex_lock(&all.lock);
    const struct gpu_program_source *source = find(name);
    pthread_mutex_unlock(&all.lock);
    return source;
}

/* False on no memory. */
static bool add(const char *name, const char *template, const char *defines,
                const struct gpu_snippet *snippet)
{
    struct snippet_program *program = base_alloc(1, sizeof *program);
    char *own_name = base_format("%s", name), *own_defines = base_format("%s", defines);
    if (!program || !own_name || !own_defines) {
        free(program);
        free(own_name);
        free(own_defines);
        return false;
    }
    program->source = (struct gpu_program_source){.name = own_name,
                                                  .source = template,
                                                  .defines = own_defines,
                                                  .environment = "vulkan1.2",
                                                  .snippet = snippet};
    program->next = all.first;
    all.first = program;
    return true;
}

vkn_status gpu_add_snippet(const char *name, const char *template, const char *defines,
                           const struct gpu_snippet *snippet)
{
    pthread_mutex_lock(&all.lock);
    bool there = find(name) || add(name, template, defines, snippet);
    pthread_mutex_unlock(&all.lock);
    return there ? VKN_OK : VKN_ERROR;
}

/* ---- compiling ------------------------------------------------------------------------------- */

static const struct gpu_shader_text *find_text(const char *name)
{
    for (size_t i = 0; i < gpu_shader_text_count; i++)
        if (strcmp(gpu_shader_texts[i].name, name) == 0)
            return &gpu_shader_texts[i];
    return NULL;
}

static vkn_status include(const void *context, const char *requested, const char *requesting,
                          struct gpu_included *included)
{
    const struct gpu_snippet *snippet = context;
    const struct gpu_shader_text *text = find_text(requested);
    bool own = strcmp(requested, "snippet") == 0;
    if (!own && !text)
        return base_fail(VKN_BAD_INPUT, "%s: there is none of that name among vknerf's shaders",
                         requesting);
    included->name = base_format("%s", own ? snippet->file : requested);
    included->size = own ? strlen(snippet->text) : (size_t)(text->end - text->text);
    included->text = base_alloc(included->size + 1, 1);
    if (!included->name || !included->text)
        return VKN_ERROR;
    memcpy(included->text, own ? snippet->text : text->text, included->size);
    return VKN_OK;
}

/* Under the lock, which also keeps a second thread from compiling the same. */
static vkn_status compile(struct gpu_program_source *source)
{
    const struct gpu_shader_text *text = find_text(source->source);
    if (source->words)
        return VKN_OK;
    if (!text)
        return base_fail(VKN_ERROR, "program %s: %s is not part of this build", source->name,
                         source->source);
    const struct gpu_glsl glsl = {
        source->source,  text->text,          (size_t)(text->end - text->text),
        source->defines, source->environment, include,
        source->snippet};
    char message[1024];
    uint32_t *words = NULL;
    size_t count = 0;
    if (!gpu_compile(&glsl, &words, &count, message, sizeof message)) {
        message[strcspn(message, "\n")] = 0;
        return base_fail(VKN_BAD_INPUT, "%s", message);
    }
    source->words = words;
    source->end = words + count;
    return VKN_OK;
}

vkn_status gpu_snippet_compile(const struct gpu_program_source *source)
{
    pthread_mutex_lock(&all.lock);
    struct snippet_program *program = all.first;
    while (program && &program->source != source)
        program = program->next;
    vkn_status status = program ? compile(&program->source) : VKN_ERROR;
    pthread_mutex_unlock(&all.lock);
    return status;
}

/* SPIR-V specification, 3.52.15 and 3.23: "OpLoopMerge MERGE CONTINUE CONTROL". */
enum { SPIRV_HEADER = 5, SPIRV_LOOP_MERGE = 246, LOOP_CONTROL_NONE = 0, LOOP_DONT_UNROLL = 2 };

uint32_t *gpu_keep_loops(const uint32_t *words, size_t word_count)
{
    uint32_t *copy = base_alloc(word_count, sizeof *copy);
    if (!copy)
        return NULL;
    memcpy(copy, words, word_count * sizeof *copy);
    for (size_t i = SPIRV_HEADER, length; i < word_count; i += length) {
        length = copy[i] >> 16 ? copy[i] >> 16 : 1;
        if ((copy[i] & 0xffffu) == SPIRV_LOOP_MERGE && length >= 4 && i + 3 < word_count &&
            copy[i + 3] == LOOP_CONTROL_NONE)
            copy[i + 3] = LOOP_DONT_UNROLL;
    }
    return copy;
}
