/* Parses and prints JSON by cJSON: adds positions to syntax errors, limits, exact numbers, and
 * typed access with messages that name the field. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/internal.h"

/* ---- memory ---------------------------------------------------------------------------------- */

/* Failed allocations of cJSON in this thread since it last printed. */
static _Thread_local unsigned failures;

static void *allocate(size_t size)
{
    void *memory = base_realloc(NULL, size);
    failures += memory == NULL ? 1 : 0;
    return memory;
}

/* Counts failures in cJSON's allocator, because trees are built by hundreds of calls, each of which
 * may fail. Memory still comes from malloc, so a program that uses cJSON itself is not affected. */
__attribute__((constructor)) static void install_hooks(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = allocate, .free_fn = free});
}

/* ---- parsing --------------------------------------------------------------------------------- */

#define MAX_DEPTH 64

/* Scanner that copies the text for cJSON and replaces Python's NaN and Infinity by 9e999, which
 * cJSON reads as infinity. Limits depth and number of values, so that a hostile file cannot exhaust
 * stack or memory. */
struct scan {
    const char *name, *text;
    size_t size, at;
    struct base_text copy;
    bool quoted;   /* whether `at` is inside a string */
    size_t opened; /* position in `copy` where the last string begins */
    size_t last;   /* position of the last non-space character outside of strings */
    unsigned depth, values;
};

static vkn_status fail_at(const struct scan *scan, size_t position, const char *problem)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < position; i++) {
        bool break_here = scan->text[i] == '\n';
        line += break_here ? 1 : 0;
        column = break_here ? 1 : column + 1;
    }
    return base_fail(VKN_BAD_INPUT, "%s: line %zu, column %zu: %s", scan->name, line, column,
                     problem);
}

/* Quotes the characters up to the next space. */
static vkn_status fail_near(const struct scan *scan, size_t position)
{
    char problem[64];
    int length = 0, left = scan->size - position < 20 ? (int)(scan->size - position) : 20;
    while (length < left && scan->text[position + (size_t)length] > ' ' &&
           scan->text[position + (size_t)length] < 0x7f)
        length++;
    snprintf(problem, sizeof(problem), "not valid JSON%s%.*s", length > 0 ? " near " : "", length,
             scan->text + position);
    return fail_at(scan, position, problem);
}

static vkn_status check_character(struct scan *scan)
{
    const char character = scan->text[scan->at];
    if (character == ' ' || character == '\t' || character == '\r' || character == '\n')
        return VKN_OK;
    if ((unsigned char)character < ' ') /* cJSON would skip it */
        return fail_near(scan, scan->at);
    bool opens = character == '[' || character == '{',
         closes = character == ']' || character == '}';
    if (closes && scan->text[scan->last] == ',')
        return fail_at(scan, scan->last, "not valid JSON: a comma after the last item");
    if (opens && scan->depth == MAX_DEPTH)
        return fail_at(scan, scan->at, "nested too deeply");
    scan->depth += opens ? 1 : 0;
    scan->depth -= closes && scan->depth > 0 ? 1 : 0;
    scan->values += opens || character == ',' ? 1 : 0;
    scan->last = scan->at;
    if (scan->values < BASE_JSON_VALUES)
        return VKN_OK;
    return base_fail(VKN_BAD_INPUT, "%s: more than the limit of %u values", scan->name,
                     BASE_JSON_VALUES);
}

/* Returns the length of the NaN or infinity that comes next; 0: none. */
static size_t word_size(const struct scan *scan)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; !scan->quoted && i < BASE_COUNT(words); i++) {
        size_t size = strlen(words[i]);
        if (scan->size - scan->at >= size && memcmp(scan->text + scan->at, words[i], size) == 0)
            return size;
    }
    return 0;
}

/* Checks the digits of \u escapes: cJSON reads other characters as zeros. */
static vkn_status check_escape(const struct scan *scan)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = scan->text + scan->at, *end = scan->text + scan->size;
    for (int i = 2; *at == '\\' && at + 1 < end && at[1] == 'u' && i < 6; i++)
        if (at + i >= end || memchr(digits, at[i], sizeof(digits) - 1) == NULL)
            return fail_at(scan, scan->at, "not valid JSON: \\u needs four hexadecimal digits");
    return VKN_OK;
}

/* Advances by a character, an escaped character, or a NaN or infinity. */
static vkn_status scan_next(struct scan *scan)
{
    const char *at = scan->text + scan->at;
    size_t length = word_size(scan);
    BASE_TRY(scan->quoted ? check_escape(scan) : check_character(scan));
    if (length > 0) {
        base_text_add(&scan->copy, *at == '-' ? " -9e999 " : " 9e999 ");
    } else {
        length = *at == '\\' && scan->size - scan->at > 1 ? 2 : 1;
        scan->opened = *at == '"' && !scan->quoted ? scan->copy.size : scan->opened;
        scan->quoted = scan->quoted != (*at == '"');
        base_text_add_bytes(&scan->copy, at, length);
    }
    scan->at += length;
    return VKN_OK;
}

/* Returns the position in the text that corresponds to a position in the copy. */
static size_t source_of(const struct scan *scan, size_t position)
{
    struct scan again = {.name = scan->name, .text = scan->text, .size = scan->size};
    while (again.copy.size < position && !again.copy.failed)
        scan_next(&again);
    free(again.copy.data);
    return again.at;
}

/* Reports the position where cJSON stopped, or the beginning of the word around it. */
static vkn_status fail_in_copy(const struct scan *scan, size_t position)
{
    if (position >= scan->copy.size || (scan->quoted && position == scan->opened + 1))
        return fail_at(scan, scan->size, "not valid JSON: the file ends too early");
    size_t at = source_of(scan, position);
    while (at > 0 && strchr(" \t\r\n[]{},:\"", scan->text[at - 1]) == NULL)
        at--;
    return fail_near(scan, at);
}

static vkn_status parse(const struct scan *scan, struct cJSON **json)
{
    const char *begin = scan->copy.data, *end = begin;
    unsigned failures_before = failures;
    /* Includes the zero byte: at a premature end, cJSON reports the last byte. */
    *json = cJSON_ParseWithLengthOpts(begin, scan->copy.size + 1, &end, 0);
    if (*json == NULL)
        return failures != failures_before ? base_fail(VKN_ERROR, "%s: out of memory", scan->name)
                                           : fail_in_copy(scan, (size_t)(end - begin));
    end += strspn(end, " \t\r\n");
    if (end == begin + scan->copy.size)
        return VKN_OK;
    cJSON_Delete(*json);
    *json = NULL;
    return fail_at(scan, source_of(scan, (size_t)(end - begin)),
                   "not valid JSON: text after the end");
}

vkn_status base_json_parse(const char *name, const char *text, size_t size, struct cJSON **json)
{
    size_t mark = 0;
    *json = NULL;
    BASE_TRY(base_text_bom(name, text, size, &mark));
    struct scan scan = {.name = name, .text = text + mark, .size = size - mark};
    base_text_add_bytes(&scan.copy, "", 0);
    vkn_status status = VKN_OK;
    while (status == VKN_OK && scan.at < scan.size)
        status = scan_next(&scan);
    if (status == VKN_OK)
        status = scan.copy.failed ? VKN_ERROR : parse(&scan, json);
    free(scan.copy.data);
    return status;
}

vkn_status base_json_read(const char *path, size_t limit, struct cJSON **json)
{
    *json = NULL;
    char *text = NULL;
    size_t size = 0;
    BASE_TRY(base_text_read(path, limit, &text, &size));
    vkn_status status = base_json_parse(path, text, size, json);
    free(text);
    return status;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Returns whether cJSON would not print the number exactly: cJSON prints 15 digits if they are
 * close enough. Writes the exact digits to `text`. */
static bool is_rounded(const cJSON *item, char text[32])
{
    double value = item->valuedouble;
    if (!cJSON_IsNumber(item) || !isfinite(value))
        return false;
    snprintf(text, 32, "%.15g", value);
    if (strtod(text, NULL) == value)
        return false;
    snprintf(text, 32, "%.16g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, 32, "%.17g", value);
    return true;
}

static bool has_rounded(const cJSON *json)
{
    char text[32];
    for (const cJSON *item = json != NULL ? json->child : NULL; item != NULL; item = item->next)
        if (is_rounded(item, text) || has_rounded(item))
            return true;
    return false;
}

/* Replaces numbers that cJSON would round by their exact text. */
static void spell_numbers(cJSON *json)
{
    char text[32];
    for (cJSON *item = json != NULL ? json->child : NULL; item != NULL; item = item->next) {
        spell_numbers(item);
        cJSON *raw = is_rounded(item, text) ? cJSON_CreateRaw(text) : NULL;
        if (raw == NULL)
            continue;
        item->valuestring = raw->valuestring;
        raw->valuestring = NULL;
        item->type = (item->type & ~0xff) | cJSON_Raw;
        cJSON_Delete(raw);
    }
}

static char *print(const cJSON *json, bool formatted)
{
    BASE_C_LOCALE;
    cJSON *exact = has_rounded(json) ? cJSON_Duplicate(json, true) : NULL;
    spell_numbers(exact);
    const cJSON *from = exact != NULL ? exact : json;
    char *printed = formatted ? cJSON_Print(from) : cJSON_PrintUnformatted(from);
    char *text = printed != NULL && failures == 0 ? vkn_to_utf8(printed) : NULL;
    cJSON_free(printed);
    cJSON_Delete(exact);
    failures = 0;
    if (text == NULL)
        base_fail(VKN_ERROR, "out of memory (JSON)");
    return text;
}

char *base_json_print(const struct cJSON *json)
{
    return print(json, true);
}

char *base_json_print_unformatted(const struct cJSON *json)
{
    return print(json, false);
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

const char *base_json_text(const struct cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsString(item) ? item->valuestring : "";
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

/* Returns the Levenshtein distance of two words; SIZE_MAX: one is longer than 64 characters. */
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
    size_t size = strlen(word), best = size / 3 + 2; /* larger distances mean another word */
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (length >= size + best || size >= length + best)
            continue; /* the lengths alone differ too much */
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
    cJSON_ArrayForEach (item, object) {
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
