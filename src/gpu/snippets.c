/* Manages shaders with a user's snippet: templates of shaders/ that include it. */
#include <stdlib.h>
#include <string.h>

#include "gpu/internal.h"
#include "gpu/shaders.h"
#include "gpu/snippet_check.h"

struct snippet_shader {
    struct gpu_shader source;
    struct snippet_shader *next;
};

/* Registered shaders. Entries do not change, except that compilation sets their words. */
static struct {
    pthread_mutex_t lock;
    struct snippet_shader *first;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the list -------------------------------------------------------------------------------- */

static const struct gpu_shader *find(const char *name)
{
    const struct snippet_shader *shader = all.first;
    while (shader && strcmp(shader->source.name, name) != 0)
        shader = shader->next;
    return shader ? &shader->source : NULL;
}

const struct gpu_shader *gpu_snippet_find(const char *name)
{
    pthread_mutex_lock(&all.lock);
    const struct gpu_shader *source = find(name);
    pthread_mutex_unlock(&all.lock);
    return source;
}

static bool add(const char *name, const char *template, const char *defines,
                const struct gpu_snippet *snippet)
{
    struct snippet_shader *shader = base_alloc(1, sizeof *shader);
    char *own_name = base_format("%s", name), *own_defines = base_format("%s", defines);
    if (!shader || !own_name || !own_defines) {
        free(shader);
        free(own_name);
        free(own_defines);
        return false;
    }
    shader->source = (struct gpu_shader){.name = own_name,
                                         .source = template,
                                         .defines = own_defines,
                                         .environment = "vulkan1.2",
                                         .snippet = snippet};
    shader->next = all.first;
    all.first = shader;
    return true;
}

vkn_status gpu_add_snippet(const char *name, const char *template, const char *defines,
                           const struct gpu_snippet *snippet)
{
    pthread_mutex_lock(&all.lock);
    bool exists = find(name) || add(name, template, defines, snippet);
    pthread_mutex_unlock(&all.lock);
    return exists ? VKN_OK : VKN_ERROR;
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
    bool is_snippet = strcmp(requested, "snippet") == 0;
    if (!is_snippet && !text)
        return base_fail(VKN_BAD_INPUT, "%s: it includes a file that is not among vknerf's shaders",
                         requesting);
    included->name = base_format("%s", is_snippet ? snippet->file : requested);
    included->size = is_snippet ? strlen(snippet->text) : (size_t)(text->end - text->text);
    included->text = base_alloc(included->size + 1, 1);
    if (!included->name || !included->text)
        return VKN_ERROR;
    memcpy(included->text, is_snippet ? snippet->text : text->text, included->size);
    return VKN_OK;
}

/* A template and the snippet to compile it with. */
struct pair {
    const struct gpu_shader *source;
    struct gpu_snippet snippet;
};

static vkn_status compile_pair(const struct pair *pair, uint32_t **words, size_t *count)
{
    const struct gpu_shader *source = pair->source;
    const struct gpu_shader_text *text = find_text(source->source);
    char message[1024];
    if (!text)
        return base_fail(VKN_ERROR, "shader %s: %s is not part of this build", source->name,
                         source->source);
    const struct gpu_glsl glsl = {
        source->source,  text->text,          (size_t)(text->end - text->text),
        source->defines, source->environment, include,
        &pair->snippet};
    if (gpu_compile(&glsl, words, count, message, sizeof message))
        return VKN_OK;
    return gpu_snippet_fail(pair->snippet.file, message);
}

/* Compiles a user's snippet to SPIR-V, as work of gpu_run_sandboxed. */
static vkn_status compile_sandboxed(const void *context, struct base_text *result)
{
    struct pair pair = *(const struct pair *)context;
    char *text = NULL;
    uint32_t *words = NULL;
    size_t count = 0;
    BASE_TRY(gpu_snippet_preprocess(&pair.snippet, pair.source->defines, &text));
    pair.snippet.text = text;
    vkn_status status = compile_pair(&pair, &words, &count);
    if (status == VKN_OK)
        base_text_add_bytes(result, words, count * sizeof *words);
    free(words);
    free(text);
    return status;
}

/* Reference modules: the last templates compiled with the library's own snippet. Fields of the same
 * size share them. */
static struct {
    char *source, *defines;
    uint32_t *words;
    size_t count;
} references[3];

/* Finds or compiles the reference module of a template. Compiles in this process, so that the
 * compiler creates the symbols of the language, which child processes inherit. */
static vkn_status find_reference(const struct gpu_shader *source, size_t *found)
{
    static size_t next;
    const struct gpu_shader_text *text = find_text("field/snippet_plain.glsl");
    for (size_t i = 0; i < BASE_COUNT(references); i++)
        if (references[i].words && strcmp(references[i].source, source->source) == 0 &&
            strcmp(references[i].defines, source->defines) == 0) {
            *found = i;
            return VKN_OK;
        }
    *found = next++ % BASE_COUNT(references);
    free(references[*found].source);
    free(references[*found].defines);
    free(references[*found].words);
    references[*found].words = NULL;
    references[*found].source = base_format("%s", source->source);
    references[*found].defines = base_format("%s", source->defines);
    char *plain = text ? base_format("%.*s", (int)(text->end - text->text), text->text) : NULL;
    vkn_status status = VKN_ERROR;
    if (references[*found].source && references[*found].defines && plain)
        status = compile_pair(&(struct pair){source, {"field/snippet_plain.glsl", plain}},
                              &references[*found].words, &references[*found].count);
    free(plain);
    return status;
}

/* The lock is held, which also prevents a second thread from compiling the same shader. */
static vkn_status compile(struct gpu_shader *source)
{
    const struct pair pair = {source, *source->snippet};
    struct base_text result = {0};
    uint32_t *words = NULL;
    size_t count = 0, found = 0;
    if (source->words)
        return VKN_OK;
    BASE_TRY(find_reference(source, &found));
    vkn_status status = gpu_run_sandboxed(pair.snippet.file, compile_sandboxed, &pair, &result);
    if (status == VKN_OK)
        status =
            gpu_snippet_check(pair.snippet.file, references[found].words, references[found].count,
                              (const uint32_t *)(const void *)result.data,
                              result.size / sizeof *words, &words, &count);
    free(result.data);
    BASE_TRY(status);
    source->words = words;
    source->count = count;
    return VKN_OK;
}

vkn_status gpu_snippet_compile(const struct gpu_shader *source)
{
    pthread_mutex_lock(&all.lock);
    struct snippet_shader *shader = all.first;
    while (shader && &shader->source != source)
        shader = shader->next;
    vkn_status status = shader ? compile(&shader->source) : VKN_ERROR;
    pthread_mutex_unlock(&all.lock);
    return status;
}

/* SPIR-V specification, 3.52.15 and 3.23: "OpLoopMerge MERGE CONTINUE CONTROL". */
enum { LOOP_CONTROL_NONE = 0, LOOP_DONT_UNROLL = 2 };

uint32_t *gpu_disable_unrolling(const uint32_t *words, size_t word_count)
{
    uint32_t *copy = base_alloc(word_count, sizeof *copy);
    if (!copy)
        return NULL;
    memcpy(copy, words, word_count * sizeof *copy);
    for (size_t i = SPIRV_HEADER, length; i < word_count; i += length) {
        length = copy[i] >> 16 ? copy[i] >> 16 : 1;
        if ((copy[i] & 0xffffu) == OP_LOOP_MERGE && length >= 4 && i + 3 < word_count &&
            copy[i + 3] == LOOP_CONTROL_NONE)
            copy[i + 3] = LOOP_DONT_UNROLL;
    }
    return copy;
}
