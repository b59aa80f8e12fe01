/* Is a text JSON (RFC 8259)? Says where it stops being so and why, before cJSON, which recurses and
 * says neither, takes it apart. Bounds depth and number of values: a hostile file decides neither
 * stack nor memory. */
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"

#define MAX_DEPTH  64
/* cJSON copies a number to a buffer of so many bytes. */
#define MAX_NUMBER 63u

struct scan {
    const char *name, *text;
    size_t size, at;
    char closing[MAX_DEPTH]; /* of the arrays and objects that are open */
    size_t depth, values;
    size_t comma;      /* the last one */
    size_t not_finite; /* NaN, Infinity and -Infinity */
};

static vkn_status fail_at(const struct scan *scan, size_t position, const char *problem)
{
    return json_fail_at(scan->name, scan->text, position, problem);
}

static vkn_status fail_near(const struct scan *scan)
{
    return json_fail_near(scan->name, scan->text, scan->size, scan->at);
}

static vkn_status fail_early(const struct scan *scan)
{
    return fail_at(scan, scan->size, "not valid JSON: the file ends too early");
}

static bool more(const struct scan *scan)
{
    return scan->at < scan->size;
}

static bool is_one_of(const struct scan *scan, const char *characters)
{
    return more(scan) && scan->text[scan->at] && strchr(characters, scan->text[scan->at]);
}

static void skip_space(struct scan *scan)
{
    while (is_one_of(scan, " \t\r\n"))
        scan->at++;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* What stands behind a backslash; whether surrogates come in pairs is left to cJSON. */
static vkn_status scan_escape(struct scan *scan)
{
    bool unicode = is_one_of(scan, "u");
    if (!more(scan))
        return fail_early(scan);
    if (!is_one_of(scan, "\"\\/bfnrtu"))
        return fail_at(scan, scan->at - 1, "not valid JSON: no such escape in a string");
    scan->at++;
    for (int digit = 0; unicode && digit < 4; digit++, scan->at++) {
        if (!more(scan))
            return fail_early(scan);
        if (!is_one_of(scan, "0123456789abcdefABCDEF"))
            return fail_at(scan, scan->at, "not valid JSON: \\u needs four hexadecimal digits");
    }
    return VKN_OK;
}

static vkn_status scan_string(struct scan *scan)
{
    for (scan->at++; more(scan) && scan->text[scan->at] != '"';)
        if (scan->text[scan->at++] == '\\')
            BASE_TRY(scan_escape(scan));
    if (!more(scan))
        return fail_early(scan);
    scan->at++;
    return VKN_OK;
}

static size_t scan_digits(struct scan *scan)
{
    size_t begin = scan->at;
    while (more(scan) && scan->text[scan->at] >= '0' && scan->text[scan->at] <= '9')
        scan->at++;
    return scan->at - begin;
}

/* As strtod takes it: also 01 and 1., which other programs write. */
static vkn_status scan_number(struct scan *scan)
{
    size_t begin = scan->at;
    scan->at += is_one_of(scan, "-") ? 1 : 0;
    size_t digits = scan_digits(scan);
    if (is_one_of(scan, ".")) {
        scan->at++;
        digits += scan_digits(scan);
    }
    bool good = digits > 0;
    if (is_one_of(scan, "eE")) {
        scan->at++;
        scan->at += is_one_of(scan, "+-") ? 1 : 0;
        good = scan_digits(scan) > 0 && good;
    }
    if (!good && !more(scan))
        return fail_early(scan);
    if (!good || scan->at - begin > MAX_NUMBER)
        return fail_at(scan, begin,
                       good ? "a number of more than 63 characters"
                            : "not valid JSON: not a number");
    return VKN_OK;
}

/* The last two are no JSON, but what Python's json writes. */
static vkn_status scan_word(struct scan *scan)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity"};
    size_t left = scan->size - scan->at;
    for (size_t i = 0; i < BASE_COUNT(words); i++) {
        size_t size = strlen(words[i]);
        size_t compared = size < left ? size : left;
        if (memcmp(scan->text + scan->at, words[i], compared) != 0)
            continue;
        if (compared < size)
            return fail_early(scan);
        scan->at += size;
        scan->not_finite += i >= 3 ? 1 : 0;
        return VKN_OK;
    }
    return fail_near(scan);
}

/* ---- structure ------------------------------------------------------------------------------- */

enum expected { ITEM, FIRST_ITEM, KEY, FIRST_KEY, AFTER_ITEM };

static vkn_status open_level(struct scan *scan, enum expected *expected)
{
    bool array = scan->text[scan->at] == '[';
    if (scan->depth == MAX_DEPTH)
        return fail_at(scan, scan->at, "nested too deeply");
    scan->closing[scan->depth++] = array ? ']' : '}';
    scan->at++;
    *expected = array ? FIRST_ITEM : FIRST_KEY;
    return VKN_OK;
}

static vkn_status scan_item(struct scan *scan, enum expected *expected)
{
    if (++scan->values > BASE_JSON_VALUES)
        return base_fail(VKN_BAD_INPUT, "%s: more than the limit of %u values", scan->name,
                         BASE_JSON_VALUES);
    *expected = AFTER_ITEM;
    if (is_one_of(scan, "[{"))
        return open_level(scan, expected);
    if (is_one_of(scan, "\""))
        return scan_string(scan);
    bool infinite =
        is_one_of(scan, "-") && scan->size - scan->at > 1 && scan->text[scan->at + 1] == 'I';
    scan->at += infinite ? 1 : 0;
    return is_one_of(scan, "-0123456789") ? scan_number(scan) : scan_word(scan);
}

static vkn_status scan_key(struct scan *scan, enum expected *expected)
{
    if (!is_one_of(scan, "\""))
        return fail_near(scan);
    BASE_TRY(scan_string(scan));
    skip_space(scan);
    if (!more(scan))
        return fail_early(scan);
    if (!is_one_of(scan, ":"))
        return fail_near(scan);
    scan->at++;
    *expected = ITEM;
    return VKN_OK;
}

static vkn_status scan_after(struct scan *scan, enum expected *expected)
{
    if (scan->depth == 0)
        return fail_at(scan, scan->at, "not valid JSON: text after the end");
    if (!is_one_of(scan, ","))
        return fail_near(scan);
    *expected = scan->closing[scan->depth - 1] == ']' ? ITEM : KEY;
    scan->comma = scan->at++;
    return VKN_OK;
}

/* Does the text go on with the end of the level that is open? */
static bool closes(const struct scan *scan, enum expected expected)
{
    return scan->depth > 0 && scan->text[scan->at] == scan->closing[scan->depth - 1] &&
           expected != ITEM && expected != KEY;
}

/* After a comma, not after a key's colon. */
static bool is_trailing_comma(const struct scan *scan, enum expected expected)
{
    return (expected == KEY ||
            (expected == ITEM && scan->depth > 0 && scan->closing[scan->depth - 1] == ']')) &&
           scan->text[scan->at] == scan->closing[scan->depth - 1];
}

static vkn_status scan_next(struct scan *scan, enum expected *expected)
{
    if (is_trailing_comma(scan, *expected))
        return fail_at(scan, scan->comma, "not valid JSON: a comma after the last item");
    if (closes(scan, *expected)) {
        scan->depth--;
        scan->at++;
        *expected = AFTER_ITEM;
        return VKN_OK;
    }
    if (*expected == AFTER_ITEM)
        return scan_after(scan, expected);
    bool key = *expected == KEY || *expected == FIRST_KEY;
    return key ? scan_key(scan, expected) : scan_item(scan, expected);
}

vkn_status json_check_syntax(const char *name, const char *text, size_t size, size_t *not_finite)
{
    struct scan scan = {.name = name, .text = text, .size = size};
    enum expected expected = ITEM;
    for (skip_space(&scan); more(&scan); skip_space(&scan))
        BASE_TRY(scan_next(&scan, &expected));
    *not_finite = scan.not_finite;
    return expected == AFTER_ITEM && scan.depth == 0 ? VKN_OK : fail_early(&scan);
}

char *json_replace_words(const char *text, size_t size, size_t *new_size)
{
    struct base_text replaced = {0};
    bool quoted = false;
    for (size_t i = 0, length = 1; i < size; i += length) {
        bool nan = !quoted && text[i] == 'N', infinity = !quoted && text[i] == 'I';
        quoted = quoted != (text[i] == '"');
        length = nan ? strlen("NaN") : infinity ? strlen("Infinity") : text[i] == '\\' ? 2 : 1;
        if (nan || infinity)
            base_text_add(&replaced, "9e999");
        else
            base_text_add_bytes(&replaced, text + i, length);
    }
    *new_size = replaced.size;
    if (!replaced.failed)
        return replaced.data;
    free(replaced.data);
    return NULL;
}
