/* Preprocesses a user's snippet by itself, so that its macros and directives cannot affect the
 * library's source. */
#include <stdlib.h>
#include <string.h>

#include "gpu/shaders.h"

static const char prefix[] = "#version 460\n"
                             "#extension GL_GOOGLE_include_directive : require\n"
                             "#extension GL_EXT_control_flow_attributes : require\n"
                             "#line 1\n";

static vkn_status include_nothing(const void *context, const char *requested,
                                  const char *requesting, struct gpu_included *included)
{
    (void)context, (void)requested, (void)requesting, (void)included;
    return base_fail(VKN_BAD_INPUT, "a field has no #include");
}

vkn_status gpu_snippet_fail(const char *file, char *message)
{
    static const char no_compiler[] = "shaderc, which", library[] = "shared/";
    message[strcspn(message, "\n")] = 0;
    /* shaderc gives no message when memory is short. */
    if (message[0] == '\0')
        return base_fail(VKN_BAD_INPUT, "%s: compiling takes more than %llu MiB of memory", file,
                         (unsigned long long)(gpu_sandbox.memory >> 20));
    if (strncmp(message, file, strlen(file)) == 0 ||
        strncmp(message, no_compiler, strlen(no_compiler)) == 0)
        return base_fail(VKN_BAD_INPUT, "%s", message);
    /* The error is in the library's source: snippet and library define the same name. */
    if (strncmp(message, "field/", 6) == 0 || strncmp(message, library, strlen(library)) == 0)
        return base_fail(VKN_BAD_INPUT, "%s: it conflicts with vknerf's GLSL: %s", file, message);
    return base_fail(VKN_BAD_INPUT, "%s: %s", file, message);
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct line {
    const char *file, *at;
    size_t length;
    unsigned long number;
};

static size_t skip_spaces(const struct line *line, size_t at)
{
    while (at < line->length && strchr(" \t\r\v\f", line->at[at]))
        at++;
    return at;
}

static size_t end_of_word(const struct line *line, size_t at)
{
    while (at < line->length &&
           (line->at[at] == '_' || (line->at[at] >= '0' && line->at[at] <= '9') ||
            (line->at[at] >= 'A' && line->at[at] <= 'Z') ||
            (line->at[at] >= 'a' && line->at[at] <= 'z')))
        at++;
    return at;
}

static bool is_word(const struct line *line, size_t at, size_t end, const char *word)
{
    return end - at == strlen(word) && memcmp(line->at + at, word, end - at) == 0;
}

/* Handles a directive that the preprocessor leaves: keeps #line, drops permitted ones, refuses
 * others. */
static vkn_status add_directive(struct line *line, size_t at, struct base_text *text)
{
    size_t begin = skip_spaces(line, at), end = end_of_word(line, begin),
           next = skip_spaces(line, end);
    size_t last = end_of_word(line, next);
    if (is_word(line, begin, end, "line")) {
        line->number = strtoul(line->at + next, NULL, 10) - 1;
        base_text_add(text, "#line %lu", line->number + 1);
        return VKN_OK;
    }
    if (is_word(line, begin, end, "pragma") || is_word(line, begin, end, "version"))
        return VKN_OK; /* the preprocessor has refused a version other than the prefix's */
    if (is_word(line, begin, end, "extension") &&
        (is_word(line, next, last, "GL_EXT_control_flow_attributes") ||
         is_word(line, next, last, "GL_GOOGLE_include_directive")))
        return VKN_OK;
    if (is_word(line, begin, end, "extension"))
        return base_fail(VKN_BAD_INPUT, "%s:%lu: a field has no #extension %.*s", line->file,
                         line->number, (int)(last - next), line->at + next);
    return base_fail(VKN_BAD_INPUT, "%s:%lu: a field has no #%.*s here", line->file, line->number,
                     (int)(end - begin), line->at + begin);
}

static vkn_status add_line(struct line *line, struct base_text *text)
{
    size_t at = skip_spaces(line, 0);
    if (memchr(line->at, '\\', line->length))
        return base_fail(VKN_BAD_INPUT, "%s:%lu: a \\ is not allowed here", line->file,
                         line->number);
    if (at < line->length && line->at[at] == '#')
        BASE_TRY(add_directive(line, at + 1, text));
    else
        base_text_add_bytes(text, line->at, line->length);
    base_text_add(text, "\n");
    line->number++;
    return VKN_OK;
}

static vkn_status add_lines(const char *file, const char *from, struct base_text *text)
{
    struct line line = {.file = file, .number = 1};
    for (const char *next = from; next;) {
        line.at = next;
        line.length = strcspn(next, "\n");
        next = next[line.length] ? next + line.length + 1 : NULL;
        BASE_TRY(add_line(&line, text));
        if (text->failed)
            return VKN_ERROR;
    }
    return VKN_OK;
}

vkn_status gpu_snippet_preprocess(const struct gpu_snippet *snippet, const char *defines,
                                  char **text)
{
    struct base_text lines = {0};
    char message[1024], *source = base_format("%s%s", prefix, snippet->text), *preprocessed = NULL;
    *text = NULL;
    if (!source)
        return VKN_ERROR;
    const struct gpu_glsl glsl = {snippet->file,   source, strlen(source), defines, "vulkan1.2",
                                  include_nothing, NULL};
    bool done = gpu_preprocess(&glsl, &preprocessed, message, sizeof message);
    free(source);
    vkn_status status = VKN_OK;
    if (done)
        status = add_lines(snippet->file, preprocessed, &lines);
    else
        status = gpu_snippet_fail(snippet->file, message);
    free(preprocessed);
    if (status == VKN_OK && lines.failed)
        status = VKN_ERROR;
    if (status == VKN_OK)
        *text = lines.data;
    else
        free(lines.data);
    return status;
}
