/* JSON on cJSON: positions in syntax errors, and typed access with messages that name the field. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/base.h"

#define MAX_DEPTH 64

/* ---- parsing --------------------------------------------------------------------------------- */

static vkn_status fail_at(const char *name, const char *text, size_t position, const char *problem)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < position; i++) {
        bool break_here = text[i] == '\n';
        line += break_here ? 1 : 0;
        column = break_here ? 1 : column + 1;
    }
    return base_fail(VKN_BAD_INPUT, "%s: line %zu, column %zu: %s", name, line, column, problem);
}

static size_t skip_space(const char *text, size_t size, size_t position)
{
    while (position < size && (text[position] == ' ' || text[position] == '\t' ||
                               text[position] == '\r' || text[position] == '\n'))
        position++;
    return position;
}

/* "not valid JSON near ...", with the next few characters. */
static vkn_status fail_near(const char *name, const char *text, size_t size, size_t position)
{
    char problem[64], excerpt[21] = {0};
    size_t length = 0;
    while (length < sizeof(excerpt) - 1 && position + length < size &&
           (unsigned char)text[position + length] > ' ' &&
           (unsigned char)text[position + length] < 0x7f) {
        excerpt[length] = text[position + length];
        length++;
    }
    snprintf(problem, sizeof(problem), length > 0 ? "not valid JSON near %s" : "not valid JSON",
             excerpt);
    return fail_at(name, text, position, problem);
}

/* cJSON recurses; a file of brackets must not decide how much stack that takes. `open` tells
 * whether the text ends inside a string, an array or an object, as a truncated file does. */
static vkn_status check_nesting(const char *name, const char *text, size_t size, bool *open)
{
    char closing[MAX_DEPTH];
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (depth == MAX_DEPTH)
                return fail_at(name, text, i, "nested too deeply");
            closing[depth++] = c == '[' ? ']' : '}';
        } else if (c == ']' || c == '}') {
            if (depth == 0 || closing[depth - 1] != c)
                return fail_near(name, text, size, i);
            depth--;
        }
    }
    *open = in_string || depth > 0;
    return VKN_OK;
}

static vkn_status fail_syntax(const char *name, const char *text, size_t size, size_t position,
                              bool open)
{
    position = skip_space(text, size, position);
    if (position >= size || (open && position + 1 == size)) /* cJSON stops at the last byte */
        return fail_at(name, text, size, "not valid JSON: the file ends too early");
    return fail_near(name, text, size, position);
}

vkn_status base_json_parse(const char *name, const char *text, size_t size, struct cJSON **json)
{
    *json = NULL;
    bool open = false;
    BASE_TRY(check_nesting(name, text, size, &open));
    const char *end = text;
    cJSON *parsed = cJSON_ParseWithLengthOpts(text, size, &end, 0);
    size_t position = (size_t)(end - text);
    if (parsed == NULL)
        return fail_syntax(name, text, size, position, open);
    position = skip_space(text, size, position);
    if (position < size) {
        cJSON_Delete(parsed);
        return fail_at(name, text, position, "not valid JSON: text after the end");
    }
    *json = parsed;
    return VKN_OK;
}

vkn_status base_json_read(const char *path, size_t limit, struct cJSON **json)
{
    *json = NULL;
    char *text = NULL;
    size_t size = 0;
    BASE_TRY(base_file_read(path, limit, &text, &size));
    vkn_status status = base_json_parse(path, text, size, json);
    free(text);
    return status;
}

/* ---- typed access ---------------------------------------------------------------------------- */

vkn_status base_json_fail(const char *file, const char *name, const char *format, ...)
{
    char problem[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, sizeof(problem), format, arguments);
    va_end(arguments);
    size_t size = strlen(file);
    bool inside = size > 0 && file[size - 1] == '.';
    return base_fail(VKN_BAD_INPUT, "%s%s%s: %s", file, inside ? "" : ": ", name, problem);
}

/* The field, or NULL when it is absent (null counts as absent). */
static vkn_status find(const cJSON *object, const char *name, const char *file, bool required,
                       const cJSON **item)
{
    *item = cJSON_GetObjectItemCaseSensitive(object, name);
    if (*item != NULL && cJSON_IsNull(*item))
        *item = NULL;
    return *item == NULL && required ? base_json_fail(file, name, "missing") : VKN_OK;
}

vkn_status base_json_number(const struct cJSON *object, const char *name, const char *file,
                            bool required, double minimum, double maximum, double *value)
{
    const cJSON *item = NULL;
    BASE_TRY(find(object, name, file, required, &item));
    return item == NULL ? VKN_OK : base_json_value(item, name, file, minimum, maximum, value);
}

vkn_status base_json_value(const struct cJSON *item, const char *name, const char *file,
                           double minimum, double maximum, double *value)
{
    if (!cJSON_IsNumber(item))
        return base_json_fail(file, name, "not a number");
    double number = item->valuedouble;
    if (!isfinite(number))
        return base_json_fail(file, name, "not a finite number");
    if (number < minimum || number > maximum)
        return base_json_fail(file, name, "%g is out of range (%g to %g)", number, minimum,
                              maximum);
    *value = number;
    return VKN_OK;
}

vkn_status base_json_bool(const struct cJSON *object, const char *name, const char *file,
                          bool required, bool *value)
{
    const cJSON *item = NULL;
    BASE_TRY(find(object, name, file, required, &item));
    if (item == NULL)
        return VKN_OK;
    if (!cJSON_IsBool(item))
        return base_json_fail(file, name, "not true or false");
    *value = cJSON_IsTrue(item) != 0;
    return VKN_OK;
}

vkn_status base_json_string(const struct cJSON *object, const char *name, const char *file,
                            bool required, const char **value)
{
    const cJSON *item = NULL;
    BASE_TRY(find(object, name, file, required, &item));
    if (item == NULL)
        return VKN_OK;
    if (!cJSON_IsString(item))
        return base_json_fail(file, name, "not a string");
    *value = item->valuestring;
    return VKN_OK;
}

/* ---- unknown keys ---------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

/* Levenshtein distance of two short words; SIZE_MAX when one is too long to bother. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    size_t row[LONGEST + 1], length_a = strlen(a), length_b = strlen(b);
    if (length_a > LONGEST || length_b > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= length_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = least(row[j] + 1, row[j - 1] + 1, changed);
        }
    }
    return row[length_b];
}

const char *base_nearest(const char *word, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    size_t best = strlen(word) / 3 + 2; /* farther than that is another word */
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(word, names[i]);
        if (d < best) {
            best = d;
            nearest = names[i];
        }
    }
    return nearest;
}

vkn_status base_json_only_keys(const struct cJSON *object, const char *file,
                               const char *const *names, size_t count)
{
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, object)
    {
        bool known = false;
        for (size_t i = 0; i < count && !known; i++)
            known = strcmp(item->string, names[i]) == 0;
        if (known)
            continue;
        const char *nearest = base_nearest(item->string, names, count);
        if (nearest != NULL)
            return base_json_fail(file, item->string, "unknown key; did you mean %s?", nearest);
        return base_json_fail(file, item->string, "unknown key");
    }
    return VKN_OK;
}
