/* Reads the pragmas of a field in GLSL: lines "#pragma field KEY VALUE", which compilers ignore. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "field/glsl.h"

struct line {
    const char *file;
    unsigned number;
    const char *at; /* the part that is not read yet */
};

static vkn_status fail(const struct line *line, const char *key, const char *message)
{
    return base_fail(VKN_BAD_INPUT, "%s:%u: #pragma field %s: %s", line->file, line->number, key,
                     message);
}

static void skip_spaces(struct line *line)
{
    line->at += strspn(line->at, " \t\r");
}

/* Returns whether the next word is `word`; skips it if so. */
static bool match_word(struct line *line, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(line->at, word, length) != 0 || !strchr(" \t\r\n", line->at[length]))
        return false;
    line->at += length;
    skip_spaces(line);
    return true;
}

static bool at_end(const struct line *line)
{
    return *line->at == 0 || *line->at == '\n' || strncmp(line->at, "//", 2) == 0;
}

/* Reads a product such as "8 * 16 * 16 * 16". Returns false unless it is between 1 and `most`. */
static bool read_product(struct line *line, uint32_t most, uint32_t *product)
{
    uint64_t value = 1;
    for (bool more = true; more;) {
        char *end = NULL;
        if (*line->at < '0' || *line->at > '9')
            return false;
        errno = 0;
        uint64_t factor = strtoull(line->at, &end, 10);
        if (errno || factor > most || factor == 0 || value * factor > most)
            return false;
        value *= factor;
        line->at = end;
        skip_spaces(line);
        more = *line->at == '*';
        line->at += more;
        skip_spaces(line);
    }
    *product = (uint32_t)value;
    return at_end(line);
}

static vkn_status read_whole(struct line *line, const char *key, uint32_t most, uint32_t *number)
{
    uint32_t value = 0;
    if (!read_product(line, most, &value))
        return base_fail(VKN_BAD_INPUT,
                         "%s:%u: #pragma field %s: not a product of whole numbers from 1 to %u",
                         line->file, line->number, key, most);
    *number = *number ? *number : value;
    return VKN_OK;
}

static vkn_status read_positive(struct line *line, const char *key, float *number)
{
    char *end = NULL;
    float value = strtof(line->at, &end);
    bool read = end != line->at;
    line->at = end;
    skip_spaces(line);
    if (!read || !at_end(line) || !isfinite(value) || value <= 0)
        return fail(line, key, "not a positive number");
    *number = *number > 0 ? *number : value;
    return VKN_OK;
}

static vkn_status read_name(struct line *line, char name[64])
{
    size_t length = strcspn(line->at, " \t\r\n");
    if (length == 0 || length >= 64)
        return fail(line, "name", "not a word of up to 63 bytes");
    if (!name[0])
        memcpy(name, line->at, length); /* `name` is filled with zeros */
    return VKN_OK;
}

#define MOST_PARAMETERS (1u << 30)

static vkn_status read_pragma(struct line *line, struct glsl_pragmas *pragmas)
{
    if (match_word(line, "parameters"))
        return read_whole(line, "parameters", MOST_PARAMETERS, &pragmas->parameters);
    if (match_word(line, "features"))
        return read_whole(line, "features", VKN_FIELD_FEATURES, &pragmas->features);
    if (match_word(line, "entry"))
        return read_whole(line, "entry", 4, &pragmas->entry);
    if (match_word(line, "initial"))
        return read_positive(line, "initial", &pragmas->initial);
    if (match_word(line, "name"))
        return read_name(line, pragmas->name);
    return fail(line, "...", "neither parameters, features, entry, initial nor name");
}

static vkn_status check_pragmas(const char *file, const struct glsl_pragmas *pragmas)
{
    if (pragmas->parameters == 0)
        return base_fail(VKN_BAD_INPUT,
                         "%s: the number of parameters is missing: "
                         "#pragma field parameters N",
                         file);
    if (pragmas->features == 0)
        return base_fail(VKN_BAD_INPUT,
                         "%s: the number of features is missing: "
                         "#pragma field features N",
                         file);
    if (pragmas->features % 2 != 0 || pragmas->features > VKN_FIELD_FEATURES)
        return base_fail(VKN_BAD_INPUT, "%s: %u features: not an even number up to %u", file,
                         pragmas->features, VKN_FIELD_FEATURES);
    if (pragmas->entry != 2 && pragmas->entry != 4)
        return base_fail(VKN_BAD_INPUT, "%s: entries of %u parameters: 2 or 4 are possible", file,
                         pragmas->entry);
    if (pragmas->parameters > MOST_PARAMETERS)
        return base_fail(VKN_BAD_INPUT, "%s: %u parameters: more than %u", file,
                         pragmas->parameters, MOST_PARAMETERS);
    return VKN_OK;
}

vkn_status glsl_read_pragmas(const char *file, const char *text, struct glsl_pragmas *pragmas)
{
    struct line line = {.file = file, .number = 1, .at = text};
    *pragmas = (struct glsl_pragmas){0};
    for (const char *next = text; next; line.number++) {
        line.at = next;
        next = strchr(next, '\n');
        next = next ? next + 1 : NULL;
        skip_spaces(&line);
        if (match_word(&line, "#line"))
            line.number = (unsigned)strtoul(line.at, NULL, 10) - 1;
        else if (match_word(&line, "#pragma") && match_word(&line, "field"))
            BASE_TRY(read_pragma(&line, pragmas));
    }
    pragmas->entry = pragmas->entry ? pragmas->entry : 2;
    pragmas->initial = pragmas->initial > 0 ? pragmas->initial : 1e-4f;
    return check_pragmas(file, pragmas);
}
